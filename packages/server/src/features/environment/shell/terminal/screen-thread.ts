import { Worker } from 'node:worker_threads';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { TerminalSize } from './pseudo-terminal.ts';

/** Text of one style; colors are numbers of the palette or `#rrggbb`. */
export interface ScreenRun {
  readonly text: string;
  readonly fg?: number | string;
  readonly bg?: number | string;
  readonly bold?: true;
  readonly dim?: true;
  readonly italic?: true;
  readonly underline?: true;
  readonly inverse?: true;
  readonly hidden?: true;
}

export interface ScreenRow {
  /** Whether it continues the row above. */
  readonly isWrapped: boolean;
  readonly runs: readonly ScreenRun[];
}

export interface ScreenRows {
  readonly rows: readonly ScreenRow[];
  readonly cursor: { readonly x: number; readonly y: number } | undefined;
}

export interface ScreenState extends TerminalSize {
  readonly lines: readonly string[];
  /** Index into `lines`, and offset in that line. */
  readonly cursor: { readonly line: number; readonly col: number };
  /** Whether the program draws the whole screen, like an editor. */
  readonly isFullScreen: boolean;
}

type Request =
  | { readonly kind: 'output'; readonly bytes: Uint8Array }
  | { readonly kind: 'resize'; readonly size: TerminalSize }
  | { readonly kind: 'mark' }
  | { readonly kind: 'match'; readonly source: string }
  | { readonly kind: 'state'; readonly history: number }
  | { readonly kind: 'rows' };
export type ToScreen = Request & { readonly id: number };

type Answer =
  | { readonly kind: 'done'; readonly id: number }
  | { readonly kind: 'mark'; readonly id: number; readonly isApplication: boolean }
  | { readonly kind: 'match'; readonly id: number; readonly matches: boolean | undefined }
  | { readonly kind: 'state'; readonly id: number; readonly state: ScreenState }
  | ({ readonly kind: 'rows'; readonly id: number } & ScreenRows);
export type FromScreen = Answer | { readonly kind: 'reply'; readonly text: string };

const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };
/** A chunk is emulated within milliseconds, unless its sequences are chosen to be slow. */
const maxBusyMs = 60_000;

/** The screen of one terminal, emulated in a separate thread. */
export class ScreenThread {
  readonly #clock: Clock;
  readonly #worker: Worker;
  readonly #pending = new Map<number, { readonly resolve: (answer: Answer) => void; readonly reject: (error: AppError) => void }>();
  #last = 0;
  #gone: AppError | undefined;

  readonly #fail: (why: string) => void;

  /** `on.gone`: called once when the screen has failed, with the reason for people. */
  constructor(clock: Clock, size: TerminalSize, on: { readonly reply: (text: string) => void; readonly gone: (why: string) => void }) {
    this.#clock = clock;
    // No environment: it holds the keys of the installation.
    this.#worker = new Worker(workerUrl(), { workerData: size, resourceLimits, env: {}, name: 'screen' });
    this.#worker.unref();
    this.#fail = (why) => {
      if (this.#gone === undefined) on.gone(why);
      this.#end(why);
    };
    this.#worker.on('message', (message: FromScreen) => {
      if (message.kind === 'reply') on.reply(message.text);
      else this.#pending.get(message.id)?.resolve(message);
    });
    this.#worker.on('error', () => this.#fail('its screen needed too much memory'));
    this.#worker.on('exit', () => this.#fail('its screen failed'));
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#ask({ kind: 'output', bytes });
  }

  async resize(size: TerminalSize): Promise<void> {
    await this.#ask({ kind: 'resize', size });
  }

  /** Expressions are tested on what appears from here on. Returns whether cursor keys are in application mode. */
  async mark(): Promise<boolean> {
    const answer = await this.#ask({ kind: 'mark' });
    return answer.kind === 'mark' && answer.isApplication;
  }

  /** Returns undefined when the expression takes too long. */
  async matches(source: string): Promise<boolean | undefined> {
    const answer = await this.#ask({ kind: 'match', source });
    return answer.kind === 'match' ? answer.matches : undefined;
  }

  async state(history: number): Promise<ScreenState> {
    const answer = await this.#ask({ kind: 'state', history });
    if (answer.kind !== 'state') throw new AppError('internal', 'the screen gave another answer');
    return answer.state;
  }

  async rows(): Promise<ScreenRows> {
    const answer = await this.#ask({ kind: 'rows' });
    if (answer.kind !== 'rows') throw new AppError('internal', 'the screen gave another answer');
    return { rows: answer.rows, cursor: answer.cursor };
  }

  async end(): Promise<void> {
    this.#end('it has ended');
    await this.#worker.terminate();
  }

  async #ask(request: Request): Promise<Answer> {
    if (this.#gone !== undefined) throw this.#gone;
    const id = (this.#last += 1);
    const answer = Promise.withResolvers<Answer>();
    this.#pending.set(id, answer);
    const cancel = this.#clock.after(maxBusyMs, () => this.#fail('its output takes too long to draw'));
    this.#worker.postMessage({ ...request, id } satisfies ToScreen);
    try {
      return await answer.promise;
    } finally {
      cancel();
      this.#pending.delete(id);
    }
  }

  #end(why: string): void {
    this.#gone ??= new AppError('unavailable', `The terminal cannot be read: ${why}`);
    for (const { reject } of this.#pending.values()) reject(this.#gone);
    this.#pending.clear();
    void this.#worker.terminate();
  }
}

/** The bundle has the worker next to the server. */
function workerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './screen-worker.ts' : './screen-worker.js', import.meta.url);
}
