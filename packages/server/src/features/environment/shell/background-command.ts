import type { Clock } from '../../../kernel/clock.ts';
import { AppError } from '../../../kernel/app-error.ts';
import type { JailEnd, JailedProcess } from '../../../kernel/jail.ts';
import { settledWithin, sleep } from '../../../kernel/timers.ts';
import type { ToolContext, ToolResult } from '../../../runtime/tool.ts';
import { type CommandSpec, describeEnd, outsideOf } from './command.ts';
import { collect, Ring, toText } from './output.ts';

/** Owner of a command: no other turn finds it. */
export type Owner = Pick<ToolContext, 'agentId' | 'principalId'>;

/** Everything a command belongs to; it stops when any of these stops. */
export interface Belonging extends Owner {
  readonly conversationRef: string;
  readonly tokenId: string;
  readonly origin: ToolContext['origin'];
  /** Root of the request that started it. */
  readonly rootRunId: string;
  /** Id of the sub-agent that started it. */
  readonly runId?: string;
  readonly leaseId?: string;
}

/** Returns what a command that a turn starts belongs to. */
export function belongingOf({ agentId, principalId, conversationRef, origin, turnId, call }: ToolContext): Belonging {
  const turn = call.agentCaller?.turn;
  return {
    agentId,
    principalId,
    conversationRef,
    origin,
    tokenId: call.identity.tokenId,
    rootRunId: turn?.rootRunId ?? `root-turn-${turnId}`,
    ...(turn?.run !== undefined && { runId: turn.run.runId, leaseId: turn.run.leaseId }),
  };
}

const ringBytes = 1024 * 1024;
const readBytes = 40_000;
const maxWaitingBytes = 1024 * 1024;
const maxLifeMs = 24 * 3_600_000;
/** How long output may still arrive after all processes have exited. */
const drainMs = 1_000;

/** A command that runs independently of its agent's turns, and its output. */
export class BackgroundCommand {
  readonly id: string;
  readonly owner: Belonging;
  readonly spec: CommandSpec;
  readonly startedAtMs: number;
  readonly process: JailedProcess;
  /** Settles when the process is gone and its output is complete. */
  readonly done: Promise<void>;
  readonly #clock: Clock;
  readonly #output = new Ring(ringBytes);
  /** Callbacks of readers waiting for output; called on new output and at the end. */
  readonly #waiting = new Set<() => void>();
  #end: JailEnd | undefined;
  #endedAtMs = 0;

  constructor(clock: Clock, process: JailedProcess, about: { readonly id: string; readonly owner: Belonging; readonly spec: CommandSpec }) {
    this.id = about.id;
    this.owner = about.owner;
    this.spec = about.spec;
    this.startedAtMs = clock.now();
    this.process = process;
    this.#clock = clock;
    this.done = this.#follow();
  }

  get isRunning(): boolean {
    return this.#end === undefined;
  }

  /** Returns how long ago it ended; 0 while it runs. */
  get endedSinceMs(): number {
    return this.isRunning ? 0 : this.#clock.now() - this.#endedAtMs;
  }

  get commandLine(): string {
    return this.spec.argv.join(' ').slice(0, 200);
  }

  get summary(): string {
    const state = this.#end === undefined ? 'running' : describeEnd(this.#end, this.spec.limits);
    const untilMs = this.#end === undefined ? this.#clock.now() : this.#endedAtMs;
    return `${this.id}: ${state}, ${this.#output.end} bytes of output, ${Math.round((untilMs - this.startedAtMs) / 1000)} s`;
  }

  /** Returns the output from `offset` on; waits up to `waitMs` for some when there is none yet. */
  async read({ offset, waitMs, signal }: { readonly offset: number; readonly waitMs: number; readonly signal: AbortSignal }): Promise<ToolResult> {
    if (this.isRunning && this.#output.end <= offset && waitMs > 0) await this.#untilChanged(waitMs, signal);
    const { bytes, from } = this.#output.read(offset, readBytes);
    const lost = from > offset ? `[bytes ${offset} to ${from} are no longer kept]\n` : '';
    const next = from + bytes.length;
    const more = next < this.#output.end ? `, ${this.#output.end - next} bytes more` : '';
    return {
      content: `[${this.summary}; next offset ${next}${more}]\n${lost}${bytes.length === 0 ? '(nothing new)' : toText(bytes)}`,
      outside: outsideOf(this.spec),
    };
  }

  /** `tainted`: the text may come from outside. */
  async write(text: string, { close, tainted }: { readonly close: boolean; readonly tainted: boolean }): Promise<ToolResult> {
    const { stdin } = this.process;
    if (!this.isRunning || !stdin.writable) throw new AppError('conflict', 'The command no longer accepts input');
    if (stdin.writableLength + Buffer.byteLength(text) > maxWaitingBytes)
      throw new AppError('precondition_failed', 'The command does not read its input: earlier input is still pending');
    if (tainted) await this.spec.taint.taint();
    if (close) stdin.end(text);
    else stdin.write(text);
    return { content: `Sent ${Buffer.byteLength(text)} bytes to ${this.id}${close ? ' and closed its input' : ''}` };
  }

  async kill(): Promise<ToolResult> {
    if (this.#end !== undefined) return { content: `${this.id} had ended before: ${describeEnd(this.#end, this.spec.limits)}` };
    this.process.kill();
    await this.done;
    return { content: `${this.id} was stopped, with everything it started` };
  }

  async #follow(): Promise<void> {
    const push = (chunk: Buffer) => {
      this.#output.push(chunk);
      this.#wake();
    };
    const drained = collect([this.process.stdout, this.process.stderr], { push }, this.#clock);
    const cancel = this.#clock.after(maxLifeMs, () => this.process.kill());
    const end = await this.process.ended;
    cancel();
    await settledWithin(this.#clock, drainMs, [drained]);
    await this.spec.taint.end();
    this.#end = end;
    this.#endedAtMs = this.#clock.now();
    this.#wake();
  }

  #wake(): void {
    for (const run of this.#waiting) run();
    this.#waiting.clear();
  }

  /** Waits for new output or the end. */
  async #untilChanged(waitMs: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    const wake = () => woken.abort();
    this.#waiting.add(wake);
    await sleep(this.#clock, waitMs, AbortSignal.any([signal, woken.signal]));
    this.#waiting.delete(wake);
  }
}
