import { append, toFragment, textOf } from '../kernel/json-fragment.ts';
import type { ModelSink } from '../llm/model.ts';

/** Reasoning that was streamed before a message: stored for people who read the conversation, never sent to a model. */
export interface Thought {
  readonly text: string;
  readonly durationMs: number;
  /** The rest was left out. */
  readonly isCut?: true;
}

/** Characters of reasoning that are kept with one message. */
export const maxThought = 32_000;

/** Collects the reasoning of one model call while it is streamed. */
export class ThoughtCollector {
  readonly #monotonic: () => number;
  #fragments = toFragment('');
  #startedAtMs: number | undefined;
  #endedAtMs = 0;
  #isCut = false;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Returns a sink that passes everything on; text takes no detour. */
  watch(sink: ModelSink): ModelSink {
    const { thinking, onlyWatched } = sink;
    return {
      thinking: {
        fragment: (fragment) => {
          this.#endedAtMs = this.#monotonic();
          this.#startedAtMs ??= this.#endedAtMs;
          // Escapes make fragments longer than their text, which is cut at its end.
          if (this.#fragments.length < 2 * maxThought) this.#fragments = append(this.#fragments, fragment);
          else this.#isCut = true;
          thinking?.fragment(fragment);
        },
        block: (block) => thinking?.block(block),
      },
      text: sink.text.bind(sink),
      flush: sink.flush.bind(sink),
      drained: sink.drained.bind(sink),
      ...(onlyWatched === true && { onlyWatched }),
    };
  }

  /** Returns what was collected; undefined when the model returned no reasoning. */
  end(hide: (text: string) => string): Thought | undefined {
    if (this.#startedAtMs === undefined) return undefined;
    const whole = hide(textOf(this.#fragments)).trim();
    if (whole === '') return undefined;
    const text = whole.slice(0, maxThought).toWellFormed();
    return { text, durationMs: Math.round(this.#endedAtMs - this.#startedAtMs), ...((this.#isCut || text.length < whole.length) && { isCut: true }) };
  }
}
