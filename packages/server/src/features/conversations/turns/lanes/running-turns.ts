import type { TurnOrigin } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { isSynthetic, type PreparedTurn } from '../running/turn-input.ts';
import { type Admissions, type Admitted, isMeant, type StopScope } from './admission.ts';

/** A running turn that is the root of the work it starts. */
export interface RootTurn {
  readonly rootRunId: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string;
  readonly origin: TurnOrigin;
  readonly startedAtMs: number;
}

/** The turns that are running or waiting for their lane, seen from outside: what they are, and how they are stopped. */
export interface RunningTurns {
  /** Returns the running root turn of a root run. */
  rootTurn(rootRunId: string): RootTurn | undefined;
  /** Returns the running turns that are not sub-agent turns, newest first. */
  rootTurns(): readonly RootTurn[];
  /**
   * Returns the running turn of a conversation that takes messages: it belongs to a request. One that survives its process would have to continue
   * with them.
   */
  taking(conversationRef: string): Pick<Admitted, 'tokenId' | 'agentId' | 'messages' | 'running'> | undefined;
  /** Aborts the root's own turns. Sub-agent turns are stopped by their runner after their ends are committed. */
  abortRoot(rootRunId: string, reason: AppError): void;
  /**
   * Aborts the waiting and running turns within `scope`. Sub-agent turns acting for a token are left to the kill of their
   * roots, which are returned.
   */
  stop(scope: StopScope, reason: AppError): readonly string[];
  /** Aborts all waiting and running turns; used when the drain timeout has passed. */
  abortAll(): void;
}

export function createRunningTurns(admissions: Admissions): RunningTurns {
  const rootTurns = (): readonly RootTurn[] =>
    admissions
      .members()
      .flatMap(({ running }) => {
        if (running === undefined || running.calling.run !== undefined) return [];
        const { turn, calling, startedAtMs } = running;
        const { target, agent, origin } = turn;
        return [
          { rootRunId: calling.rootRunId, agentId: agent.id, principalId: target.principalId, conversationRef: target.ref, origin, startedAtMs },
        ];
      })
      .toSorted((a, b) => b.startedAtMs - a.startedAtMs);

  const ofRoot = (rootRunId: string) =>
    admissions.members().filter(({ running }) => running?.calling.rootRunId === rootRunId && running.calling.run === undefined);

  return {
    rootTurn: (rootRunId) => rootTurns().find((turn) => turn.rootRunId === rootRunId),
    rootTurns,
    taking: (conversationRef) =>
      admissions.members().find((one) => one.conversationRef === conversationRef && one.running?.turn.kept === true && !isFixed(one.running.turn)),
    abortRoot(rootRunId, reason) {
      for (const admitted of ofRoot(rootRunId)) admissions.stop(admitted, reason);
    },
    stop(scope, reason) {
      const roots = new Set<string>();
      for (const admitted of admissions.members()) {
        if (!isMeant(admitted, scope)) continue;
        const calling = admitted.running?.calling;
        if ('tokenId' in scope && calling?.run !== undefined) roots.add(calling.rootRunId);
        else admissions.stop(admitted, reason);
      }
      return [...roots];
    },
    abortAll() {
      for (const admitted of admissions.members()) admissions.stop(admitted, new AppError('unavailable', 'The daemon is stopping'));
    },
  };
}

const isFixed = (turn: PreparedTurn): boolean => turn.durable !== undefined || isSynthetic(turn);
