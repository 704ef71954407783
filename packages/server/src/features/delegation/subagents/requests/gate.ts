import { AppError } from '../../../../kernel/app-error.ts';

/** Decides whether sub-agents are accepted. Not stored: a restart opens it again. */
export class SpawnGate {
  #paused = false;
  #accepting = true;

  get state() {
    return { paused: this.#paused, acceptingSpawns: this.#accepting, resetsOnRestart: true as const };
  }

  /** Returns whether anything changed. */
  pause(paused: boolean): boolean {
    const changed = this.#paused !== paused;
    this.#paused = paused;
    return changed;
  }

  /** Closes the gate for good, because the daemon stops. */
  close(): void {
    this.#accepting = false;
  }

  /** Why no sub-agent is accepted now. */
  get refusal(): { readonly reason: 'paused' | 'stopping'; readonly error: AppError } | undefined {
    if (!this.#accepting)
      return { reason: 'stopping', error: new AppError('precondition_failed', 'No more sub-agents are accepted: the daemon is stopping') };
    if (this.#paused)
      return {
        reason: 'paused',
        error: new AppError('precondition_failed', 'No sub-agents are accepted: spawning is paused (subagent.resume)'),
      };
    return undefined;
  }
}
