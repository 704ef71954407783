import type { Live } from '../../../kernel/config/live.ts';
import type { ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { WebhooksConfig } from './config.ts';
import type { Deliver } from './deliveries/deliver.ts';
import { readOffThread } from './intake/delivery-reader.ts';
import { wantsPath, wantsSource } from './rules/match.ts';
import { isEnabled, type Rule } from './rules/rules.ts';
import { viewOfWaitJson } from '../../../runtime/waiting-view.ts';
import { DeliveryResult } from './deliveries/run-delivery.ts';
import { digestBody } from './intake/signature.ts';
import { countDeliveries, findDelivery, keptMs, listDeliveries, type Listed } from './store.ts';
import { valueAt } from './rules/template.ts';

/** Maximum characters of a text in a list. */
const shownLength = 2_000;

export interface WebhookMethodsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly config: Live<WebhooksConfig>;
  /** All rules, with the strict route's rule last. */
  readonly rules: () => readonly Rule[];
  readonly deliver: Deliver;
  readonly defaultAgentId: string;
}

export function createWebhookMethods(
  deps: WebhookMethodsDeps,
): HandlersOf<'webhooks.list' | 'webhooks.deliveries' | 'webhooks.replay' | 'webhooks.test'> {
  const { db, clock, config, rules, deliver } = deps;
  const sinceMs = () => clock.ageNow() - keptMs;

  const agentIdOf = ({ mapping }: Rule): string => mapping.agentId ?? deps.defaultAgentId;
  /** A token that is limited to some agents sees and starts nothing of others. */
  const reaches = (agentId: string, { identity }: CallContext): boolean => identity.agents?.includes(agentId) ?? true;

  function ruleOf(id: string, call: CallContext): Rule {
    const rule = rules().find((one) => one.mapping.id === id && reaches(agentIdOf(one), call));
    if (rule === undefined) throw new AppError('not_found', `Mapping not found: ${id}`, { param: 'mapping' });
    return rule;
  }

  return {
    'webhooks.list': async (_params, call) => {
      const counts = new Map((await db.read(countDeliveries, { sinceMs: sinceMs() })).map((row) => [row.mappingId, row]));
      const visible = rules().filter((rule) => reaches(agentIdOf(rule), call));
      const webhooks = visible.map(({ mapping, policy, isBuiltIn }) => ({
        mapping: mapping.id,
        name: mapping.name ?? null,
        path: mapping.match.path ?? null,
        source: mapping.match.source ?? null,
        preset: mapping.preset ?? null,
        action: mapping.action,
        agentId: mapping.agentId ?? deps.defaultAgentId,
        signature: policy.kind,
        replay: mapping.replay,
        builtIn: isBuiltIn,
        deliveries: counts.get(mapping.id)?.count ?? 0,
        lastDeliveryAt: counts.get(mapping.id)?.lastAtMs ?? null,
      }));
      return { enabled: isEnabled(config.current), path: config.current.path, webhooks, total: webhooks.length };
    },

    'webhooks.deliveries': async ({ mapping, state, limit, before }, { identity: { agents: agentIds } }) => {
      const wanted = { mappingId: mapping, agentIds, state, beforeId: before, sinceMs: sinceMs(), limit: limit + 1 };
      const found = await db.read(listDeliveries, wanted);
      return { deliveries: found.slice(0, limit).map((row) => viewOf(row, deliver.keysOf)), hasMore: found.length > limit };
    },

    'webhooks.replay': async ({ deliveryId }, call) => {
      const row = await db.read(findDelivery, { id: deliveryId });
      if (row === undefined || row.receivedAtMs <= sinceMs() || !reaches(row.agentId, call))
        throw new AppError('not_found', 'Delivery not found', { param: 'deliveryId' });
      const rule = rules().find(({ mapping }) => mapping.id === row.mappingId);
      if (rule === undefined || rule.mapping.action !== row.action)
        throw new AppError('precondition_failed', `Mapping ${row.mappingId} no longer exists, or has a different action now`);
      if (row.ownState === 'ignored') throw new AppError('precondition_failed', 'This delivery was ignored, so there is nothing to replay');
      const agentId = deliver.agentOf(rule, row.agentId);
      const { conversationRef: ref, sessionKey } = row;
      const target = ref === null || sessionKey === null ? undefined : { ref, sessionKey, agentId, principalId: rule.principalId };
      const { id } = await deliver.take({
        rule,
        agentId,
        target,
        message: row.message,
        isPing: false,
        row: { ...rowOf(call), senderId: row.senderId, bodyDigest: row.bodyDigest, bodyBytes: row.bodyBytes, replayOf: row.id },
        principalId: call.identity.principalId,
      });
      return { deliveryId: id, replayOf: row.id };
    },

    'webhooks.test': async ({ mapping: id, payload, headers, run }, call) => {
      const rule = ruleOf(id, call);
      const path = rule.mapping.match.path ?? '';
      const body = Buffer.from(JSON.stringify(payload));
      const lowered = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
      const context = { headers: lowered, query: {}, path, now: new Date(clock.now()).toISOString() };
      // Tests this mapping whatever the payload contains.
      const only = { ...rule.reading, match: {} };
      const reading = await readOffThread({ rules: [only], body, isForm: false, isStrict: false, context });
      if (reading === undefined) throw new AppError('internal', 'A rule without conditions did not match');
      const source = valueAt(payload, ['source']);
      const taker = rules().find(({ mapping }) => wantsPath(mapping.match, path) && wantsSource(mapping.match, source));
      const takenBy = taker === undefined || !reaches(agentIdOf(taker), call) ? undefined : taker;
      const agentId = deliver.agentOf(rule);
      const target = deliver.targetOf(rule, agentId, reading.sessionKey);
      const senderId = reading.deliveryId ?? null;
      const taken = run
        ? await deliver.take({
            rule,
            agentId,
            target,
            message: reading.message,
            isPing: reading.isPing,
            row: { ...rowOf(call), senderId, bodyDigest: await digestBody(body), bodyBytes: body.length, replayOf: null },
            principalId: call.identity.principalId,
            synthetic: true,
          })
        : undefined;
      return {
        mapping: id,
        takenBy: takenBy?.mapping.id ?? null,
        sessionKey: target?.sessionKey ?? null,
        renderedKey: deliver.keysOf(target).renderedKey ?? null,
        conversationRef: target?.ref ?? null,
        message: reading.message,
        senderId,
        deliveryId: taken?.id ?? null,
      };
    },
  };
}

