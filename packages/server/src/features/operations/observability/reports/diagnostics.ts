import { allows, type DiagnosticCategory, type EventKind, events, type ResultInput } from '@gatehouse/contract';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import { parseJson } from '../../../../kernel/json.ts';
import type { DigestedEvent, EventsApi } from '../../events/api.ts';
import { agentsFor, refuseAgents } from './access.ts';
import type { ViewStart } from './resets.ts';

const categories: Partial<Record<EventKind, DiagnosticCategory>> = {
  'observability:token_usage': 'usage',
  'webhook:delivery': 'webhook',
  'message:received': 'message',
  'message:sent': 'message',
  'session:created': 'session',
  'session:updated': 'session',
  'session:expired': 'session',
  'session:sub_agent_spawned': 'session',
  'session:sub_agent_spawn_rejected': 'session',
  'session:sub_agent_completed': 'session',
  'session:cross_send': 'session',
};

const kindsOf = (mayShow: (kind: EventKind) => boolean) =>
  Object.fromEntries(
    Object.entries(categories)
      // Only kinds of events are keys of the table.
      .filter(([kind]) => mayShow(kind as EventKind))
      .map(([kind, category]) => [kind, { category, isPublic: false }]),
  );
const forAdmins = kindsOf(() => true);
const forOwners = kindsOf((kind) => events[kind].visibility === 'owner');

/** Fields with ids, counts and codes; everything else may be content. */
const shown: ReadonlySet<string> = new Set([
  'turnId',
  'origin',
  'messageId',
  'finishReason',
  'provider',
  'model',
  'operation',
  'cacheReadTokens',
  'cacheWriteTokens',
  'estimated',
  'latencyMs',
  'deliveryId',
  'mapping',
  'state',
  'reason',
  'runId',
  'rootRunId',
  'depth',
  'success',
  'endReason',
  'runtimeMs',
  'tokensUsed',
  'mode',
]);
const maxRead = 20_000;
const maxText = 200;

type Diagnostic = ResultInput<'obs.diagnostics'>['events'][number];

export interface DiagnosticsDeps {
  readonly events: Pick<EventsApi, 'digest'>;
  readonly since: ViewStart;
  /** Removes what is a secret or looks like one. */
  readonly redactText: (text: string) => string;
}

/** Handler of `obs.diagnostics`: what happened in the caller's conversations, without content. */
export function createDiagnostics({ events: log, since, redactText }: DiagnosticsDeps): HandlersOf<'obs.diagnostics'> {
  return {
    'obs.diagnostics': async ({ category, limit, sinceMs }, call) => {
      refuseAgents(call);
      const isAdmin = allows(call.identity.scopes, 'admin');
      const { askedMs, upTo } = await since('diagnostics', sinceMs);
      const found = await log.digest({
        kinds: isAdmin ? forAdmins : forOwners,
        category: category ?? null,
        owner: isAdmin ? null : call.identity.principalId,
        agentIds: agentsFor(undefined, call),
        afterId: upTo,
        sinceMs: askedMs,
        limit,
        maxRead,
      });
      const { usage = 0, webhook = 0, message = 0, session = 0 } = found.counts;
      return { events: found.events.map((event) => digestOf(event, redactText)), counts: { usage, webhook, message, session } };
    },
  };
}

function digestOf({ id, kind, category, atMs, agentId, json }: DigestedEvent, redactText: (text: string) => string): Diagnostic {
  const payload = json === '' ? {} : (parseJson(json) as Record<string, unknown>);
  const textOf = (name: string) => {
    const value = payload[name];
    return typeof value === 'string' ? { [name]: redactText(value) } : {};
  };
  const data: Diagnostic['data'] = {};
  for (const [name, value] of Object.entries(payload)) {
    if (!shown.has(name)) continue;
    if (typeof value === 'string') data[name] = redactText(value).slice(0, maxText).toWellFormed();
    else if (typeof value === 'number' || typeof value === 'boolean') data[name] = value;
  }
  return {
    id: String(id),
    // Only kinds of the table above are found.
    category: category as DiagnosticCategory,
    eventType: kind,
    timestamp: atMs,
    ...(agentId !== null && { agentId }),
    ...textOf('sessionKey'),
    ...textOf('conversationRef'),
    ...textOf('traceId'),
    data: { ...data, ...totalOf(payload, 'tokens', 'tokensTotal'), ...totalOf(payload, 'cost', 'costUsd') },
  };
}

function totalOf(payload: Record<string, unknown>, name: string, as: string): Diagnostic['data'] {
  const value = payload[name];
  if (typeof value === 'number') return { [as]: value };
  const total = typeof value === 'object' && value !== null && 'total' in value ? value.total : undefined;
  return typeof total === 'number' ? { [as]: total } : {};
}
