import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { ModelWork } from '../../access/budgets/api.ts';
import type { SessionsApi } from '../../conversations/sessions/api.ts';
import type { TurnsApi } from '../../conversations/turns/api.ts';
import { createAuthored } from './definition/authored.ts';
import { checkGraph } from './definition/input.ts';
import { graphAnnounceWork, type GraphOperations } from './run/operations.ts';
import { createNodeResultTool } from './nodes/node-result.ts';
import { createRunMethods } from './status/run-methods.ts';
import { createGraphRunner, type RunnerDeps } from './run/runner.ts';
import { createSavedMethods } from './definition/saved-methods.ts';
import { createStart, loadedMs, type StartDeps } from './run/start.ts';
import { loadGraph } from './status/read-store.ts';
import { pruneGraphs } from './store.ts';
import { createSummarizeOutput } from './nodes/summary.ts';
import { createAnnouncementDelivery, type DeliveryDeps, maxDeliveryAttempts } from './run/deliver-announcement.ts';
import { createPipelineTool } from './tool.ts';
import { variablesOf } from './definition/warnings.ts';

type GraphMethods =
  HandlersOf<`graph.${'define' | 'execute' | 'status' | 'outputs' | 'cancel' | 'answer' | 'save' | 'load' | 'list' | 'delete' | 'runs' | 'runDetail' | 'deleteRun'}`>;

export interface GraphDeps
  extends
    Omit<RunnerDeps, 'autonomy' | 'durable' | 'operations' | 'defaultAgentId' | 'summarize'>,
    Omit<StartDeps, 'autonomy' | 'durable' | 'operations' | 'sessions'> {
  readonly autonomy: RunnerDeps['autonomy'] & StartDeps['autonomy'];
  readonly durable: RunnerDeps['durable'] & DeliveryDeps['durable'];
  readonly operations: GraphOperations;
  readonly sessions: Pick<SessionsApi, 'existing'>;
  readonly turns: Pick<TurnsApi, 'announce'>;
  readonly work: Pick<ModelWork, 'generate'>;
}

export interface Graphs extends AsyncDisposable {
  readonly methods: GraphMethods;
  readonly tools: readonly Tool[];
  /** Halts graphs when the daemon stops; they resume at the next start. */
  stopping(): void;
}

const firstPruneMs = 60_000;
const pruneMs = 3_600_000;
const keptMs = 7 * 24 * 3_600_000;
/** How many ended graphs of all owners are kept. */
const keptRuns = 1000;
/** Maximum number of concurrent announcements. */
const maxDeliveries = 4;

/** Runs graphs of agents (json-rpc.md §4 graph) as durable work on top of sub-agent runs. */
export function createGraphs(deps: GraphDeps): Graphs {
  const { db, clock, log, durable, agents } = deps;
  const summarize = createSummarizeOutput({ ...deps, fence: (text) => deps.fence(text, { source: 'sub-agent' }) });
  const runner = createGraphRunner({ ...deps, summarize, defaultAgentId: agents.defaultId });
  deps.subagents.offerToNodes([createNodeResultTool(deps)]);
  const delivery = createAnnouncementDelivery(deps);
  durable.handle(graphAnnounceWork, delivery.handler, { concurrency: maxDeliveries, maxAttempts: maxDeliveryAttempts, gaveUp: delivery.gaveUp });

  function admitChange(call: CallContext): void {
    const { agentCaller } = call;
    if (agentCaller === undefined) return;
    const agent = agents.usable(agentCaller.agentId, call);
    if (!deps.autonomy.standing(agent, agentCaller).caps.has('orch:graph')) throw new AppError('denied', 'Capability denied: orch:graph');
  }

  const start = createStart(deps);
  const methods: GraphMethods = {
    'graph.define': async (params, call) => {
      admitChange(call);
      const { spec, warnings } = checkGraph(params, undefined, call, deps);
      return {
        valid: true,
        nodeCount: spec.nodes.length,
        executionOrder: spec.nodes.map(({ id }) => id),
        ...(spec.label !== undefined && { label: spec.label }),
        warnings,
        userVariables: variablesOf(spec),
      };
    },
    'graph.execute': (params, call) => start(params, call, { tainted: false }),
    ...createRunMethods({ ...deps, runner, admitChange }),
    ...createSavedMethods({ ...deps, admitChange }),
  };

  async function isTainted(graphId: string): Promise<boolean> {
    const found = await db.read(loadGraph, { id: graphId });
    return found === undefined || found.nodes.some(({ tainted }) => tainted === 1);
  }

  let isStopping = false;
  let pruning: Promise<void> = Promise.resolve();
  let cancelPrune = () => {};
  function pruneLater(ms: number): void {
    cancelPrune = clock.after(ms, () => {
      pruning = prune().catch((error: unknown) => log.warn({ err: error }, 'Failed to delete old graphs'));
    });
  }
  async function prune(): Promise<void> {
    const atMs = clock.ageNow();
    try {
      await db.write(pruneGraphs, { beforeMs: atMs - keptMs, loadedBeforeMs: atMs - loadedMs, kept: keptRuns });
    } finally {
      if (!isStopping) pruneLater(pruneMs);
    }
  }
  pruneLater(firstPruneMs);

  return {
    methods,
    tools: [createPipelineTool({ methods, execute: start, authored: createAuthored(deps), isTainted })],
    stopping: () => runner.stopping(),
    async [Symbol.asyncDispose]() {
      isStopping = true;
      cancelPrune();
      // Running graphs end with their durable work.
      await pruning;
    },
  };
}
