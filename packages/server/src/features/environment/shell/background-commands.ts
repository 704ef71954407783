import { AppError } from '../../../kernel/app-error.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Jail, JailEnd, JailedProcess } from '../../../kernel/jail.ts';
import type { ToolContext, ToolResult } from '../../../runtime/tool.ts';
import { type CommandSpec, describeEnd, outsideOf, type ShellDeps } from './command.ts';
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

interface Command {
  readonly id: string;
  readonly owner: Belonging;
  readonly spec: CommandSpec;
  readonly startedAtMs: number;
  readonly process: JailedProcess;
  readonly output: Ring;
  end: JailEnd | undefined;
  endedAtMs: number;
  /** Callbacks of readers waiting for output; called on new output and at the end. */
  readonly waiting: Set<() => void>;
}

/** Criteria by which a stop finds commands. */
type Scope = Partial<Readonly<Record<'agentId' | 'conversationRef' | 'tokenId' | 'rootRunId' | 'runId' | 'leaseId', string>>>;

export interface RunningCommand extends Belonging {
  readonly id: string;
  readonly startedAtMs: number;
  readonly command: string;
}

export interface BackgroundCommands extends AsyncDisposable {
  begin(jail: Jail, spec: CommandSpec, stdin: string | undefined, owner: Belonging): ToolResult;
  list(owner: Owner): ToolResult;
  /** Returns the output from `offset` on; waits up to `waitMs` for some when there is none yet. */
  read(owner: Owner, id: string, options: { readonly offset: number; readonly waitMs: number; readonly signal: AbortSignal }): Promise<ToolResult>;
  /** `tainted`: the text may come from outside. */
  write(owner: Owner, id: string, text: string, options: { readonly close: boolean; readonly tainted: boolean }): Promise<ToolResult>;
  kill(owner: Owner, id: string): Promise<ToolResult>;
  /** Stops commands that belong to anything named, with everything they started. Returns how many ran. */
  end(scope: Scope): number;
  /** Stops one command; resolves once its processes are gone. */
  endOne(id: string): Promise<void>;
  /** Lists running commands, oldest first. */
  running(): readonly RunningCommand[];
  /** Stops the commands of an agent and forgets them, because nobody else could use them. */
  forgetAgent(agentId: string): void;
}

const ringBytes = 1024 * 1024;
const maxEverywhere = 64;
const readBytes = 40_000;
const keptMs = 30 * 60_000;
const maxEndedPerAgent = 8;
const maxWaitingBytes = 1024 * 1024;
const maxLifeMs = 24 * 3_600_000;

