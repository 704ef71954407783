import { AppError } from '../../../kernel/app-error.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Jail } from '../../../kernel/jail.ts';
import { settledWithin } from '../../../kernel/timers.ts';
import type { ToolResult } from '../../../runtime/tool.ts';
import { BackgroundCommand, type Belonging, type Owner } from './background-command.ts';
import type { CommandSpec, ShellDeps } from './command.ts';

/** Criteria by which a stop finds commands. */
export type Scope = Partial<Readonly<Record<'agentId' | 'conversationRef' | 'tokenId' | 'rootRunId' | 'runId' | 'leaseId', string>>>;

export interface RunningCommand extends Belonging {
  readonly id: string;
  readonly kind: 'command' | 'terminal';
  readonly startedAtMs: number;
  readonly command: string;
}

const maxEverywhere = 64;
const keptMs = 30 * 60_000;
const maxEndedPerAgent = 8;
const storedMs = 2_000;

/** Keeps commands that run independently of their agent's turns, and for a while the output of those that ended. */
export class BackgroundCommands implements AsyncDisposable {
  readonly #deps: Pick<ShellDeps, 'clock' | 'config'>;
  readonly #commands = new Map<string, BackgroundCommand>();

  constructor(deps: Pick<ShellDeps, 'clock' | 'config'>) {
    this.#deps = deps;
  }

  begin(jail: Jail, spec: CommandSpec, { stdin, owner }: { readonly stdin: string | undefined; readonly owner: Belonging }): ToolResult {
    const { clock, config } = this.#deps;
    const { agentId } = owner;
    this.#forgetOld();
    const running = this.#all().filter(({ isRunning }) => isRunning);
    const most = config.current.maxBackgroundPerAgent;
    if (running.filter((command) => command.owner.agentId === agentId).length >= most)
      throw new AppError('precondition_failed', `This agent has ${most} commands in the background, which is its limit: stop one with "process"`);
    if (running.length >= maxEverywhere)
      throw new AppError('precondition_failed', `${maxEverywhere} commands run in the background: try again later`);
    const command = new BackgroundCommand(clock, jail.run(spec), { id: newId('cmd'), owner, spec });
    this.#commands.set(command.id, command);
    void command.done.then(() => this.#forgetEnded(agentId));
    if (stdin !== undefined) command.process.stdin.write(stdin);
    return {
      content: `Started in the background as ${command.id}. Use "process" to read its output, write to it or stop it; it stops with the daemon, and when the run, token, agent or conversation that it belongs to is stopped.`,
    };
  }

  list({ agentId, principalId }: Owner): ToolResult {
    this.#forgetOld();
    const own = this.#all().filter(({ owner }) => owner.agentId === agentId && owner.principalId === principalId);
    return {
      content: own.length === 0 ? '(no commands in the background)' : own.map((each) => `${each.summary}: ${each.commandLine}`).join('\n'),
      outside: { source: 'command output', clean: own.every(({ spec }) => spec.taint.isClean()) },
    };
  }

  /** Returns a command of an owner; throws `not_found` for those of others. */
  find({ agentId, principalId }: Owner, id: string): BackgroundCommand {
    this.#forgetOld();
    const command = this.#commands.get(id);
    if (command === undefined || command.owner.agentId !== agentId || command.owner.principalId !== principalId)
      throw new AppError('not_found', `No background command has the id ${JSON.stringify(id.slice(0, 64))}; use "list" to see the commands`);
    return command;
  }

  /** Stops commands that belong to anything named, with everything they started. Returns how many ran. */
  end(scope: Scope): number {
    const named = Object.entries(scope) as [keyof Scope, string][];
    const ended = this.#all().filter(({ owner, isRunning }) => isRunning && named.some(([key, value]) => owner[key] === value));
    for (const { process } of ended) process.kill();
    return ended.length;
  }

  /** Stops one command; resolves once its processes are gone and it is not listed any more. */
  async endOne(id: string): Promise<void> {
    const command = this.#commands.get(id);
    if (command?.isRunning !== true) return;
    command.process.kill();
    await command.done;
  }

  /** Lists running commands, oldest first. */
  running(): readonly RunningCommand[] {
    return this.#all()
      .filter(({ isRunning }) => isRunning)
      .map(({ id, owner, startedAtMs, commandLine }) => ({ ...owner, id, kind: 'command' as const, startedAtMs, command: commandLine }));
  }

  /** Stops the commands of an agent and forgets them, because nobody else could use them. */
  forgetAgent(agentId: string): void {
    for (const { id, owner, process } of this.#all()) {
      if (owner.agentId !== agentId) continue;
      process.kill();
      this.#commands.delete(id);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const commands = this.#all();
    for (const { process } of commands) process.kill();
    await Promise.all(commands.map(({ process }) => process.ended));
    // What they wrote is stored then.
    await settledWithin(
      this.#deps.clock,
      storedMs,
      commands.map(({ done }) => done),
    );
  }

  #all(): BackgroundCommand[] {
    return [...this.#commands.values()];
  }

  #forgetOld(): void {
    for (const { id, endedSinceMs } of this.#all()) if (endedSinceMs > keptMs) this.#commands.delete(id);
  }

  /** Keeps only the last commands of an agent that have ended. */
  #forgetEnded(agentId: string): void {
    const ended = this.#all().filter(({ owner, isRunning }) => owner.agentId === agentId && !isRunning);
    for (const { id } of ended.slice(0, -maxEndedPerAgent)) this.#commands.delete(id);
  }
}
