import type { Params, ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import type { AuditRow } from '../../../../kernel/db/audit.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import { newId } from '../../../../kernel/ids.ts';
import { sleep } from '../../../../kernel/timers.ts';
import { countRunning } from '../occurrences/occurrence-store.ts';
import { advanceReset, compareReset, type Digests, partsOf, prepareReset, readStatus, type ResetRequest } from './reset-store.ts';
import type { States } from './states.ts';

export interface ResetDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly bootId: string;
  readonly states: States;
  /** Restores the built-in jobs of agents. */
  readonly reconcile: (agentIds: readonly string[]) => Promise<void>;
  /** Wakes the scheduler, because jobs may be due. */
  readonly poke: () => void;
}

/** Maximum time that running jobs may take to finish. */
const drainMs = 30_000;
const checkMs = 500;

/** Implements `cron.reset`: compare, archive, replace, complete. A started reset always finishes, in this process or the next. */
export function createReset(deps: ResetDeps) {
  const { db, bus, clock, bootId, states } = deps;

  /** Waits for running jobs. Returns the identity that must not change meanwhile, apart from ended runs; undefined when nothing ran. */
  async function drain(agentId: string, about: Pick<ResetRequest, 'target' | 'expected'>, signal: AbortSignal): Promise<string | undefined> {
    if ((await db.read(countRunning, { agentId })) === 0) return undefined;
    const identity = await db.write(compareReset, { ...about, agentId });
    const untilMs = clock.now() + drainMs;
    while ((await db.read(countRunning, { agentId })) > 0) {
      signal.throwIfAborted();
      if (clock.now() >= untilMs) {
        states.note(agentId, { code: 'active_execution', errorKind: 'precondition' });
        throw new AppError('precondition_failed', `Jobs of agent ${agentId} are still running after ${drainMs / 1000} seconds; nothing was changed`);
      }
      await sleep(clock, checkMs, signal);
    }
    return identity;
  }

  /** Executes the remaining phases, starting after the recorded one. */
  async function rollForward(agentId: string): Promise<void> {
    while ((await db.write(advanceReset, { agentId, atMs: clock.now() })) !== null);
  }

  async function reset({ target, expectedDigests }: Params<'cron.reset'>, agentId: string, call: CallContext): Promise<ResultInput<'cron.reset'>> {
    const former = states.of(agentId);
    if (!states.enterMaintenance(agentId)) throw new AppError('conflict', `The schedule of agent ${agentId} is already being reset`);
    let repaired = false;
    try {
      let audit: AuditRow;
      const expected: Digests = Object.fromEntries(partsOf[target].map((part) => [part, expectedDigests[part] ?? null]));
      const operationId = newId('co');
      let beforeDigests: Digests;
      try {
        const identity = await drain(agentId, { target, expected }, call.signal);
        const atMs = clock.now();
        audit = auditRow(call, atMs, { actionType: 'cron.reset', classification: 'destructive', target: agentId, metadata: { part: target } });
        beforeDigests = await db.write(prepareReset, {
          agentId,
          operationId,
          target,
          expected,
          ...(identity !== undefined && { identity }),
          bootId,
          atMs,
          audit,
        });
      } catch (error) {
        if (error instanceof AppError && error.code === 'conflict')
          states.note(agentId, { code: error.details.param === undefined ? 'intent_present' : 'digest_mismatch', errorKind: 'precondition' });
        throw error;
      }
      announceAudit(bus, audit);
      await rollForward(agentId);
      repaired = true;
      await deps.reconcile([agentId]);
      // Digests expected by the next reset; they include the restored built-in jobs.
      const left = await db.read(readStatus, { agentId, principalId: null, bootId });
      states.leaveMaintenance(agentId, true);
      const state = states.of(agentId);
      if (state !== 'disabled' && state !== 'ready' && state !== 'active') throw new Error(`a reset schedule is ${state}`);
      return {
        operationId,
        target,
        resolvedAgentId: agentId,
        beforeDigests,
        afterDigests: Object.fromEntries(partsOf[target].map((part) => [part, left[part].digest])),
        state,
        reactivated: former === 'active' && state === 'active',
      };
    } finally {
      states.leaveMaintenance(agentId, repaired);
      deps.poke();
    }
  }

  return { reset, rollForward };
}
