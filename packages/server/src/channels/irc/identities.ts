import type { WireClock } from '../port.ts';
import { formatLine, type Line } from './line.ts';

/** A nick may be taken by somebody else at any moment: what the server said of it counts for so long. */
const knownMs = 10_000;
/** Nicks that are known at the same time. */
const most = 256;

/** The holder of a nick: ids as those of senders; undefined when nobody has it. */
export type Holder = readonly string[] | undefined;

interface Asked {
  readonly ids: string[];
  readonly answer: Promise<Holder | 'unclear'>;
  readonly settle: (holder: Holder | 'unclear') => void;
}

/** Asks the server who has a nick. */
export class Identities {
  readonly #clock: WireClock;
  readonly #waitMs: number;
  readonly #asked = new Map<string, Asked>();
  readonly #known = new Map<string, { readonly ids: readonly string[]; readonly at: number }>();

  constructor(clock: WireClock, waitMs: number) {
    this.#clock = clock;
    this.#waitMs = waitMs;
  }

  /** Returns who has a nick; `unclear` when the server does not say so in time. */
  async holderOf(nick: string, folded: string, write: (line: string) => void): Promise<Holder | 'unclear'> {
    const known = this.#known.get(folded);
    if (known !== undefined && this.#clock.monotonic() - known.at < knownMs) return known.ids;
    const pending = this.#asked.get(folded) ?? this.#ask(folded);
    if (this.#asked.get(folded) !== pending) {
      this.#asked.set(folded, pending);
      write(formatLine('WHOIS', [nick]));
    }
    return pending.answer;
  }

  /** Somebody has left the nick. */
  forget(folded: string): void {
    this.#known.delete(folded);
  }

  /** Returns whether the line answers a question. */
  takes({ command, params }: Line, fold: (name: string) => string): boolean {
    const folded = fold(params[1] ?? '');
    const asked = this.#asked.get(folded);
    if (asked === undefined) return false;
    switch (command) {
      case '311':
        asked.ids.push(fold(`${params[1]}!${params[2]}@${params[3]}`));
        return true;
      case '330':
        asked.ids.push(`account:${fold(params[2] ?? '')}`);
        return true;
      case '318':
        if (asked.ids.length > 0) this.#remember(folded, asked.ids);
        asked.settle(asked.ids.length > 0 ? asked.ids : undefined);
        return true;
      case '401':
        return true;
      default:
        return false;
    }
  }

  /** The connection has ended. */
  end(): void {
    for (const { settle } of this.#asked.values()) settle('unclear');
  }

  #ask(folded: string): Asked {
    const { promise, resolve } = Promise.withResolvers<Holder | 'unclear'>();
    const cancel = this.#clock.after(this.#waitMs, () => settle('unclear'));
    const settle = (holder: Holder | 'unclear') => {
      cancel();
      this.#asked.delete(folded);
      resolve(holder);
    };
    return { ids: [], answer: promise, settle };
  }

  #remember(folded: string, ids: readonly string[]): void {
    this.#known.delete(folded);
    this.#known.set(folded, { ids, at: this.#clock.monotonic() });
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= most) break;
      this.#known.delete(oldest);
    }
  }
}
