import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { Log } from '../../../../kernel/log.ts';
import { sleep } from '../../../../kernel/timers.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { WorkHandler, WorkItem } from '../../durable/api.ts';
import type { EndpointsApi } from '../../../channels/delivery/api.ts';
import type { InboxApi, InboxMessage } from '../../inbox/api.ts';
import type { HeartbeatConfig } from '../config.ts';
import type { HeartbeatStateRow } from '../store.ts';
import type { Coalescer, Occurrence } from '../timing/coalescer.ts';
import { type Alert, afterFailure, healthy } from './health.ts';
import { messagesOf } from './messages.ts';
import type { BeatEnd, BeatEnding, HeartbeatOperations } from './operations.ts';
import { BeatPayload, type BeatResult, resultOf, statusOf } from './result.ts';
import { type BeatTurnDeps, runBeatTurn } from './run-turn.ts';

export interface BeatDeps extends BeatTurnDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly inbox: InboxApi;
  readonly endpoints: Pick<EndpointsApi, 'address'>;
  readonly operations: Pick<HeartbeatOperations, 'end'>;
  readonly coalescer: Coalescer;
  /** See `BeginDeps`. */
  readonly beginning: ReadonlyMap<string, Promise<boolean>>;
  readonly settingsOf: (agent: Agent) => HeartbeatConfig;
  readonly fingerprintOf: (agent: Agent) => string;
  readonly stateOf: (agentId: string) => HeartbeatStateRow;
  /** Called when the state of an agent, and with it the time of its next beat, has changed. */
  readonly changed: (state: HeartbeatStateRow, failure: BeatFailure | undefined) => void;
}

/** A beat that failed because of its provider; its events, if any, are queued again. */
export interface BeatFailure {
  readonly model: string;
  readonly owesEvents: boolean;
}

type Beat = Pick<WorkItem, 'id'> & { readonly agentId: string; readonly occurrence: Occurrence; readonly eventCount: number };

interface HowEnded {
  /** Present when the turn has not settled its work itself. */
  readonly item?: WorkItem;
  readonly isUnknown?: boolean;
  readonly signal?: AbortSignal;
}

/** Delay before retrying to store the end of a beat. */
const firstRetryMs = 1_000;
const longestRetryMs = 60_000;

/** Runs the turns of beats and handles their results. */
export function createBeats(deps: BeatDeps) {
  const { db, bus, clock, log, coalescer } = deps;

  const handler: WorkHandler = async (item, signal) => {
    const payload = BeatPayload().parse(item.payload);
    const begun = deps.beginning.get(item.id);
    const { correlationId, lane, reason, startedAtMs, eventCount } = payload;
    const agentId = item.agentId ?? '';
    const occurrence = { correlationId, lane, reason, startedAtMs, agentId };
    const beat = { id: item.id, agentId, occurrence, eventCount };
    coalescer.adopt(occurrence);
    const agent = deps.agents.find(agentId);
    const settings = agent === undefined ? undefined : deps.settingsOf(agent);
    if (agent === undefined || settings?.enabled !== true || agent.suspended) return abandon(beat, item);
    let result: BeatResult;
    let isUnknown = false;
    try {
      const { settled, state, ...outcome } = await runBeatTurn(deps, { item, payload, agent, settings, signal });
      if (!settled && begun !== undefined && !(await begun)) return 'settled';
      if (!settled) {
        coalescer.end(occurrence, { status: 'unsettled', eventCount, errorKind: 'lost_claim' });
        return 'settled';
      }
      // The beat waits for an approval; the occurrence ends with it.
      if (state === 'accepted') return 'settled';
      isUnknown = state === 'unknown';
      result = resultOf(outcome, settings);
    } catch (error) {
      // Without its acceptance nothing of it was stored; who wanted to begin it reports that.
      if (begun !== undefined && !(await begun)) return 'settled';
      // The next start resumes the beat.
      if (signal.aborted) throw error;
      if (!(error instanceof AppError)) log.error({ agentId, err: error }, 'Heartbeat failed');
      const errorKind = error instanceof AppError ? error.code : 'internal';
      await finish(beat, { kind: 'failed', errorKind, spoke: false }, { item, signal });
      return 'settled';
    }
    await finish(beat, result, { isUnknown, signal });
    return 'settled';
  };

  /** Ends a beat that was switched off after its admission; its events stay queued for the next one. */
  async function abandon(beat: Beat, item: WorkItem) {
    const errorKind = 'agent_unavailable';
    await db.write(deps.operations.end, {
      workId: beat.id,
      agentId: beat.agentId,
      handled: false,
      messages: [],
      once: false,
      settle: { claim: item, errorKind },
      atMs: clock.now(),
      ageNowMs: clock.ageNow(),
    });
    coalescer.end(beat.occurrence, { status: 'aborted', eventCount: beat.eventCount, errorKind });
    return 'settled' as const;
  }

  /**
   * Stores and announces the result of a beat, once. With a signal it retries failed writes until the daemon stops; otherwise a beat
   * whose turn is settled would be reported both now and by the next start, in different ways.
   */
  async function finish(beat: Beat, result: BeatResult, how: HowEnded = {}): Promise<void> {
    const { agentId, occurrence, eventCount } = beat;
    const { ending, messages, state, alert, failure } = planEnd(deps, beat, { ...how, result });
    const { closed, delivered } = await writeEnd(deps, ending, how.signal);
    if (closed) {
      if (state !== undefined) deps.changed(state, failure);
      for (const message of messages) if (delivered.includes(message.id)) deps.inbox.announce(message);
      if (alert !== undefined) bus.emit('scheduler:heartbeat_alert', { agentId, ...withoutOwed(alert), timestamp: ending.atMs });
    }
    const errorKind = result.kind === 'failed' ? { errorKind: result.errorKind } : {};
    coalescer.end(occurrence, { status: statusOf(result, how.isUnknown === true), eventCount, ...errorKind });
  }

  /** Ends a beat during which processes died repeatedly; its effects are unknown. A committed turn is left to the next start. */
  async function gaveUp(item: WorkItem, errorKind: string): Promise<void> {
    const { correlationId, lane, reason, startedAtMs, eventCount } = BeatPayload().parse(item.payload);
    const agentId = item.agentId ?? '';
    const occurrence = { correlationId, lane, reason, startedAtMs, agentId };
    coalescer.adopt(occurrence);
    await finish({ id: item.id, agentId, occurrence, eventCount }, { kind: 'failed', errorKind, spoke: true }, { item, isUnknown: true });
  }

  return { handler, finish, gaveUp };
}

