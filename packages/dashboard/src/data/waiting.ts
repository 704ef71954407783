import { t } from '../language.ts';
import type { Client, GatehouseError } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import { isRateLimited } from './errors.ts';
import type { FeedEntry, LiveEvents } from './live.ts';
import type { RequestQuota } from './request-quota.ts';
import { createStore, type Store } from './store.ts';

type GraphView = Extract<Result<'graph.status'>, { executionOrder: unknown }>;
export type WaitingJob = Result<'cron.list'>['jobs'][number];
export type WaitingPairing = Result<'channels.pairings'>['pairings'][number];
export type WaitingMessage = Result<'delivery.list'>['deliveries'][number];
export type WaitingWebhook = Result<'webhooks.deliveries'>['deliveries'][number];

interface Common {
  /** Names this occurrence of the item: what fails again is a new item. */
  readonly key: string;
  readonly sinceMs: number;
}

/** What waits for a decision of the user, apart from approvals. */
export type WaitingItem =
  | (Common & { readonly kind: 'gate'; readonly graphId: string; readonly nodeId: string; readonly graph: string; readonly question: string })
  | (Common & { readonly kind: 'pairing'; readonly pairing: WaitingPairing })
  | (Common & { readonly kind: 'message'; readonly message: WaitingMessage })
  | (Common & { readonly kind: 'job'; readonly job: WaitingJob })
  | (Common & { readonly kind: 'webhook'; readonly webhook: WaitingWebhook });

/** What was read; parts that the token may not read are empty. */
export interface WaitingParts {
  readonly graphs: readonly GraphView[];
  readonly jobs: readonly WaitingJob[];
  readonly pairings: readonly WaitingPairing[];
  readonly messages: readonly WaitingMessage[];
  readonly webhooks: readonly WaitingWebhook[];
}

export interface WaitingState {
  /** Oldest first within a kind. */
  readonly items: readonly WaitingItem[];
  readonly loading: boolean;
  readonly error: unknown;
}

export interface WaitingForUser {
  readonly state: Store<WaitingState>;
  reload(): void;
  /** Hides a failure in this browser. */
  dismiss(key: string): void;
  close(): void;
}

const settleMs = 150;
/** Minimum time between two loads that events cause: a load is several calls, which count against the rate limit of the token. */
const leastReloadMs = 2_000;
const maxPerKind = 50;
/** Rejected messages are kept for a month; older ones no longer want a decision. */
const maxMessageAgeMs = 7 * 86_400_000;
const failedStates = ['failed', 'unknown'] as const;

/** Lists what waits, from what was read. */
export function itemsOf({ graphs, jobs, pairings, messages, webhooks }: WaitingParts, nowMs: number): WaitingItem[] {
  return [
    ...graphs.flatMap(gatesOf),
    ...pairings.map((pairing) => ({ kind: 'pairing' as const, key: pairing.pairingId, sinceMs: pairing.requestedAt, pairing })),
    ...jobs.flatMap((job) => {
      const failure = failureOf(job);
      return failure === undefined ? [] : [{ kind: 'job' as const, job, ...failure }];
    }),
    ...messages
      .filter(({ endedAt, createdAt }) => nowMs - (endedAt ?? createdAt) < maxMessageAgeMs)
      .map((message) => ({
        kind: 'message' as const,
        key: `${message.deliveryId} ${message.attempts}`,
        sinceMs: message.endedAt ?? message.createdAt,
        message,
      })),
    ...webhooks.map((webhook) => ({
      kind: 'webhook' as const,
      key: webhook.deliveryId,
      sinceMs: webhook.endedAt ?? webhook.receivedAt,
      webhook,
    })),
  ].toSorted((a, b) => a.sinceMs - b.sinceMs);
}

