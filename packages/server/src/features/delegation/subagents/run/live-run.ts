import { AppError } from '../../../../kernel/app-error.ts';
import type { TurnSteering } from '../../../../runtime/turn.ts';
import type { Slot } from './slots.ts';
import type { RunRow } from './row.ts';

/** Why a run of this process is stopped. */
export type RunStop = 'killed' | 'watchdog' | 'queue_timeout';

/** A run that is queued or running in this process. */
export class LiveRun implements TurnSteering {
  /** True when the conversation is new, so there are no earlier messages to read. */
  readonly isNewConversation: boolean;
  slot: Slot | undefined;
  stopped: RunStop | undefined;
  /** Its final row, once it has ended. */
  ended: RunRow | undefined;
  readonly #aborter = new AbortController();
  readonly #steers: { readonly id: string; readonly text: string }[] = [];

  constructor(isNewConversation: boolean) {
    this.isNewConversation = isNewConversation;
  }

  get signal(): AbortSignal {
    return this.#aborter.signal;
  }

  /** Stops the run; the first reason counts. */
  stop(why: RunStop): void {
    if (this.stopped !== undefined) return;
    this.stopped = why;
    this.#aborter.abort(new AppError('cancelled', `The run was stopped: ${why}`));
  }

  /** Adds a message for the next step; a message that is already known is ignored. */
  steer(message: { readonly id: string; readonly text: string }): void {
    if (!this.#steers.some(({ id }) => id === message.id)) this.#steers.push(message);
  }

  take(): { readonly ids: readonly string[]; readonly text: string } | undefined {
    const taken = this.#steers.splice(0);
    return taken.length === 0 ? undefined : { ids: taken.map(({ id }) => id), text: taken.map(({ text }) => text).join('\n\n') };
  }
}
