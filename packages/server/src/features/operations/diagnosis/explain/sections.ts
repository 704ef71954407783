import type { ResultInput } from '@gatehouse/contract';
import { countFact, isVoice, type StoredRecord, type StoredStep, textFact } from '../records.ts';
import type { Material } from './material.ts';
import type { Case } from './rules/case.ts';

type Report = ResultInput<'obs.explain'>;
type Section<Name extends keyof Report> = Report[Name] | undefined;
type Facts = NonNullable<StoredStep['facts']>;

const verdicts = ['fits', 'downshifted', 'exhausted'] as const;

/** Returns the sizes of the last step `context` of an execution whose context was exhausted. */
export function contextBudgetOf({ steps, focus }: Case): Section<'contextBudget'> {
  const last = steps.findLast(({ step, record }) => step.kind === 'context' && record.traceId === focus?.traceId)?.step.facts;
  if (last === undefined || (focus?.endReason !== 'context_exhausted' && last['verdict'] !== 'exhausted')) return undefined;
  const count = (name: string) => countFact(last[name]);
  return {
    windowTokens: count('windowTokens'),
    rawContextWindowTokens: count('rawWindowTokens'),
    windowCapSource: textFact(last['capSource']) ?? 'model',
    systemTokens: count('systemTokens'),
    freshTailTokens: count('freshTailTokens'),
    budgetedHistoryTokens: count('historyTokens'),
    keptCount: count('messagesOut'),
    assembledInputTokens: count('inputTokens'),
    outputHeadroom: typeof last['outputHeadroom'] === 'number' ? Math.round(last['outputHeadroom']) : 0,
    verdict: verdicts.find((verdict) => verdict === last['verdict']) ?? 'exhausted',
  };
}

/** Sums up the steps `recall`. */
export function recallOf({ steps }: Case): Section<'recall'> {
  const recalls = steps.flatMap(({ step }) => (step.kind === 'recall' ? [step.facts ?? {}] : []));
  const last = recalls.at(-1);
  if (last === undefined) return undefined;
  const sum = (name: string) => recalls.reduce((total, facts) => total + countFact(facts[name]), 0);
  const lanes = last['lanes'];
  return {
    recalls: sum('recalls'),
    zeroHits: sum('zeroHits'),
    lastLanes: lanes === undefined ? null : String(lanes),
    lastFinalCount: countFact(last['finalCount']),
    rerankerAvailable: last['reranker'] === true,
  };
}

/** Returns the last record `media` of speech or of a transcription. */
export function voiceOf({ records }: Case): Section<'voice'> {
  const last = records.findLast((record) => isVoice(record) && record.outcome !== 'cancelled');
  if (last === undefined) return undefined;
  const { facts, model, costNano, errorKind } = last;
  const provider = textFact(facts['provider']) ?? null;
  const durationMs = facts['durationMs'];
  const isOk = last.outcome === 'ok';
  return {
    provider,
    keyless: facts['keyless'] === true,
    ...(model !== null && { model: provider !== null && model.startsWith(`${provider}/`) ? model.slice(provider.length + 1) : model }),
    ...(durationMs !== undefined && { durationMs: countFact(durationMs) }),
    ...(isOk && { costUsd: costNano === null ? null : costNano / 1e9 }),
    source: facts['operation'] === 'speech' ? 'speech' : 'transcription',
    outcome: isOk ? 'ok' : 'failed',
    ...(errorKind !== null && { errorKind }),
  };
}

/** Sums up the steps `skill` and `outcome`, records `synthesis`, and the standing of skills. */
export function learningOf({ steps, records, rows }: Case): Section<'learning'> {
  const judged = steps.findLast(({ step }) => step.kind === 'outcome')?.step.facts;
  const used = steps.flatMap(({ step }) => (step.kind === 'skill' && step.facts?.['used'] !== false ? [step.name] : []));
  const synthesisAbstained = records.some(({ kind, facts }) => kind === 'synthesis' && facts['abstained'] !== undefined);
  if (judged === undefined && used.length === 0 && !synthesisAbstained) return undefined;
  const skillsUsed = [...new Set(used)].toSorted();
  const outcome = textFact(judged?.['outcome']);
  return {
    outcomeResolved: judged?.['resolved'] === true,
    ...(outcome !== undefined && { outcome }),
    sources: (textFact(judged?.['sources']) ?? '').split(',').filter((source) => source !== ''),
    skillsUsed,
    skillFailures: skillsUsed.filter((name) => rows.failingSkills.some((failing) => failing.name === name)),
    synthesisAbstained,
  };
}

/** Lists the calls of the tool `orchestrate`, with those that its scripts made below them. */
export function orchestrateOf({ tools }: Case): Section<'orchestrate'> {
  const scripts = tools.filter(({ step }) => step.name === 'orchestrate' && (step.outcome === 'ok' || step.outcome === 'error'));
  if (scripts.length === 0) return undefined;
  return scripts.map(({ step, record }) => {
    const facts: Facts = step.facts ?? {};
    const leaseId = textFact(facts['leaseId']);
    const failureClass = textFact(facts['failureClass']);
    const savedTokens = facts['estSavedTokens'];
    return {
      runId: textFact(facts['runId']) ?? `${record.id}#${step.id}`,
      ...(leaseId !== undefined && { leaseId }),
      outcome: step.outcome === 'ok' ? 'success' : 'failure',
      durationMs: countFact(step.ms),
      exitCode: typeof facts['exitCode'] === 'number' ? Math.round(facts['exitCode']) : null,
      ...(failureClass !== undefined && { failureClass }),
      toolCalls: nestedCalls(record, step.id),
      resultRefs: { count: countFact(facts['resultRefs']), bytes: countFact(facts['resultRefBytes']) },
      ...(typeof savedTokens === 'number' && {
        savings: { estSavedTokens: countFact(savedTokens), savedRatio: typeof facts['savedRatio'] === 'number' ? facts['savedRatio'] : 0 },
      }),
    };
  });
}

