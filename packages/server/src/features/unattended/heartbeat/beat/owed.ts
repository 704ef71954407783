import type { BeatFailure } from './beat.ts';

/** Agents whose beats fail at their provider, and which of them have events that no beat delivered. */
export class Owed {
  readonly #failedModels = new Map<string, string>();
  readonly #owing = new Set<string>();

  /** Whether events of the agent wait for its provider. */
  has(agentId: string): boolean {
    return this.#owing.has(agentId);
  }

  add(agentId: string): void {
    this.#owing.add(agentId);
  }

  /** Undefined when the provider was not at fault: then no recovery helps. */
  failed(agentId: string, failure: BeatFailure | undefined): void {
    this.#failedModels.set(agentId, failure?.model ?? '');
    if (failure === undefined) this.#owing.delete(agentId);
    else if (failure.owesEvents) this.#owing.add(agentId);
  }

  /** Whether a model that answers again may be the one that failed; after a restart any may be. */
  waitsFor(agentId: string, model: string): boolean {
    return (this.#failedModels.get(agentId) ?? model) === model;
  }

  forget(agentId: string): void {
    this.#failedModels.delete(agentId);
    this.#owing.delete(agentId);
  }
}