function gatesOf({ graphId, label, nodes }: GraphView): WaitingItem[] {
  return Object.entries(nodes).flatMap(([nodeId, { waitsForAnswer, question, task, startedAt }]) =>
    waitsForAnswer === true
      ? [
          {
            kind: 'gate' as const,
            key: `${graphId} ${nodeId}`,
            sinceMs: startedAt ?? 0,
            graphId,
            nodeId,
            graph: label ?? t('Graph'),
            question: question ?? task ?? '',
          },
        ]
      : [],
  );
}

/** Returns the failure of a job that nothing retries; a job that a person paused is already decided. */
function failureOf({ id, source, lifecycle, lastRun }: WaitingJob): Common | undefined {
  if (source !== 'authored') return undefined;
  const atMs = lastRun?.terminalAtMs ?? lastRun?.startedAtMs ?? 0;
  if (lifecycle.state === 'paused')
    return lifecycle.reason === 'dependency_errors' ? { key: `${id} paused ${lastRun?.executionId ?? ''}`, sinceMs: atMs } : undefined;
  if (lastRun === undefined || !failedStates.some((state) => state === lastRun.status)) return undefined;
  return { key: lastRun.executionId, sinceMs: atMs };
}

/** True when an event may change what waits. */
export function isRelevant({ kind, payload }: Pick<FeedEntry, 'kind' | 'payload'>, items: readonly WaitingItem[]): boolean {
  const event = new Map<string, unknown>(typeof payload === 'object' && payload !== null ? Object.entries(payload) : []);
  const isFailed = (state: unknown): boolean => failedStates.some((one) => one === state);
  switch (kind) {
    case 'gap':
      return true;
    case 'graph:node_updated': {
      const isListed = items.some((one) => one.kind === 'gate' && one.graphId === event.get('graphId') && one.nodeId === event.get('nodeId'));
      return isListed !== (event.get('waitsForAnswer') === true);
    }
    case 'graph:completed':
      return items.some((one) => one.kind === 'gate' && one.graphId === event.get('graphId'));
    case 'scheduler:cron_execution_started':
    case 'scheduler:cron_execution_terminal':
      return isFailed(event.get('executionStatus')) || items.some((one) => one.kind === 'job' && one.job.id === event.get('jobId'));
    case 'channel:message':
      return event.get('verdict') === 'pairing';
    case 'channel:delivery':
      return (
        ['unknown', 'rejected', 'expired'].includes(String(event.get('state'))) ||
        items.some((one) => one.kind === 'message' && one.message.deliveryId === event.get('deliveryId'))
      );
    case 'webhook:delivery':
      return isFailed(event.get('state'));
    case 'audit:event':
      return /^(?:channels\.(?:un)?pair|delivery\.)/.test(String(event.get('actionType')));
    default:
      return false;
  }
}

const ownWork = [{ method: 'graph.status', params: { recentMinutes: 1 } }, { method: 'cron.list' }] as const;

async function read(client: Pick<Client, 'batch'>, admin: boolean): Promise<WaitingParts> {
  if (!admin) {
    const [recent, jobs] = await client.batch(ownWork);
    return { graphs: await readGates(client, resultOf(recent)), jobs: resultOf(jobs)?.jobs ?? [], pairings: [], messages: [], webhooks: [] };
  }
  const [recent, jobs, pairings, queued, ...failed] = await client.batch([
    ...ownWork,
    { method: 'channels.pairings', params: { state: 'pending', limit: maxPerKind } },
    { method: 'delivery.queue.status' },
    { method: 'webhooks.deliveries', params: { state: 'failed', limit: maxPerKind } },
    { method: 'webhooks.deliveries', params: { state: 'unknown', limit: maxPerKind } },
  ]);
  const [graphs, messages] = await Promise.all([readGates(client, resultOf(recent)), readMessages(client, resultOf(queued))]);
  return {
    graphs,
    jobs: resultOf(jobs)?.jobs ?? [],
    pairings: resultOf(pairings)?.pairings ?? [],
    messages,
    webhooks: failed.flatMap((one) => resultOf(one)?.deliveries ?? []),
  };
}

type Read<T> = { readonly ok: true; readonly result: T } | { readonly ok: false; readonly error: GatehouseError };

