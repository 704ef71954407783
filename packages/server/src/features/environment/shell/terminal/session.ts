import type { Readable } from 'node:stream';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { JailEnd, JailedProcess } from '../../../../kernel/jail.ts';
import { settledWithin, sleep } from '../../../../kernel/timers.ts';
import type { Belonging } from '../background-command.ts';
import { type CommandSpec, describeEnd } from '../command.ts';
import { encodeKey, keyNames } from './keys.ts';
import { encodeInput, encodeResize, type TerminalSize } from './pseudo-terminal.ts';
import { ScreenThread, type ScreenRows, type ScreenState } from './screen-thread.ts';

/** Everything a session belongs to, and the turn that opened it. */
export interface TerminalOwner extends Belonging {
  readonly turnId: string;
  readonly traceId: string;
  readonly sessionKey: string;
}

export interface SessionDeps {
  /** The clock that the ages of sessions are measured with. */
  readonly clock: Clock;
  /** Programs run in real time, whatever clock the rest uses. */
  readonly processClock: Clock;
}

/** What a wait is for. `quietMs`: no output for so long, after some has followed the last input. */
export type Awaited = { readonly pattern: string } | { readonly quietMs: number } | 'exit';
export type WaitEnd = 'found' | 'quiet' | 'ended' | 'timeout' | 'stopped';

interface LastScreen {
  readonly state: ScreenState;
  readonly rows: ScreenRows;
}

const maxWaitingBytes = 64 * 1024;
const maxLifeMs = 24 * 3_600_000;
/** How long output may still arrive after all processes have exited. */
const drainMs = 1_000;
/** How long the last screen may take to be drawn. */
const lastScreenMs = 5_000;
const sliceBytes = 4 * 1024;
const burstBytes = 256 * 1024;
const restMs = 20;
/** Output is tested for an expression at most this often. */
const testEveryMs = 30;
const keptHistory = 200;

/** A program on a pseudo-terminal in the jail, and its emulated screen. */
export class TerminalSession {
  readonly id: string;
  readonly owner: TerminalOwner;
  readonly spec: CommandSpec;
  /** What people see of the command. */
  readonly commandLine: string;
  readonly startedAtMs: number;
  /** Settles when the program is gone, with everything it started. */
  readonly gone: Promise<unknown>;
  /** Settles when the program is gone and its output is on the screen. */
  readonly done: Promise<void>;
  size: TerminalSize;
  /** Grows with every change of the screen. */
  version = 0;
  readonly #deps: SessionDeps;
  readonly #process: JailedProcess;
  readonly #screen: ScreenThread;
  readonly #waiting = new Set<() => void>();
  #end: JailEnd | undefined;
  #failure: string | undefined;
  /** Kept once the screen is gone. */
  #last: LastScreen | undefined;
  #usedAtMs: number;
  #users = 0;
  #changedAt = 0;
  #hasOutput = false;

