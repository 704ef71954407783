import { AppError } from '../../../../kernel/app-error.ts';
import type { TurnSteering } from '../../../../runtime/turn.ts';
import type { Place } from './slots.ts';
import type { RunRow } from './row.ts';

/** Why a run of this process is stopped. */
export type RunStop = 'killed' | 'watchdog' | 'queue_timeout';

/** A run that waits or runs in this process. */
export class LiveRun implements TurnSteering {
  /** Earlier messages need not be looked for: there are none. */
  readonly isNewConversation: boolean;
  place: Place | undefined;
  stopped: RunStop | undefined;
  /** Once it has ended: its row as it is then. */
  ended: RunRow | undefined;
  readonly #aborter = new AbortController();
  readonly #steers: { readonly id: string; readonly text: string }[] = [];

  constructor(isNewConversation: boolean) {
    this.isNewConversation = isNewConversation;
  }

  get signal(): AbortSignal {
    return this.#aborter.signal;
  }

  /** The first reason holds. */
  stop(why: RunStop): void {
    if (this.stopped !== undefined) return;
    this.stopped = why;
    this.#aborter.abort(new AppError('cancelled', `The run was stopped: ${why}`));
  }

  /** A message for the next step; known ones are not taken twice. */
  steer(message: { readonly id: string; readonly text: string }): void {
    if (!this.#steers.some(({ id }) => id === message.id)) this.#steers.push(message);
  }

  take(): { readonly ids: readonly string[]; readonly text: string } | undefined {
    const taken = this.#steers.splice(0);
    return taken.length === 0 ? undefined : { ids: taken.map(({ id }) => id), text: taken.map(({ text }) => text).join('\n\n') };
  }
}
