import type { Capability } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { findProgram } from '../../../kernel/find-program.ts';
import { newId } from '../../../kernel/ids.ts';
import { type Jail, type JailLimits, type JailMount, refuseWithout } from '../../../kernel/jail.ts';
import type { Tool, ToolContext, ToolResult } from '../../../runtime/tool.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { AutonomyApi } from '../autonomy/api.ts';
import type { CommandTaint, FileTaints, WorkspaceCapacity } from '../../environment/workspace/api.ts';
import type { ScriptCalls } from './api.ts';
import { type LeaseDeps, withLease } from './scripts/lease.ts';
import { resultOf, summaryOf, tracedSummary } from './scripts/outcome.ts';
import type { RateLimits } from './scripts/rates.ts';
import { runScript, type ScriptRun } from './scripts/run-script.ts';
import { type ActiveScript, Scripts } from './scripts/scripts.ts';
import { createOrchestrateTool, type OrchestrateArgs } from './tool.ts';

export interface OrchestrateDeps extends Omit<LeaseDeps, 'scripts'> {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  /** Whether commands are enabled. */
  readonly isEnabled: () => boolean;
  readonly agents: AgentsApi;
  readonly autonomy: AutonomyApi;
  readonly toolsOf: (agentId: string) => readonly Tool[];
  readonly rates: () => RateLimits;
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
}

export interface Orchestrate {
  readonly calls: ScriptCalls;
  /** Returns the same array until commands are disabled or enabled, or the jail turns out to be unavailable. */
  tools(): readonly Tool[];
}

const maxScripts = 32;

/** Runs scripts of agents that call tools, only in a jail: one model turn instead of many. */
export function createOrchestrate(deps: OrchestrateDeps): Orchestrate {
  const { bus, clock } = deps;
  const scripts = new Scripts({ ...deps, workspaceInside: deps.workspace.inside });
  const leases = { ...deps, scripts };
  const running = new Map<string, { readonly rootRunId: string; readonly aborter: AbortController }>();
  const tool = createOrchestrateTool({ hasPython: findProgram('python3') !== undefined, run });
  const none: readonly Tool[] = [];
  const isPossible = findProgram('bwrap') !== undefined && findProgram('prlimit') !== undefined;
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
      outcome = await withLease(leases, { script, agent, bearer, timeoutMs: args.timeoutMs }, async () =>
        runScript(deps.processClock, jail, {
          script: args.script,
          language: args.language,
          timeoutMs: args.timeoutMs,
          bearer,
          socketFile: deps.socketFile,
          cwd: deps.workspace.inside,
          mounts: await deps.workspace.mounts(context.workspaceDir),
          masked: deps.workspace.masked,
          limits: deps.limitsOf(agent),
          signal: AbortSignal.any([context.signal, aborter.signal]),
        }),
      );
    } finally {
      running.delete(script.leaseId);
      const command = await taint;
      clean = command.isClean();
      await command.end();
    }
    const durationMs = Math.round(clock.monotonic() - startedMs);
    const summary = summaryOf(script, outcome, { durationMs, timestamp: clock.now() });
    bus.emit('orchestrate:run_summary', summary);
    return { ...resultOf(outcome, args, { durationMs, clean }), traced: tracedSummary(summary) };
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

  return { calls: scripts, tools: () => (deps.isEnabled() ? offered : none) };
}
