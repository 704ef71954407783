import type { EvalVariant } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { recordAudit } from '../../../../kernel/audit.ts';
import type { CallContext, IdentityOf } from '../../../../kernel/call-context.ts';
import type { Core } from '../../../../kernel/core.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { ModelInfo } from '../../../../llm/model.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import {
  addResult,
  addRun,
  endEvaluation,
  type EvalEnd,
  type EvalResultRow,
  interruptRuns,
  listEvaluations,
  readResults,
  type StoredVariant,
} from '../store.ts';
import type { AskDeps } from './ask-case.ts';
import { runCases } from './run-cases.ts';
import { casesOf, resultOf, viewOf } from './view.ts';

export interface RunsDeps extends Core, AskDeps {
  readonly bootId: string;
  readonly agents: Pick<AgentsApi, 'usable' | 'defaultId'>;
  readonly identityOf: IdentityOf;
  /** Returns the model of this name; undefined when no provider offers it. */
  readonly findModel: (name: string) => ModelInfo | undefined;
  /** Returns the model that an agent answers with. */
  readonly modelOf: (agent: Agent) => ModelInfo;
}

const maxRunning = 4;
const retryEndMs = 30_000;

type Methods = HandlersOf<`eval.${'run' | 'get' | 'list' | 'stop'}`>;

export interface EvaluationRuns extends AsyncDisposable {
  readonly methods: Methods;
  /** Call when a daemon has died: what it left is ended before anybody looks. */
  claimed(): void;
  /** Stops all: the daemon ends. */
  drain(): Promise<void>;
}

interface Running {
  readonly controller: AbortController;
  readonly agentIds: readonly string[];
  ended: Promise<void>;
}

