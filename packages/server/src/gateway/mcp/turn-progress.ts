import type { Clock } from '../../kernel/clock.ts';
import type { EventBus } from '../../kernel/event-bus.ts';
import type { TurnSink } from '../../runtime/turn.ts';
import type { McpProgress } from './offer.ts';

/** Minimum interval between two reports. */
const paceMs = 500;
/** Interval of reports while nothing happens: clients give up on a call after a minute of silence. */
const silenceMs = 10_000;

export interface TurnReportDeps {
  readonly conversationRef: string;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly onProgress: (progress: McpProgress) => void;
}

/** Reports the progress of a turn, by the text that it writes and the tools that it calls, until disposed. */
export class TurnReport implements Disposable {
  readonly sink: TurnSink;
  readonly #deps: TurnReportDeps;
  readonly #startedMs: number;
  readonly #stopListening: () => void;
  #reports = 0;
  #characters = 0;
  #calls = 0;
  /** The tool call in progress. */
  #running: string | undefined;
  #lastMs: number;
  #cancel: () => void;

  constructor(deps: TurnReportDeps) {
    const { bus, clock, conversationRef } = deps;
    this.#deps = deps;
    this.#startedMs = clock.monotonic();
    this.#lastMs = this.#startedMs;
    this.#cancel = clock.after(silenceMs, () => this.#report());
    this.#stopListening = bus.listen(['tool:started', 'tool:finished'], ({ kind, payload }) => {
      if (!('callId' in payload) || payload.conversationRef !== conversationRef) return;
      if (kind === 'tool:started') this.#calls += 1;
      this.#running = kind === 'tool:started' ? `calling ${payload.toolName}` : undefined;
      this.#changed();
    });
    this.sink = {
      text: (fragment) => {
        this.#characters += fragment.length;
      },
      flush: () => {
        this.#changed();
        return true;
      },
      drained: () => Promise.resolve(),
    };
  }

  [Symbol.dispose](): void {
    this.#stopListening();
    this.#cancel();
  }

  #report(): void {
    const { clock, onProgress } = this.#deps;
    this.#cancel();
    this.#lastMs = clock.monotonic();
    this.#reports += 1;
    const seconds = Math.round((this.#lastMs - this.#startedMs) / 1000);
    const parts = [this.#running, `${this.#calls} tool call${this.#calls === 1 ? '' : 's'}`, `${this.#characters} characters`, `${seconds} s`];
    onProgress({ progress: this.#reports, message: parts.filter((part) => part !== undefined).join(', ') });
    this.#cancel = clock.after(silenceMs, () => this.#report());
  }

  #changed(): void {
    const { clock } = this.#deps;
    const waitMs = this.#lastMs + paceMs - clock.monotonic();
    if (this.#reports === 0 || waitMs <= 0) return this.#report();
    this.#cancel();
    this.#cancel = clock.after(waitMs, () => this.#report());
  }
}
