import type { Capability } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { findProgram } from '../../../kernel/find-program.ts';
import { newId } from '../../../kernel/ids.ts';
import { type Jail, type JailLimits, type JailMount, refuseWithout } from '../../../kernel/jail.ts';
import type { Tool, ToolContext, ToolResult } from '../../../runtime/tool.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { AutonomyApi } from '../autonomy/api.ts';
import type { CommandTaint, FileTaints, WorkspaceCapacity } from '../../environment/workspace/api.ts';
import type { ScriptBegin, ScriptCalls, ScriptEnd } from './api.ts';
import type { RateLimits } from './scripts/rates.ts';
import { runScript, type ScriptRun } from './scripts/run-script.ts';
import { type ActiveScript, Scripts } from './scripts/scripts.ts';
import { createOrchestrateTool, type OrchestrateArgs } from './tool.ts';

export interface OrchestrateDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  /** False when commands are disabled. */
  readonly isEnabled: boolean;
  readonly agents: AgentsApi;
  readonly autonomy: AutonomyApi;
  readonly toolsOf: (agentId: string) => readonly Tool[];
  readonly rates: RateLimits;
  /** Key for the digests of bearers. */
  readonly key: Uint8Array;
  /** Path on the host. */
  readonly socketFile: string;
  /** Opened when it is first needed. */
  readonly jail: () => Promise<Jail>;
  /** Processes run in real time, regardless of the clock of everything else. */
  readonly processClock: Clock;
  readonly capacity: WorkspaceCapacity;
  readonly workspace: {
    /** Path as scripts see it. */
    readonly inside: string;
    readonly masked: readonly string[];
    readonly mounts: (workspaceDir: string) => Promise<readonly JailMount[]>;
  };
  readonly limitsOf: (agent: Agent) => JailLimits;
  readonly taints: Pick<FileTaints, 'beginCommand'>;
  /** Defined in `orchestrate-work.ts`: operations that must commit together with those of other features. */
  readonly beginScript: Operation<ScriptBegin, void>;
  readonly endScript: Operation<ScriptEnd, void>;
}

export interface Orchestrate {
  readonly calls: ScriptCalls;
  /** Returns the same array until the jail turns out to be unavailable. */
  tools(): readonly Tool[];
}

/** How long the lease of a script outlives its timeout, while its processes end. */
const graceMs = 10_000;
const maxScripts = 32;
const charactersPerToken = 4;