/** Runs evaluations: several questions at once, each result stored as it arrives. */
export function createEvaluationRuns(deps: RunsDeps): EvaluationRuns {
  const { db, clock, log } = deps;
  const running = new Map<string, Running>();
  /** Ends that could not be stored, such as on a full disk. */
  const unstored = new Map<string, EvalEnd>();
  let cancelRetry: (() => void) | undefined;
  let recovering: Promise<void> | undefined;

  /** Ends what dead daemons left, before the first read: a start does not pay for it. */
  function recover(): Promise<void> {
    recovering ??= db.write(interruptRuns, { atMs: clock.now() }).catch((error: unknown) => {
      recovering = undefined;
      log.warn({ err: error }, 'Failed to end interrupted evaluations; it is tried again');
    });
    return recovering;
  }

  async function storeEnd(end: EvalEnd): Promise<void> {
    try {
      await db.write(endEvaluation, end);
      unstored.delete(end.id);
    } catch (error) {
      log.warn({ err: error, evalId: end.id }, 'Failed to store the end of an evaluation; it is tried again');
      unstored.set(end.id, end);
      cancelRetry ??= clock.after(retryEndMs, () => {
        cancelRetry = undefined;
        for (const one of unstored.values()) void storeEnd(one);
      });
    }
  }

  function refuseAgents(call: CallContext): void {
    if (call.agentCaller !== undefined) throw new AppError('denied', 'Evaluations are for administrators, not for agents');
  }

  /** Checks what answers, before anything is stored. */
  function admit({ agentId = deps.agents.defaultId, model }: EvalVariant, budgeted: boolean, call: CallContext): StoredVariant {
    const agent = deps.agents.usable(agentId, call);
    const found = model === undefined ? deps.modelOf(agent) : deps.findModel(model);
    if (found === undefined) throw new AppError('precondition_failed', `No configured provider offers the model ${model}`, { param: 'variants' });
    if (budgeted && found.price === null)
      throw new AppError('precondition_failed', `The price of ${found.provider}/${found.modelId} is not known, so budgetUsd cannot be kept`, {
        param: 'budgetUsd',
      });
    return { agentId, ...(model !== undefined && { model }) };
  }

  const reachOf = ({ identity }: CallContext) => (identity.agents === undefined ? null : identity.principalId);

  async function find(evalId: string, call: CallContext) {
    refuseAgents(call);
    await recover();
    const { runs, sums } = await db.read(listEvaluations, { principalId: reachOf(call), evalId, offset: 0, limit: 1 });
    const [row] = runs;
    if (row === undefined) throw new AppError('not_found', 'Evaluation not found', { param: 'evalId' });
    return { row, sums };
  }

  const methods: Methods = {
    'eval.run': async ({ name, cases, variants: wanted, concurrency, budgetUsd }, call) => {
      refuseAgents(call);
      if (running.size >= maxRunning) throw new AppError('conflict', `${maxRunning} evaluations are running already; wait for one to end`);
      const variants = wanted.map((variant) => admit(variant, budgetUsd !== undefined, call));
      for (const { checks } of cases)
        if (checks.judge?.model !== undefined && deps.findModel(checks.judge.model) === undefined)
          throw new AppError('precondition_failed', `No configured provider offers the model ${checks.judge.model} of a judge`, { param: 'cases' });
      const id = newId('ev');
      const budgetNano = budgetUsd === undefined ? null : Math.max(1, Math.round(budgetUsd * 1e9));
      const controller = new AbortController();
      const entry: Running = { controller, agentIds: variants.map(({ agentId }) => agentId), ended: Promise.resolve() };
      // Its place is taken before anything is waited for.
      running.set(id, entry);
      try {
        await db.write(addRun, {
          id,
          name: name ?? null,
          state: 'running',
          reason: null,
          principalId: call.identity.principalId,
          variantsJson: JSON.stringify(variants),
          casesJson: JSON.stringify(cases),
          caseCount: cases.length,
          budgetNano,
          createdAtMs: clock.now(),
          endedAtMs: null,
          bootId: deps.bootId,
        });
        await recordAudit(deps, call, { actionType: 'eval.run', classification: 'mutate', target: id, metadata: { cases: cases.length } });
      } catch (error) {
        running.delete(id);
        throw error;
      }
      const { tokenId, principalId } = call.identity;
      const identity = () => deps.identityOf(tokenId, principalId);
      const keep = (row: EvalResultRow) =>
        db.write(addResult, row).catch((cause: unknown) => {
          throw new AppError('internal', 'A result could not be stored', { cause });
        });
      const work = { id, cases, variants, concurrency, budgetNano, signal: controller.signal };
      entry.ended = runCases({ ...deps, identity, keep }, work).then(async (ending) => {
        await storeEnd({ id, ...ending, atMs: clock.now() });
        running.delete(id);
      });
      return { evalId: id };
    },

    'eval.get': async ({ evalId, offset, limit }, call) => {
      // Before the row: an end that is stored meanwhile is in it.
      const end = unstored.get(evalId);
      const { row, sums } = await find(evalId, call);
      const rows = await db.read(readResults, { evalId, from: offset, to: offset + limit });
      const results = Map.groupBy(rows, ({ caseNo }) => caseNo);
      const cases = casesOf(row).slice(offset, offset + limit);
      return {
        run: viewOf(row, sums, end),
        cases: cases.map((one, at) => ({ number: offset + at + 1, case: one, results: (results.get(offset + at) ?? []).map(resultOf) })),
        total: row.caseCount,
        offset,
        limit,
        hasMore: offset + cases.length < row.caseCount,
      };
    },

    'eval.list': async ({ offset, limit }, call) => {
      refuseAgents(call);
      await recover();
      const ends = new Map(unstored);
      const { runs, sums, total } = await db.read(listEvaluations, { principalId: reachOf(call), offset, limit });
      const views = runs.map((row) => viewOf(row, sums, ends.get(row.id)));
      return { runs: views, total, offset, limit, hasMore: offset + runs.length < total };
    },

    'eval.stop': async ({ evalId }, call) => {
      await find(evalId, call);
      const entry = running.get(evalId);
      entry?.controller.abort(new AppError('cancelled', 'The evaluation was stopped'));
      await entry?.ended;
      return { evalId, stopped: entry !== undefined };
    },
  };

  async function drain(): Promise<void> {
    for (const { controller } of running.values()) controller.abort(new AppError('unavailable', 'The daemon is stopping'));
    await Promise.all([...running.values()].map(({ ended }) => ended));
  }

  return {
    methods,
    claimed() {
      recovering = undefined;
    },
    drain,
    async [Symbol.asyncDispose]() {
      await drain();
      cancelRetry?.();
    },
  };
}