/** Returns row fields under which an operator's run never counts as a repeat. */
const rowOf = (call: CallContext) => ({ liveKey: null, remoteAddress: call.remoteAddress ?? null, traceId: call.traceId });

function viewOf(row: Listed, keysOf: Deliver['keysOf']): ResultInput<'webhooks.deliveries'>['deliveries'][number] {
  const result = DeliveryResult().safeParse(row.result);
  return {
    deliveryId: row.id,
    mapping: row.mappingId,
    action: row.action,
    state: row.state,
    agentId: row.agentId,
    conversationRef: row.conversationRef,
    sessionKey: row.sessionKey,
    renderedKey: (row.sessionKey === null ? undefined : keysOf({ sessionKey: row.sessionKey }).renderedKey) ?? null,
    senderId: row.senderId,
    message: row.message.slice(0, shownLength).toWellFormed(),
    bodyBytes: row.bodyBytes,
    bodyDigest: row.bodyDigest,
    remoteAddress: row.remoteAddress,
    receivedAt: row.receivedAtMs,
    endedAt: row.ownState === null ? row.endedAtMs : row.receivedAtMs,
    repeats: row.repeats,
    replayOf: row.replayOf,
    turnId: result.data?.turnId ?? null,
    finishReason: result.data?.finishReason ?? null,
    errorKind: row.errorKind,
    ...(result.data?.effectsRefused !== undefined && { effectsRefused: result.data.effectsRefused }),
    ...(result.data?.cause !== undefined && { cause: result.data.cause }),
    ...(row.waitingJson !== null && { waiting: viewOfWaitJson(row.waitingJson, true) }),
  };
}
