import type { BeatFailure } from './beat.ts';

/** Tracks agents whose beats fail because of their provider, and which of them have undelivered events. */
export class Owed {
  readonly #failedModels = new Map<string, string>();
  readonly #owing = new Set<string>();

  /** Returns whether events of the agent wait for its provider. */
  has(agentId: string): boolean {
    return this.#owing.has(agentId);
  }

  add(agentId: string): void {
    this.#owing.add(agentId);
  }

  /** Records a failure; `failure` is undefined when the provider was not at fault, so that recovery does not help. */
  failed(agentId: string, failure: BeatFailure | undefined): void {
    this.#failedModels.set(agentId, failure?.model ?? '');
    if (failure === undefined) this.#owing.delete(agentId);
    else if (failure.owesEvents) this.#owing.add(agentId);
  }

  /** Returns whether a recovered model may be the one that failed; after a restart any may be. */
  waitsFor(agentId: string, model: string): boolean {
    return (this.#failedModels.get(agentId) ?? model) === model;
  }

  forget(agentId: string): void {
    this.#failedModels.delete(agentId);
    this.#owing.delete(agentId);
  }
}
