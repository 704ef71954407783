import type { Clock } from '../../../../kernel/clock.ts';

type Outputs = Record<string, string | null>;

/** How many ended graphs are answered from memory, and for how long. */
const maxRemembered = 20;
const rememberedMs = 10 * 60_000;

/** Keeps the outputs of graphs that ended here a short while ago. */
export class EndedOutputs {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #ended = new Map<string, { readonly outputs: Outputs; readonly untilMs: number }>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  remember(graphId: string, outputs: Outputs): void {
    const nowMs = this.#clock.now();
    this.#ended.set(graphId, { outputs, untilMs: nowMs + rememberedMs });
    for (const [id, { untilMs }] of this.#ended) if (this.#ended.size > maxRemembered || untilMs <= nowMs) this.#ended.delete(id);
  }

  get(graphId: string): Outputs | undefined {
    const kept = this.#ended.get(graphId);
    return kept !== undefined && kept.untilMs > this.#clock.now() ? kept.outputs : undefined;
  }

  forget(graphId: string): void {
    this.#ended.delete(graphId);
  }
}
