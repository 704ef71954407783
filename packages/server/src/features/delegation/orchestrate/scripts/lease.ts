import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import type { AutonomyApi } from '../../autonomy/api.ts';
import type { ScriptBegin, ScriptEnd } from '../api.ts';
import type { ScriptRun } from './run-script.ts';
import type { ActiveScript, Scripts } from './scripts.ts';

export interface LeaseDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly bootId: string;
  readonly autonomy: Pick<AutonomyApi, 'standing' | 'leaseUntilMs'>;
  readonly scripts: Pick<Scripts, 'digestOf' | 'begin' | 'end'>;
  /** Defined in `orchestrate-work.ts`: operations that must commit together with those of other features. */
  readonly beginScript: Operation<ScriptBegin, void>;
  readonly endScript: Operation<ScriptEnd, void>;
}

interface Lessee {
  readonly script: ActiveScript;
  readonly agent: Agent;
  readonly bearer: string;
  readonly timeoutMs: number;
}

/** How long the lease of a script outlives its timeout, while its processes end. */
const graceMs = 10_000;
const noOutput = { exitCode: null, stdout: '', stderr: '' } as const;

/** Runs a script while its bearer holds a lease; fails with `lease_absent` when its run was stopped. */
export async function withLease(deps: LeaseDeps, lessee: Lessee, run: () => Promise<ScriptRun>): Promise<ScriptRun> {
  const { script } = lessee;
  try {
    await deps.db.write(deps.beginScript, beginOf(deps, lessee));
  } catch (error) {
    if (error instanceof AppError && error.code === 'denied') return { ...noOutput, failureClass: 'lease_absent' };
    throw error;
  }
  deps.scripts.begin(script);
  let outcome: ScriptRun = { ...noOutput, failureClass: 'spawn_fail' };
  try {
    outcome = await run();
    return outcome;
  } finally {
    deps.scripts.end(script);
    const failed = outcome.failureClass !== undefined;
    const root = { rootRunId: script.rootRunId, kind: 'script' as const, failed, tokens: 0, costNano: 0, atMs: deps.clock.now() };
    await deps.db.write(deps.endScript, { leaseId: script.leaseId, bootId: deps.bootId, root });
  }
}

function beginOf(deps: LeaseDeps, { script, agent, bearer, timeoutMs }: Lessee): ScriptBegin {
  const atMs = deps.clock.now();
  const { context, runId, leaseId, parentLeaseId, rootRunId, caps } = script;
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
      bearerDigest: deps.scripts.digestOf(bearer),
      bootId: deps.bootId,
    },
  };
}
