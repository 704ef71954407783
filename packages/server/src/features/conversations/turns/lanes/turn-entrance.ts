import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Admissions, Admitted } from './admission.ts';
import type { TurnEntry, TurnLanes } from './turn-lanes.ts';

/** The way of every turn to its conversation. */
export interface TurnEntrance {
  /** Throws `unavailable` when no turn may run at all. */
  assertOpen(): void;
  /** Waits for the lane of the conversation and runs there, as a turn that can be stopped from now on. */
  enter<T>(entry: Omit<TurnEntry, 'signal'>, call: CallContext, run: (admitted: Admitted) => Promise<T>): Promise<T>;
}

export function createTurnEntrance(admissions: Admissions, lanes: TurnLanes, unavailableReason: string | undefined): TurnEntrance {
  return {
    assertOpen() {
      if (unavailableReason !== undefined) throw new AppError('unavailable', unavailableReason);
    },
    enter: (entry, call, run) =>
      admissions.admit({ agentId: entry.agent.id, conversationRef: entry.target.ref }, call, (admitted) =>
        lanes.enter({ ...entry, signal: admitted.controller.signal }, () => run(admitted)),
      ),
  };
}
