import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext, CallingTurn } from '../../../../kernel/call-context.ts';
import { Roster } from '../../../../kernel/roster.ts';
import type { PreparedTurn } from '../running/turn-input.ts';
import { TurnMessages } from './turn-messages.ts';

/** Selects the turns to stop: those acting for a token, those of an agent, or those of a conversation. */
export type StopScope = { readonly tokenId: string } | { readonly agentId: string } | { readonly conversationRef: string };

/** A turn from its admission to its end; it can be stopped while it waits for its lane and while it runs. */
export interface Admitted {
  /** The caller's context, with the signal of the turn. */
  readonly call: CallContext;
  readonly tokenId: string;
  readonly agentId: string;
  readonly conversationRef: string;
  readonly controller: AbortController;
  /** What its author says while it runs. */
  readonly messages: TurnMessages;
  /** Why the turn was stopped; undefined when it was not, or when its caller left. */
  stoppedBy: AppError | undefined;
  /** Present while the turn runs. */
  running: { readonly turn: PreparedTurn; readonly calling: CallingTurn; readonly startedAtMs: number } | undefined;
}

export interface Admissions {
  /** Runs `work` as a turn that can be stopped. A turn stopped before it runs fails with the reason of the stop. */
  admit<T>(about: Pick<Admitted, 'agentId' | 'conversationRef'>, call: CallContext, work: (admitted: Admitted) => Promise<T>): Promise<T>;
  members(): readonly Admitted[];
  /** Aborts a turn with the reason reported to its caller. */
  stop(admitted: Admitted, reason: AppError): void;
}

/** Tracks every turn that is running or waiting for its lane. */
export function createAdmissions(): Admissions {
  const present = new Roster<Admitted>();
  return {
    async admit({ agentId, conversationRef }, call, work) {
      const controller = new AbortController();
      const abort = () => controller.abort(call.signal.reason);
      if (call.signal.aborted) abort();
      else call.signal.addEventListener('abort', abort, { once: true });
      const admitted: Admitted = {
        call: { ...call, signal: controller.signal },
        tokenId: call.identity.tokenId,
        agentId,
        conversationRef,
        controller,
        messages: new TurnMessages(),
        stoppedBy: undefined,
        running: undefined,
      };
      const leave = present.join(admitted);
      try {
        return await work(admitted);
      } catch (error) {
        // The lane only reports that the wait was aborted.
        throw admitted.stoppedBy !== undefined && error instanceof AppError && error.code === 'cancelled' ? admitted.stoppedBy : error;
      } finally {
        leave();
        admitted.messages.close();
        call.signal.removeEventListener('abort', abort);
      }
    },
    members: () => present.members(),
    stop(admitted, reason) {
      admitted.stoppedBy ??= reason;
      admitted.controller.abort(reason);
    },
  };
}

export function isMeant(admitted: Admitted, scope: StopScope): boolean {
  if ('tokenId' in scope) return admitted.tokenId === scope.tokenId;
  return 'agentId' in scope ? admitted.agentId === scope.agentId : admitted.conversationRef === scope.conversationRef;
}