/** Runs scripts of agents that call tools, only in a jail: one model turn instead of many. */
export function createOrchestrate(deps: OrchestrateDeps): Orchestrate {
  const { db, bus, clock } = deps;
  const scripts = new Scripts({ ...deps, workspaceInside: deps.workspace.inside });
  const running = new Map<string, { readonly rootRunId: string; readonly aborter: AbortController }>();
  const tool = createOrchestrateTool({ hasPython: findProgram('python3') !== undefined, run });
  const none: readonly Tool[] = [];
  const isPossible = deps.isEnabled && findProgram('bwrap') !== undefined && findProgram('prlimit') !== undefined;
  let offered: readonly Tool[] = isPossible ? [tool] : none;

  deps.autonomy.onStop((rootRunId, how) => {
    if (how === 'revoke') return 0;
    const ended = [...running.values()].filter((script) => script.rootRunId === rootRunId);
    for (const { aborter } of ended) aborter.abort(new AppError('cancelled', 'The run was killed'));
    return ended.length;
  });

  async function run(args: OrchestrateArgs, context: ToolContext): Promise<ToolResult> {
    const agent = deps.agents.usable(context.agentId, context.call);
    const opened = await deps.jail();
    if (opened.unavailable !== undefined) offered = none;
    refuseWithout(opened);
    await deps.capacity.assertCapacity(context.workspaceDir, { files: 1 });
    const jail = deps.capacity.watched(opened, context.workspaceDir);
    if (running.size >= maxScripts) throw new AppError('unavailable', `${maxScripts} scripts are already running; try again later`);
    const caps = deps.autonomy.standing(agent, context.call.agentCaller).caps;
    const startedMs = clock.monotonic();
    const taint = deps.taints.beginCommand(context, context.tainted());
    // Errors are handled where it is awaited.
    taint.catch(() => {});
    const script = scriptOf(context, [...caps], taint);
    const bearer = scripts.newBearer();
    const aborter = new AbortController();
    // Before the first await, so that the script counts against the limit and a kill finds it.
    running.set(script.leaseId, { rootRunId: script.rootRunId, aborter });
    let outcome: ScriptRun;
    let clean = false;
    try {
      await taint;
      outcome = await runWithLease(script, agent, args, bearer, jail, AbortSignal.any([context.signal, aborter.signal]));
    } finally {
      running.delete(script.leaseId);
      const command = await taint;
      clean = command.isClean();
      await command.end();
    }
    const durationMs = Math.round(clock.monotonic() - startedMs);
    summarise(script, outcome, durationMs);
    return resultOf(outcome, args, durationMs, clean);
  }

  async function runWithLease(
    script: ActiveScript,
    agent: Agent,
    { script: source, language, timeoutMs }: OrchestrateArgs,
    bearer: string,
    jail: Jail,
    signal: AbortSignal,
  ): Promise<ScriptRun> {
    const { context, leaseId, rootRunId } = script;
    try {
      await db.write(deps.beginScript, beginOf(script, agent, scripts.digestOf(bearer), timeoutMs));
    } catch (error) {
      if (error instanceof AppError && error.code === 'denied') return { exitCode: null, failureClass: 'lease_absent', stdout: '', stderr: '' };
      throw error;
    }
    scripts.begin(script);
    let outcome: ScriptRun = { exitCode: null, failureClass: 'spawn_fail', stdout: '', stderr: '' };
    try {
      outcome = await runScript(deps.processClock, jail, {
        script: source,
        language,
        timeoutMs,
        bearer,
        socketFile: deps.socketFile,
        cwd: deps.workspace.inside,
        mounts: await deps.workspace.mounts(context.workspaceDir),
        masked: deps.workspace.masked,
        limits: deps.limitsOf(agent),
        signal,
      });
      return outcome;
    } finally {
      scripts.end(script);
      const atMs = clock.now();
      const failed = outcome.failureClass !== undefined;
      await db.write(deps.endScript, { leaseId, root: { rootRunId, kind: 'script', failed, tokens: 0, costNano: 0, atMs } });
    }
  }

  function beginOf(
    { context, runId, leaseId, parentLeaseId, rootRunId, caps }: ActiveScript,
    agent: Agent,
    bearerDigest: string,
    timeoutMs: number,
  ): ScriptBegin {
    const atMs = clock.now();
    const { agentId, principalId, conversationRef, origin } = context;
    const { profile } = deps.autonomy.standing(agent, context.call.agentCaller);
    return {
      root: { rootRunId, kind: 'script', agentId, principalId, conversationRef, origin, profile, atMs },
      lease: {
        id: leaseId,
        rootRunId,
        parentLeaseId,
        runId,
        agentId,
        principalId,
        caps,
        issuedAtMs: atMs,
        expiresAtMs: Math.min(deps.autonomy.leaseUntilMs(), atMs + timeoutMs + graceMs),
        bearerDigest,
      },
    };
  }

  function scriptOf(context: ToolContext, caps: readonly Capability[], taint: Promise<CommandTaint>): ActiveScript {
    const turn = context.call.agentCaller?.turn;
    return {
      runId: newId('sc'),
      leaseId: newId('ls'),
      parentLeaseId: turn?.run?.leaseId ?? null,
      rootRunId: deps.autonomy.rootOf(context.call),
      context,
      caps,
      taint,
      calls: new Map(),
      results: { count: 0, bytes: 0, files: 0, fileBytes: 0 },
    };
  }

  function summarise({ context, runId, leaseId, rootRunId, calls, results }: ActiveScript, outcome: ScriptRun, durationMs: number): void {
    const { failureClass, exitCode, stdout } = outcome;
    const saved = Math.max(0, results.bytes - Buffer.byteLength(stdout));
    bus.emit('orchestrate:run_summary', {
      agentId: context.agentId,
      runId,
      leaseId,
      rootRunId,
      outcome: failureClass === undefined ? 'ok' : 'failed',
      ...(failureClass !== undefined && { failureClass }),
      durationMs,
      exitCode,
      toolCalls: [...calls.values()],
      resultRefs: { count: results.files, bytes: results.fileBytes },
      savings: { estSavedTokens: Math.floor(saved / charactersPerToken), savedRatio: results.bytes === 0 ? 0 : saved / results.bytes },
      timestamp: clock.now(),
    });
  }

  return { calls: scripts, tools: () => offered };
}

const why: Readonly<Record<NonNullable<ScriptRun['failureClass']>, string>> = {
  timeout: 'it did not end in time and was stopped',
  stdout_cap: 'it wrote more than 1 MiB and was stopped',
  nonzero_exit: 'it ended with an error',
  spawn_fail: 'it could not be started',
  lease_absent: 'this run was stopped, so its scripts get no lease',
  killed: 'it was stopped from outside',
};

const overBound: Readonly<Record<NonNullable<ScriptRun['bound']>, string>> = {
  memory: 'it exceeded its memory limit',
  processes: 'it exceeded its process limit',
  workspace: 'the workspace exceeds its limit; delete files first',
  disk: 'the disk of the workspace is almost full',
};

function resultOf(
  { failureClass, exitCode, bound, stdout, stderr }: ScriptRun,
  { captureStdout }: OrchestrateArgs,
  durationMs: number,
  clean: boolean,
): ToolResult {
  const outside = { source: 'script', clean };
  const seconds = (durationMs / 1000).toFixed(1);
  const shown = captureStdout ? stdout : '';
  if (failureClass === undefined) return { content: `[ok, ${seconds} s]\n${shown === '' ? '(no output)' : shown}`, outside };
  const code = exitCode === null ? '' : ` (exit code ${exitCode})`;
  const limit = bound === undefined ? '' : `: ${overBound[bound]}`;
  const parts = [`[${failureClass}: ${why[failureClass]}${code}${limit}, ${seconds} s]`, shown, stderr === '' ? '' : `[standard error]\n${stderr}`];
  return { content: parts.filter((part) => part !== '').join('\n'), isError: true, outside };
}