type ScriptCall = NonNullable<Report['orchestrate']>[number]['toolCalls'][number];

function nestedCalls({ steps }: StoredRecord, parent: number): ScriptCall[] {
  const calls = new Map<string, ScriptCall>();
  for (const step of steps) {
    if (step.kind !== 'tool' || step.parent !== parent) continue;
    const decision = step.outcome === 'denied' ? 'deny' : 'allow';
    const capability = textFact(step.facts?.['capability']) ?? null;
    const key = JSON.stringify([step.name, capability, decision]);
    calls.set(key, { tool: step.name, capability, decision, count: (calls.get(key)?.count ?? 0) + 1 });
  }
  return [...calls].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, call]) => call);
}

/** Returns the last record `wake_gate`. */
export function wakeGateOf({ records }: Case): Section<'cronWakeGate'> {
  const gate = records.findLast(({ kind }) => kind === 'wake_gate');
  return (
    gate && {
      jobId: gate.refs['jobId'] ?? null,
      wake: gate.facts['wake'] === true,
      durationMs: Math.max(0, gate.endedAtMs - gate.startedAtMs),
      toolCalls: countFact(gate.facts['toolCalls']),
      estTurnsSaved: countFact(gate.facts['turnsSaved']),
    }
  );
}

/** Lists the leases with their runs, and the records of their turns. */
export function spawnTreeOf({ rows, records }: Case, rootRunId: string | undefined): Section<'spawnTree'> {
  if (rows.leases.length === 0 || rootRunId === undefined) return undefined;
  return rows.leases.map(({ id, parentLeaseId, runId, agentId, caps, revoked }) => {
    const run = rows.runs.find((one) => one.id === runId);
    const own = records.filter(({ refs }) => refs['runId'] === runId || refs['leaseId'] === id);
    const calls = own.flatMap(({ steps }) => steps.filter(({ kind }) => kind === 'tool'));
    const names = (denied: boolean) =>
      [...new Set(calls.filter(({ outcome }) => (outcome === 'denied') === denied).map(({ name }) => name))].toSorted();
    const outcome = run?.endReason ?? (revoked === 1 ? 'revoked' : run?.state);
    return {
      leaseId: id,
      ...(parentLeaseId !== null && { parentLeaseId }),
      rootRunId,
      runId,
      agentId,
      caps: caps.split(',').filter((cap) => cap !== ''),
      toolsInvoked: names(false),
      denials: names(true),
      ...(outcome !== undefined && { terminalOutcome: outcome }),
      ...(own.length > 0 && usageOf(own)),
    };
  });
}

function usageOf(records: readonly StoredRecord[]): { runtimeMs: number; tokensUsed: number; costUsd: number | null } {
  const costs = records.flatMap(({ costNano }) => (costNano === null ? [] : [costNano]));
  return {
    runtimeMs: records.reduce((sum, { startedAtMs, endedAtMs }) => sum + Math.max(0, endedAtMs - startedAtMs), 0),
    tokensUsed: records.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0),
    costUsd: costs.length === 0 ? null : costs.reduce((sum, nano) => sum + nano, 0) / 1e9,
  };
}

/** What was read, and whether it is whole. */
export function coverageOf(material: Material, about: Case): NonNullable<Report['coverage']> {
  const { execution, session, focus, rows } = material;
  const ids = new Set([...session, ...execution].map(({ id }) => id));
  const pointers = about.steps.flatMap(({ step }) => (step.kind === 'off_load' ? [textFact(step.facts?.['pointer'])] : []));
  const parts = execution.filter(({ kind, traceId }) => kind === 'turn' && traceId === focus?.traceId);
  const calls = parts.reduce((sum, { toolCalls }) => sum + toolCalls, 0);
  const errors = parts.reduce((sum, { toolErrors }) => sum + toolErrors, 0);
  const own = parts.flatMap(({ steps }) => steps.filter(({ kind, outcome }) => kind === 'tool' && outcome !== 'waiting'));
  const failed = own.filter(({ outcome }) => outcome === 'error' || outcome === 'denied').length;
  const rollup = { ok: Math.max(0, calls - errors), failed: errors };
  const trajectory = { ok: own.length - failed, failed };
  const reconciled = calls <= own.length && parts.every(({ droppedSteps }) => droppedSteps === 0);
  return {
    trajectory: { found: ids.size > 0, records: ids.size },
    rollup: { present: rows.turn !== undefined },
    offloads: { pointersResolved: pointers.filter((pointer) => pointer !== undefined).length, pointersTotal: pointers.length },
    sources: ['trace_record', 'turn', 'approval', 'root_run', 'sub_agent_run', 'lease', 'graph_node', 'skill_stat'],
    ...(parts.length > 0 && {
      toolStats: { reconciled, rollupSource: 'last-execution', divergentTools: reconciled ? [] : [{ tool: '*', rollup, trajectory }] },
    }),
  };
}