/** Returns what to store at the end of a beat, and what to announce after it. */
function planEnd(
  deps: BeatDeps,
  { id: workId, agentId, eventCount }: Beat,
  { result, item, isUnknown = false }: HowEnded & { readonly result: BeatResult },
) {
  const { clock } = deps;
  const atMs = clock.now();
  const agent = deps.agents.find(agentId);
  const settings = agent === undefined ? undefined : deps.settingsOf(agent);
  const before = deps.stateOf(agentId);
  const failedModel = result.kind === 'failed' ? result.failedModel : undefined;
  const owesEvents = failedModel !== undefined && eventCount > 0 && !isUnknown;
  const { state, alert } =
    result.kind === 'failed' && agent !== undefined && settings !== undefined
      ? afterFailure(
          before,
          { kind: result.errorKind, atMs, fingerprint: deps.fingerprintOf(agent), owesEvents, retryAfterMs: result.retryAfterMs },
          settings,
        )
      : { state: healthy(before), alert: undefined };
  const messages: InboxMessage[] =
    settings === undefined
      ? []
      : messagesOf({ id: workId, target: deps.targetOf(agentId) }, { result, alert, atMs }, settings, deps.endpoints.address);
  const ending: BeatEnding = {
    workId,
    agentId,
    // Events that may have been acted on are not delivered again.
    handled: result.kind !== 'failed' || isUnknown,
    ...(agent !== undefined && { state }),
    messages,
    once: result.kind === 'tell',
    ...(item !== undefined && result.kind === 'failed' && { settle: { claim: item, errorKind: result.errorKind } }),
    atMs,
    ageNowMs: clock.ageNow(),
  };
  const failure = failedModel === undefined ? undefined : { model: failedModel, owesEvents };
  return { ending, messages, alert, failure, state: agent === undefined ? undefined : state };
}

async function writeEnd({ db, clock, log, operations }: BeatDeps, ending: BeatEnding, signal: AbortSignal | undefined): Promise<BeatEnd> {
  for (let waitMs = firstRetryMs; ; waitMs = Math.min(longestRetryMs, 2 * waitMs)) {
    try {
      return await db.write(operations.end, ending);
    } catch (error) {
      if (signal === undefined || signal.aborted) throw error;
      log.error({ agentId: ending.agentId, err: error, waitMs }, 'Failed to store the result of a heartbeat; retrying');
    }
    await sleep(clock, waitMs, signal);
    signal.throwIfAborted();
  }
}

const withoutOwed = ({ owesEvents: _, ...alert }: Alert) => alert;
