import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { repeat } from '../../../kernel/timers.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { WorkAuthority } from '../../access/tokens/api.ts';
import type { AutonomyApi } from '../autonomy/api.ts';
import type { EndpointsApi } from '../../channels/delivery/api.ts';
import type { DurableWork } from '../../unattended/durable/api.ts';
import type { ModelWork } from '../../access/budgets/api.ts';
import type { SessionsApi } from '../../conversations/sessions/api.ts';
import type { TurnsApi } from '../../conversations/turns/api.ts';
import { createAuthored } from './definition/authored.ts';
import { checkGraph } from './definition/input.ts';
import { graphAnnounceWork, type GraphOperations, graphWork } from './run/operations.ts';
import { createNodeResultTool } from './nodes/node-result.ts';
import { createControlMethods } from './run/control-methods.ts';
import { createRunMethods } from './status/run-methods.ts';
import { graphLimits, GraphRunner, type RunnerDeps } from './run/runner.ts';
import { createSavedMethods } from './definition/saved-methods.ts';
import { createRetry } from './run/start/retry.ts';
import { loadedMs } from './run/start/input.ts';
import { createStart, type StartDeps } from './run/start/start.ts';
import { loadGraph } from './status/read-store.ts';
import { pruneGraphs } from './store.ts';
import { createSummarizeOutput } from './nodes/summary.ts';
import { createAnnouncementDelivery, type DeliveryDeps, maxDeliveryAttempts } from './run/deliver-announcement.ts';
import { createPipelineTool } from './tool.ts';
import { variablesOf } from './definition/warnings.ts';

type GraphMethods =
  HandlersOf<`graph.${'define' | 'execute' | 'retry' | 'status' | 'outputs' | 'cancel' | 'answer' | 'save' | 'load' | 'list' | 'delete' | 'runs' | 'runDetail' | 'deleteRun'}`>;

export interface GraphDeps
  extends
    Omit<RunnerDeps, 'durable' | 'operations' | 'defaultAgentId' | 'summarize' | 'endpoints'>,
    Omit<StartDeps, 'autonomy' | 'durable' | 'operations' | 'sessions' | 'endpoints'> {
  readonly autonomy: Pick<AutonomyApi, 'onStop'> & StartDeps['autonomy'];
  readonly durable: Pick<DurableWork, 'handle' | 'wake'> & DeliveryDeps['durable'];
  readonly operations: GraphOperations;
  readonly sessions: Pick<SessionsApi, 'existing'>;
  readonly turns: Pick<TurnsApi, 'announce'>;
  readonly authority: Pick<WorkAuthority, 'covers'>;
  readonly endpoints: Pick<EndpointsApi, 'named' | 'address'>;
  readonly delivery: DeliveryDeps['delivery'];
  readonly work: Pick<ModelWork, 'generate' | 'tierOf'>;
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
/** How many ended graphs of each owner are kept. */
const keptRuns = 1000;
/** Maximum number of concurrent announcements. */
const maxDeliveries = 4;

/** Runs graphs of agents (json-rpc.md §4 graph) as durable work on top of sub-agent runs. */
export function createGraphs(deps: GraphDeps): Graphs {
  const { db, clock, log, durable, agents } = deps;
  const summarize = createSummarizeOutput({ ...deps, fence: (text) => deps.fence(text, { source: 'sub-agent' }) });
  const runner = new GraphRunner({ ...deps, summarize, defaultAgentId: agents.defaultId });
  durable.handle(graphWork, (item, signal) => runner.handle(item, signal), {
    ...graphLimits,
    gaveUp: (item, errorKind, cause) => runner.gaveUp(item, errorKind, cause),
  });
  deps.autonomy.onStop((rootRunId, how) => runner.stopRoot(rootRunId, how));
  deps.subagents.onStopped((runs) => runner.killOf(runs));
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
    ...createRetry({ db, start, admitChange }),
    ...createRunMethods({ ...deps, runner }),
    ...createControlMethods({ ...deps, runner, admitChange }),
    ...createSavedMethods({ ...deps, admitChange }),
  };

  async function isTainted(graphId: string): Promise<boolean> {
    const found = await db.read(loadGraph, { id: graphId });
    return found === undefined || found.nodes.some(({ tainted }) => tainted === 1);
  }

  const pruning = repeat({
    clock,
    everyMs: pruneMs,
    firstMs: firstPruneMs,
    async run() {
      const atMs = clock.ageNow();
      await db.write(pruneGraphs, { beforeMs: atMs - keptMs, loadedBeforeMs: atMs - loadedMs, kept: keptRuns });
    },
    onError: (error) => log.warn({ err: error }, 'Failed to delete old graphs'),
  });

  return {
    methods,
    tools: [createPipelineTool({ methods, execute: start, authored: createAuthored(deps), isTainted })],
    stopping: () => runner.stopping(),
    // Running graphs end with their durable work.
    [Symbol.asyncDispose]: () => pruning[Symbol.asyncDispose](),
  };
}
