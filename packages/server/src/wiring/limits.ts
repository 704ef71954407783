import { join } from 'node:path';
import type { BudgetOwners, CallsOf, MadeWork } from '../features/access/budgets/api.ts';
import type { AgentsApi } from '../features/agents/agents/api.ts';
import { createBudgets } from '../features/access/budgets/budgets.ts';
import { CallJournal } from '../features/access/budgets/usage/call-journal.ts';
import { maxCostOf } from '../features/access/budgets/limits/ledger.ts';
import { createAnnouncer } from '../features/conversations/turns/running/announce.ts';
import { modelsFor, ownModel } from '../features/conversations/turns/preparation/resolve-target.ts';
import { toKilledRecord, toLostRecord } from '../features/conversations/turns/running/killed-record.ts';
import { findTurn, reserveForTurn } from '../features/conversations/turns/store.ts';
import { createAutonomy } from '../features/delegation/autonomy/autonomy.ts';
import type { TracesApi } from '../features/operations/traces/api.ts';
import type { InboxApi } from '../features/unattended/inbox/api.ts';
import type { Lanes } from '../kernel/lane.ts';
import type { Embedder } from '../llm/embeddings.ts';
import type { Models } from '../llm/models.ts';
import { escalate } from '../transactions/escalate.ts';
import { abortOpenTurns, bookWork, openWork } from '../transactions/open-work.ts';
import { rootsOfToken } from '../transactions/token-roots.ts';
import { findWaitingRoot, listWaitingRoots, readRootTasks, readRootWaits } from '../transactions/waiting-roots.ts';
import type { Assembly } from './assembly.ts';
import type { Foundation } from './foundation.ts';
import type { Late } from './late.ts';
import type { RootTurns } from './root-turns.ts';

const dayMs = 86_400_000;

export interface LimitsWiring {
  readonly agents: AgentsApi;
  readonly owners: BudgetOwners;
  readonly models: Models;
  readonly generate: Models['generate'];
  readonly embedder: Embedder | undefined;
  readonly metrics: Pick<Foundation['metrics'], 'countAttempt'>;
  readonly inbox: Pick<InboxApi, 'announce'>;
  readonly lanes: Pick<Lanes, 'ofGroup'>;
  readonly rootTurns: Late<RootTurns>;
  readonly traces: TracesApi;
}

/** Wires what limits agents: their autonomy, and their budgets, which also meter model calls outside of turns. */
export async function wireLimits({ building, options, bootId, onClaimed, live, core, db, bus, clock }: Assembly, deps: LimitsWiring) {
  const { log } = options;
  const { agents, models, rootTurns } = deps;
  const journal = building.use(
    new CallJournal({
      file: join(options.home.dataDir, 'model-calls.journal'),
      clock,
      log: log.module('budgets'),
      bookLate: (of, record) => db.write(bookWork, { ...of, opened: false, calls: [record] }),
    }),
  );
  async function endTurns(made: readonly MadeWork[] = []): Promise<void> {
    const keptSinceMs = clock.now() - options.config.retention.turnDays * dayMs;
    const atMs = clock.now();
    const { ended, killed } = await db.write(abortOpenTurns, { atMs, made, keptSinceMs });
    if (ended > 0) log.warn({ turns: ended }, 'Aborted turns that a daemon left open');
    const left = new Map(killed.map((work) => [work.id, work]));
    for (const work of made) {
      if (work.turn === undefined || !(await wasRunning(work.id, atMs))) continue;
      deps.traces.record(toKilledRecord(work, work.turn, left.get(work.id)?.lostNano));
      left.delete(work.id);
    }
    for (const work of left.values()) deps.traces.work(toLostRecord(work));
  }
  /** Whether a turn had no end before `atMs`: it has none now, or that. The record of one that only waited exists already. */
  async function wasRunning(id: string, atMs: number): Promise<boolean> {
    const turn = await db.read(findTurn, { id });
    return turn !== undefined && (turn.endedAtMs === null || (turn.state === 'aborted' && turn.endedAtMs === atMs));
  }
  await endTurns(journal.left);
  journal.clear();
  onClaimed(endTurns);
  const autonomy = building.use(
    await createAutonomy({
      ...core('autonomy'),
      config: live(({ autonomy }) => autonomy),
      agents,
      maxCostOf,
      turns: () => rootTurns.value.all(),
      turnOf: (rootRunId) => rootTurns.value.find(rootRunId),
      waitingOf: (rootRunId) => rootTurns.value.waitingOf(rootRunId),
      operations: { findWaitingRoot, listWaitingRoots, readRootWaits, readRootTasks },
      rootsOfToken: (tokenId) => db.read(rootsOfToken, { tokenId }),
      deliver: escalate,
      announceMessage: deps.inbox.announce,
    }),
  );
  onClaimed(autonomy.recover);
  const budgets = building.use(
    await createBudgets({
      ...core('budgets'),
      bootId,
      overall: live(({ budgets }) => budgets),
      agents,
      owners: deps.owners,
      models,
      generate: deps.generate,
      embedder: deps.embedder,
      traces: deps.traces,
      modelsFor: (agent) => modelsFor(agent, models, ownModel(agent, models)),
      openCalls: (of) => journal.open(of),
      capped: (budget, turn) => autonomy.turns.cappedPart(budget, turn),
      openWork,
      bookWork,
      reserveForTurn,
      autonomyOf: autonomy.shown,
      announceUsed: createAnnouncer({ bus, clock }).used,
      countAttempt: deps.metrics.countAttempt,
      turnsOf: (agentId) => deps.lanes.ofGroup(agentId),
    }),
  );
  return { autonomy, budgets, openCalls: (of: CallsOf) => journal.open(of) };
}
