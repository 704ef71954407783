import { AppError } from '../../../../kernel/app-error.ts';

/** Whether sub-agents are taken. Not kept: a restart opens it again. */
export class SpawnGate {
  #paused = false;
  #accepting = true;

  get state() {
    return { paused: this.#paused, acceptingSpawns: this.#accepting, resetsOnRestart: true as const };
  }

  /** Tells whether anything changed. */
  pause(paused: boolean): boolean {
    const changed = this.#paused !== paused;
    this.#paused = paused;
    return changed;
  }

  /** The daemon stops: nothing opens it again. */
  close(): void {
    this.#accepting = false;
  }

  /** Why nothing is taken now. */
  get refusal(): { readonly reason: 'paused' | 'stopping'; readonly error: AppError } | undefined {
    if (!this.#accepting)
      return { reason: 'stopping', error: new AppError('precondition_failed', 'No sub-agents are taken any more: the daemon is stopping') };
    if (this.#paused)
      return {
        reason: 'paused',
        error: new AppError('precondition_failed', 'No sub-agents are taken for now: spawning is paused (subagent.resume)'),
      };
    return undefined;
  }
}