  constructor(deps: SessionDeps, process: JailedProcess, about: Pick<TerminalSession, 'id' | 'owner' | 'spec' | 'commandLine' | 'size'>) {
    this.#deps = deps;
    this.#process = process;
    this.id = about.id;
    this.owner = about.owner;
    this.spec = about.spec;
    this.commandLine = about.commandLine;
    this.size = about.size;
    this.startedAtMs = deps.clock.now();
    this.#usedAtMs = this.startedAtMs;
    this.#screen = new ScreenThread(deps.processClock, about.size, {
      reply: (text) => this.#reply(text),
      gone: (why) => {
        this.#failure ??= why;
        process.kill();
      },
    });
    this.gone = process.ended;
    this.done = this.#follow();
  }

  get isRunning(): boolean {
    return this.#end === undefined;
  }

  get state(): string {
    if (this.#end === undefined) return 'running';
    return this.#failure === undefined ? describeEnd(this.#end, this.spec.limits) : `ended: ${this.#failure}`;
  }

  /** Whether the program was not found. */
  get isMissing(): boolean {
    return this.#end?.code === 127;
  }

  /** Returns how long nobody has used it; 0 while somebody waits for it. */
  get idleMs(): number {
    return this.#users > 0 ? 0 : this.#deps.clock.now() - this.#usedAtMs;
  }

  /** Marks the session as used until the result is disposed. */
  use(): Disposable {
    this.#users += 1;
    return {
      [Symbol.dispose]: () => {
        this.#users -= 1;
        this.#usedAtMs = this.#deps.clock.now();
      },
    };
  }

  /** `tainted`: the text may come from outside. */
  async type(text: string, { tainted }: { readonly tainted: boolean }): Promise<void> {
    using _use = this.use();
    await this.#begin(tainted);
    this.#process.stdin.write(encodeInput(text));
  }

  assertKeys(keys: readonly string[]): void {
    const unknown = keys.find((key) => encodeKey(key, false) === undefined);
    if (unknown === undefined) return;
    throw new AppError('invalid_params', `keys: there is no key ${JSON.stringify(unknown)}; expected ${keyNames}`, { param: 'keys' });
  }

  async press(keys: readonly string[], { tainted }: { readonly tainted: boolean }): Promise<void> {
    using _use = this.use();
    this.assertKeys(keys);
    const isApplication = await this.#begin(tainted);
    this.#process.stdin.write(encodeInput(keys.map((key) => encodeKey(key, isApplication)).join('')));
  }

  async resize(size: TerminalSize): Promise<void> {
    using _use = this.use();
    this.#assertRunning();
    this.size = size;
    await this.#screen.resize(size);
    this.#process.stdin.write(encodeResize(size));
    this.#changed();
  }

  async read(history: number): Promise<ScreenState> {
    using _use = this.use();
    if (!this.isRunning) await this.done;
    return await this.#fromScreen(
      () => this.#screen.state(history),
      (last) => last.state,
    );
  }

  async rows(): Promise<ScreenRows> {
    return this.#fromScreen(
      () => this.#screen.rows(),
      (last) => last.rows,
    );
  }

  async wait(awaited: Awaited, { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal }): Promise<WaitEnd> {
    using _use = this.use();
    const { processClock: clock } = this.#deps;
    const untilMs = clock.monotonic() + timeoutMs;
    for (;;) {
      const { version } = this;
      if (!this.isRunning) await this.done;
      if (await this.#isReached(awaited)) return awaited === 'exit' ? 'ended' : 'pattern' in awaited ? 'found' : 'quiet';
      if (!this.isRunning) return 'ended';
      if (signal.aborted) return 'stopped';
      const leftMs = untilMs - clock.monotonic();
      if (leftMs <= 0) return 'timeout';
      const quietInMs = typeof awaited === 'object' && 'quietMs' in awaited && this.#hasOutput ? awaited.quietMs - this.#silentMs() : leftMs;
      if (version === this.version) await this.untilChanged(version, Math.max(1, Math.min(leftMs, quietInMs)), signal);
      if (typeof awaited === 'object' && 'pattern' in awaited) await sleep(clock, testEveryMs, signal);
    }
  }

  /** Waits until the screen differs from this version. */
  async untilChanged(version: number, waitMs: number, signal: AbortSignal): Promise<void> {
    if (version !== this.version || !this.isRunning) return;
    const woken = new AbortController();
    const wake = () => woken.abort();
    this.#waiting.add(wake);
    await sleep(this.#deps.processClock, waitMs, AbortSignal.any([signal, woken.signal]));
    this.#waiting.delete(wake);
  }

  kill(): void {
    this.#process.kill();
  }

  async #isReached(awaited: Awaited): Promise<boolean> {
    if (awaited === 'exit') return !this.isRunning;
    if ('quietMs' in awaited) return this.#hasOutput && this.#silentMs() >= awaited.quietMs;
    const matches = await this.#fromScreen(
      () => this.#screen.matches(awaited.pattern),
      () => false,
    );
    if (matches === undefined)
      throw new AppError('invalid_params', 'pattern: the expression takes too long on this screen: use a simpler one', { param: 'pattern' });
    return matches;
  }

  /** Asks the screen, or what was kept of it when it is gone, also if that happens meanwhile. */
  async #fromScreen<T>(ask: () => Promise<T>, kept: (last: LastScreen) => T): Promise<T> {
    if (this.#last !== undefined) return kept(this.#last);
    try {
      return await ask();
    } catch (error) {
      if (this.#last !== undefined) return kept(this.#last);
      throw error;
    }
  }

  #silentMs(): number {
    return this.#deps.processClock.monotonic() - this.#changedAt;
  }

  #assertRunning(): void {
    if (!this.isRunning || !this.#process.stdin.writable) throw new AppError('conflict', `The terminal session has ended: ${this.state}`);
  }

  /** Prepares for input: a wait that follows is for what appears after it. Returns whether cursor keys are in application mode. */
  async #begin(tainted: boolean): Promise<boolean> {
    this.#assertRunning();
    if (this.#process.stdin.writableLength > maxWaitingBytes)
      throw new AppError('precondition_failed', 'The program does not read its input: earlier input is still pending');
    if (tainted) await this.spec.taint.taint();
    const isApplication = await this.#screen.mark();
    this.#hasOutput = false;
    return isApplication;
  }

  /** Answers a query of the program. */
  #reply(text: string): void {
    const { stdin } = this.#process;
    if (stdin.writable && stdin.writableLength <= maxWaitingBytes) stdin.write(encodeInput(text));
  }

  #changed(): void {
    this.version += 1;
    for (const run of this.#waiting) run();
    this.#waiting.clear();
  }

  async #follow(): Promise<void> {
    const { processClock: clock } = this.#deps;
    const { stdout, stderr, ended } = this.#process;
    const drained = Promise.all([this.#draw(stdout, false), this.#draw(stderr, true)]);
    const cancel = clock.after(maxLifeMs, () => this.#process.kill());
    this.#end = await ended;
    cancel();
    await settledWithin(clock, drainMs, [drained]);
    stdout.destroy();
    stderr.destroy();
    await this.spec.taint.end();
    let last: LastScreen = {
      state: { ...this.size, lines: [], cursor: { line: 0, col: 0 }, isFullScreen: false },
      rows: { rows: [], cursor: undefined },
    };
    const drawn = Promise.all([this.#screen.state(keptHistory), this.#screen.rows()]).then(([state, { rows }]) => {
      last = { state, rows: { rows, cursor: undefined } };
    });
    await settledWithin(clock, lastScreenMs, [drawn]);
    this.#last = last;
    await this.#screen.end();
    this.#changed();
  }

  /** Draws output at the pace of the emulator; a program that writes more waits. */
  async #draw(stream: Readable, isPlain: boolean): Promise<void> {
    const { processClock: clock } = this.#deps;
    let burst = 0;
    try {
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        const bytes = isPlain ? Buffer.from(chunk.toString('latin1').replaceAll('\n', '\r\n'), 'latin1') : chunk;
        for (let at = 0; at < bytes.length; at += sliceBytes) {
          await this.#screen.write(Uint8Array.from(bytes.subarray(at, at + sliceBytes)));
          this.#hasOutput = true;
          this.#changedAt = clock.monotonic();
          this.#changed();
        }
        burst += bytes.length;
        if (burst < burstBytes) continue;
        burst = 0;
        await sleep(clock, restMs);
      }
    } catch {
      // The screen or the pipe is gone: the end of the session says why.
    }
  }
}
