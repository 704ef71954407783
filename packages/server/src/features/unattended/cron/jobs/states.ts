import type { Result } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';

type Status = Result<'cron.status'>;
export type LastError = NonNullable<Status['lastError']>;

/** State of each agent's schedule (json-rpc.md §3); a damaged one does not stop the others. */
export interface States {
  of(agentId: string): Status['state'];
  lastErrorOf(agentId: string): LastError | undefined;
  /** Returns the agents whose jobs must not start. */
  held(): readonly string[];
  /** Throws `precondition_failed` when nothing may be changed or run. */
  admit(agentId: string): void;
  fail(agentId: string, error: LastError): void;
  /** Records an error that stops nothing. */
  note(agentId: string, error: LastError): void;
  /** Returns false when the agent is already in maintenance. */
  enterMaintenance(agentId: string): boolean;
  leaveMaintenance(agentId: string, repaired: boolean): void;
  /** Marks recovery as finished. */
  initialized(): void;
  activate(): void;
  forget(agentId: string): void;
}

export function createStates({ isEnabled }: { readonly isEnabled: () => boolean }): States {
  const failed = new Set<string>();
  const maintained = new Set<string>();
  const errors = new Map<string, LastError>();
  let isInitialized = false;
  let isActive = false;

  function of(agentId: string): Status['state'] {
    if (maintained.has(agentId)) return 'maintenance';
    if (failed.has(agentId)) return 'failed';
    if (!isInitialized) return 'initializing';
    if (!isEnabled()) return 'disabled';
    return isActive ? 'active' : 'ready';
  }

  return {
    of,
    lastErrorOf: (agentId) => errors.get(agentId),
    held: () => [...failed, ...maintained],
    admit(agentId) {
      const state = of(agentId);
      if (state === 'initializing') throw new AppError('unavailable', 'The schedule is loading', { retryAfterMs: 1_000 });
      if (state === 'failed' || state === 'maintenance')
        throw new AppError(
          'precondition_failed',
          state === 'failed'
            ? `The schedule of agent ${agentId} is damaged; see cron.status for details, and use cron.reset to start over`
            : `The schedule of agent ${agentId} is being reset`,
        );
    },
    fail(agentId, error) {
      failed.add(agentId);
      errors.set(agentId, error);
    },
    note: (agentId, error) => void errors.set(agentId, error),
    enterMaintenance(agentId) {
      if (maintained.has(agentId)) return false;
      maintained.add(agentId);
      return true;
    },
    leaveMaintenance(agentId, repaired) {
      maintained.delete(agentId);
      if (!repaired) return;
      failed.delete(agentId);
      errors.delete(agentId);
    },
    initialized() {
      isInitialized = true;
    },
    activate() {
      isActive = true;
    },
    forget(agentId) {
      failed.delete(agentId);
      maintained.delete(agentId);
      errors.delete(agentId);
    },
  };
}

/** Waits for the recovery, and throws `precondition_failed` when nothing may be changed or run for this agent. */
export async function admit({ ready, states }: { readonly ready: Promise<void>; readonly states: States }, agentId: string): Promise<void> {
  await ready;
  states.admit(agentId);
}
