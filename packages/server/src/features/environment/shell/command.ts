import type { Live } from '../../../kernel/config/live.ts';
import type { AgentConfig } from '@gatehouse/contract';
import type { CallingTurn } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { type Jail, type JailEnd, type JailSpec, jailHome, jailPath } from '../../../kernel/jail.ts';
import type { TraceWork } from '../../../kernel/work-trace.ts';
import type { ToolContext, ToolResult } from '../../../runtime/tool.ts';
import type { CommandTaint, FileTaints, WorkspaceCapacity } from '../workspace/api.ts';
import { type ExecConfig, limitsFor } from './config.ts';
import { folderInside, maskedInside, workspaceMounts } from './workspace-mounts.ts';

export interface ShellDeps {
  readonly clock: Clock;
  /** Programs on terminals run in real time, whatever clock the rest uses. */
  readonly processClock: Clock;
  readonly bus: EventBus;
  readonly traceWork: TraceWork;
  readonly hideSecrets: (text: string) => string;
  /** Opened on first use. */
  readonly jail: () => Promise<Jail>;
  readonly config: Live<ExecConfig>;
  readonly capacity: WorkspaceCapacity;
  /** Environment of the daemon, with stored secrets; agents see what their configuration names. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Returns the current configuration of the agent; undefined when it no longer exists. */
  readonly agentOf: (agentId: string) => AgentConfig | undefined;
  /** Whether the run of a turn was stopped: a call in progress completes, but must not start anything that outlasts it. */
  readonly isStopped: (turn: CallingTurn) => boolean;
  readonly taints: Pick<FileTaints, 'beginCommand'>;
}

/** A command with what it may have read. */
export interface CommandSpec extends JailSpec {
  readonly taint: CommandTaint;
}

/** Resolves how a command is run. Fails with `invalid_params` for an unusable folder. */
export async function specOf(
  { config, env, taints }: ShellDeps,
  agent: AgentConfig,
  call: { readonly argv: readonly [string, ...string[]]; readonly cwd?: string | undefined; readonly network: boolean },
  context: Pick<ToolContext, 'agentId' | 'workspaceDir' | 'tainted'>,
): Promise<CommandSpec> {
  const cwd = folderInside(call.cwd);
  const named = agent.exec.env.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  const mounts = await workspaceMounts(context.workspaceDir);
  return {
    taint: await taints.beginCommand(context, call.network || context.tainted()),
    argv: call.argv,
    cwd,
    mounts,
    masked: maskedInside,
    env: { ...Object.fromEntries(named), PATH: jailPath, HOME: jailHome, LANG: 'C.UTF-8', TERM: 'dumb' },
    network: call.network,
    limits: limitsFor(config.current, agent.exec),
  };
}

/** Formats a command for people. */
export function commandOf(argv: readonly string[]): string {
  return argv.map((each) => (/^[\w@%+=:,./-]+$/.test(each) ? each : JSON.stringify(each))).join(' ');
}

/** Labels the source of output: with the network it may be anybody's, which trust in the workspace does not cover. */
export function outsideOf({ network, taint }: Pick<CommandSpec, 'network' | 'taint'>): NonNullable<ToolResult['outside']> {
  return { source: network ? 'command output with network' : 'command output', clean: taint.isClean() };
}

/** Formats `exit code 1` or `ended by SIGKILL`, with the limit that was hit. */
export function describeEnd({ code, signal, bound }: JailEnd, limits: Pick<JailSpec['limits'], 'memoryBytes' | 'processes'>): string {
  const end = code === null ? (signal === null ? 'could not be started' : `ended by ${signal}`) : `exit code ${code}`;
  if (bound === 'memory')
    return `${end}: it needed more than the ${Math.round(limits.memoryBytes / 1024 / 1024)} MiB of memory that a command may use`;
  if (bound === 'processes') return `${end}: it wanted more than the ${limits.processes} processes that a command may have`;
  if (bound === 'workspace') return `${end}: the workspace holds more than it may (workspaces.quotaMb, workspaces.quotaFiles); delete files first`;
  if (bound === 'disk') return `${end}: the disk of the workspace has too little free space (storage.minFreeBytes)`;
  return end;
}