/** Keeps commands that run independently of their agent's turns, and for a while the output of those that ended. */
export function createBackgroundCommands(deps: ShellDeps): BackgroundCommands {
  const { clock, config } = deps;
  const commands = new Map<string, Command>();

  const find = ({ agentId, principalId }: Owner, id: string): Command => {
    forget();
    const command = commands.get(id);
    if (command === undefined || command.owner.agentId !== agentId || command.owner.principalId !== principalId)
      throw new AppError('not_found', `No background command has the id ${JSON.stringify(id.slice(0, 64))}; use "list" to see the commands`);
    return command;
  };

  const endedOf = (agentId: string) => [...commands.values()].filter(({ owner, end }) => owner.agentId === agentId && end !== undefined);
  function forget(): void {
    for (const { id, end, endedAtMs } of commands.values()) if (end !== undefined && clock.now() - endedAtMs > keptMs) commands.delete(id);
  }

  const summary = (command: Command): string => {
    const state = command.end === undefined ? 'running' : describeEnd(command.end, command.spec.limits);
    return `${command.id}: ${state}, ${command.output.end} bytes of output, ${Math.round(((command.end === undefined ? clock.now() : command.endedAtMs) - command.startedAtMs) / 1000)} s`;
  };

  return {
    begin(jail, spec, stdin, owner) {
      const { agentId } = owner;
      forget();
      const running = [...commands.values()].filter(({ end }) => end === undefined);
      const most = config.maxBackgroundPerAgent;
      if (running.filter(({ owner }) => owner.agentId === agentId).length >= most)
        throw new AppError('precondition_failed', `This agent has ${most} commands in the background, which is its limit: stop one with "process"`);
      if (running.length >= maxEverywhere)
        throw new AppError('precondition_failed', `${maxEverywhere} commands run in the background: try again later`);
      const started = jail.run(spec);
      const command: Command = {
        id: newId('cmd'),
        owner,
        spec,
        startedAtMs: clock.now(),
        process: started,
        output: new Ring(ringBytes),
        end: undefined,
        endedAtMs: 0,
        waiting: new Set(),
      };
      commands.set(command.id, command);
      const wake = () => {
        for (const run of command.waiting) run();
        command.waiting.clear();
      };
      const push = (chunk: Buffer) => {
        command.output.push(chunk);
        wake();
      };
      const drained = collect([started.stdout, started.stderr], { push }, clock);
      const cancel = clock.after(maxLifeMs, () => started.kill());
      void started.ended.then(async (end) => {
        cancel();
        await Promise.race([drained, pause(1000)]);
        await spec.taint.end();
        command.end = end;
        command.endedAtMs = clock.now();
        for (const old of endedOf(agentId).slice(0, -maxEndedPerAgent)) commands.delete(old.id);
        wake();
      });
      if (stdin !== undefined) started.stdin.write(stdin);
      return {
        content: `Started in the background as ${command.id}. Use "process" to read its output, write to it or stop it; it stops with the daemon, and when the run, token, agent or conversation that it belongs to is stopped.`,
      };
    },

    list({ agentId, principalId }) {
      forget();
      const own = [...commands.values()].filter(({ owner }) => owner.agentId === agentId && owner.principalId === principalId);
      return {
        content: own.length === 0 ? '(no commands in the background)' : own.map((each) => `${summary(each)}: ${lineOf(each)}`).join('\n'),
        outside: { source: 'command output', clean: own.every(({ spec }) => spec.taint.isClean()) },
      };
    },

    async read(owner, id, { offset, waitMs, signal }) {
      const command = find(owner, id);
      if (command.end === undefined && command.output.end <= offset && waitMs > 0) await somethingNew(command, waitMs, signal);
      const { bytes, from } = command.output.read(offset, readBytes);
      const lost = from > offset ? `[bytes ${offset} to ${from} are no longer kept]\n` : '';
      const next = from + bytes.length;
      const more = next < command.output.end ? `, ${command.output.end - next} bytes more` : '';
      return {
        content: `[${summary(command)}; next offset ${next}${more}]\n${lost}${bytes.length === 0 ? '(nothing new)' : toText(bytes)}`,
        outside: outsideOf(command.spec),
      };
    },

    async write(owner, id, text, { close, tainted }) {
      const command = find(owner, id);
      const { stdin } = command.process;
      if (command.end !== undefined || !stdin.writable) throw new AppError('conflict', 'The command no longer accepts input');
      if (stdin.writableLength + Buffer.byteLength(text) > maxWaitingBytes)
        throw new AppError('precondition_failed', 'The command does not read its input: earlier input is still pending');
      if (tainted) await command.spec.taint.taint();
      if (close) stdin.end(text);
      else stdin.write(text);
      return { content: `Sent ${Buffer.byteLength(text)} bytes to ${command.id}${close ? ' and closed its input' : ''}` };
    },

    async kill(owner, id) {
      const command = find(owner, id);
      if (command.end !== undefined) return { content: `${command.id} had ended before: ${describeEnd(command.end, command.spec.limits)}` };
      command.process.kill();
      await command.process.ended;
      return { content: `${command.id} was stopped, with everything it started` };
    },

    end(scope) {
      const named = Object.entries(scope) as [keyof Scope, string][];
      const ended = [...commands.values()].filter(({ owner, end }) => end === undefined && named.some(([key, value]) => owner[key] === value));
      for (const { process } of ended) process.kill();
      return ended.length;
    },

    async endOne(id) {
      const command = commands.get(id);
      if (command?.end !== undefined) return;
      command?.process.kill();
      await command?.process.ended;
    },

    running: () =>
      [...commands.values()]
        .filter(({ end }) => end === undefined)
        .map((command) => ({ ...command.owner, id: command.id, startedAtMs: command.startedAtMs, command: lineOf(command) })),

    forgetAgent(agentId) {
      for (const { id, owner, process } of commands.values()) {
        if (owner.agentId !== agentId) continue;
        process.kill();
        commands.delete(id);
      }
    },

    async [Symbol.asyncDispose]() {
      const processes = [...commands.values()].map((command) => command.process);
      for (const each of processes) each.kill();
      await Promise.all(processes.map((each) => each.ended));
    },
  };

  function pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    clock.after(ms, resolve);
    return promise;
  }

  async function somethingNew(command: Command, waitMs: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = clock.after(waitMs, resolve);
    const onAbort = () => resolve();
    command.waiting.add(resolve);
    signal.addEventListener('abort', onAbort, { once: true });
    await promise;
    cancel();
    command.waiting.delete(resolve);
    signal.removeEventListener('abort', onAbort);
  }
}

const lineOf = ({ spec }: Command): string => spec.argv.join(' ').slice(0, 200);