/** Returns what was read; undefined for what the token may not read, or what is switched off. */
function resultOf<T>(outcome: Read<T> | undefined): T | undefined {
  if (outcome === undefined) return undefined;
  if (outcome.ok) return outcome.result;
  if (['insufficient_scope', 'denied', 'not_found', 'method_not_found', 'precondition_failed'].includes(outcome.error.code)) return undefined;
  throw outcome.error;
}

async function readGates(client: Pick<Client, 'batch'>, list: Result<'graph.status'> | undefined): Promise<GraphView[]> {
  const asking = (list !== undefined && 'graphs' in list ? list.graphs : []).filter(({ mayAnswer }) => mayAnswer === true).slice(0, maxPerKind);
  if (asking.length === 0) return [];
  const views = await client.batch(asking.map(({ graphId }) => ({ method: 'graph.status', params: { graphId } }) as const));
  return views.flatMap((outcome) => {
    const view = resultOf(outcome);
    return view !== undefined && 'executionOrder' in view ? [view] : [];
  });
}

async function readMessages(client: Pick<Client, 'batch'>, counts: Result<'delivery.queue.status'> | undefined): Promise<WaitingMessage[]> {
  if (counts === undefined) return [];
  const states = (['unknown', 'rejected', 'expired'] as const).filter((state) => counts[state === 'rejected' ? 'failed' : state] > 0);
  if (states.length === 0) return [];
  const lists = await client.batch(states.map((state) => ({ method: 'delivery.list', params: { state, limit: maxPerKind } }) as const));
  return lists.flatMap((outcome) => resultOf(outcome)?.deliveries ?? []);
}

const storageKey = 'gatehouse.dismissed';
const maxDismissed = 500;

function storedKeys(): readonly string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(storageKey) ?? '[]');
    return Array.isArray(kept) ? kept.filter((one): one is string => typeof one === 'string') : [];
  } catch {
    return [];
  }
}

/** Questions of graphs, pairing requests and failed work, kept up to date by the event stream. */
export function createWaiting(
  client: Pick<Client, 'batch'>,
  live: Pick<LiveEvents, 'listen'>,
  admin: boolean,
  quota?: Pick<RequestQuota, 'pauseMs'>,
): WaitingForUser {
  const state = createStore<WaitingState>({ items: [], loading: true, error: undefined });
  let all: readonly WaitingItem[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let loadedAt = 0;
  let round = 0;

  function show(change: Partial<WaitingState> = {}): void {
    const dismissed = new Set(storedKeys());
    state.set({ ...state.get(), ...change, items: all.filter(({ key }) => !dismissed.has(key)) });
  }

  function load(): void {
    clearTimeout(timer);
    timer = undefined;
    loadedAt = Date.now();
    round += 1;
    const mine = round;
    read(client, admin).then(
      (parts) => {
        if (mine !== round) return;
        all = itemsOf(parts, Date.now());
        show({ loading: false, error: undefined });
      },
      (error: unknown) => {
        if (mine !== round) return;
        show({ loading: false, error });
        if (isRateLimited(error)) timer ??= setTimeout(load, error.retryAfterMs);
      },
    );
  }

  const onStorage = ({ key }: StorageEvent): void => {
    if (key === storageKey) show();
  };
  addEventListener('storage', onStorage);
  const stop = live.listen((entry) => {
    if (isRelevant(entry, all)) timer ??= setTimeout(load, Math.max(settleMs, loadedAt + leastReloadMs - Date.now(), quota?.pauseMs() ?? 0));
  });
  // After what the first page needs.
  timer = setTimeout(load, settleMs);
  return {
    state,
    reload: load,
    dismiss(key) {
      localStorage.setItem(storageKey, JSON.stringify([...storedKeys().filter((one) => one !== key), key].slice(-maxDismissed)));
      show();
    },
    close() {
      round += 1;
      clearTimeout(timer);
      removeEventListener('storage', onStorage);
      stop();
    },
  };
}
