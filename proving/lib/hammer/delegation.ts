import type { WorkClaim, WorkItem } from '../../../packages/server/src/features/unattended/durable/api.ts';
import type { SendIntake, SendProgress } from '../../../packages/server/src/features/delegation/session-send/api.ts';
import { failSend } from '../../../packages/server/src/features/delegation/session-send/store.ts';
import { beginLease, renewLeases } from '../../../packages/server/src/features/delegation/autonomy/roots/lease-store.ts';
import { bookTurnOnRoot } from '../../../packages/server/src/features/delegation/autonomy/store.ts';
import { keepRoots, pruneRoots } from '../../../packages/server/src/features/delegation/autonomy/roots/life-store.ts';
import { evict, kill, revoke } from '../../../packages/server/src/features/delegation/autonomy/stops/stop-store.ts';
import { deleteSaved, saveGraph } from '../../../packages/server/src/features/delegation/graph/definition/saved-store.ts';
import { answerGate, cancelGraph, deleteGraphRun, keepLoaded, pruneGraphs } from '../../../packages/server/src/features/delegation/graph/store.ts';
import { markRunsAnnounced, markSeen } from '../../../packages/server/src/features/delegation/subagents/completion/announcement-store.ts';
import { archiveRuns } from '../../../packages/server/src/features/delegation/subagents/run/sweep-store.ts';
import { claimWork } from '../../../packages/server/src/features/unattended/durable/store.ts';
import { toCall } from '../../../packages/server/src/kernel/db/operation.ts';
import { acceptRun, beginRun } from '../../../packages/server/src/transactions/accept-run.ts';
import { commitDurableTurn, openDurableTurn } from '../../../packages/server/src/transactions/commit-durable-turn.ts';
import { deliverAnnouncement, takeAnnouncement } from '../../../packages/server/src/transactions/deliver-announcements.ts';
import { endWork, endWorkWithMessage } from '../../../packages/server/src/transactions/end-interrupted-turn.ts';
import { bookWork } from '../../../packages/server/src/transactions/open-work.ts';
import { endRunWithTurn, finishRun, killRuns } from '../../../packages/server/src/transactions/end-run.ts';
import { escalate } from '../../../packages/server/src/transactions/escalate.ts';
import { acceptGraph, closeGraph, moveGraphNodes } from '../../../packages/server/src/transactions/graph-work.ts';
import { beginScript, endScript } from '../../../packages/server/src/transactions/orchestrate-work.ts';
import { acceptSend, failSendWork, keepAnswer } from '../../../packages/server/src/transactions/send-work.ts';
import { injectSteer, replaceRun } from '../../../packages/server/src/transactions/steer-run.ts';
import {
  agentId,
  atMs,
  count,
  differs,
  driver,
  type Driver,
  type Names,
  namesOf,
  type Outcome,
  principalId,
  quote,
  type Side,
  valueOf,
  type Writer,
  liveBoot,
} from './driver.ts';
import { endingOf, graphOf, leaseOf, messageOf, rootOf, runOf, turnOf, workOf } from './rows.ts';

interface Round {
  readonly round: string;
}

const claimOf = ({ id, owner, fence }: WorkItem): WorkClaim => ({ id, owner, fence });
const owners = ['owner-0', 'owner-1'] as const;

/** Claims until nothing is left, and runs each item; with leases that lapse at once, the other process takes over what is running. */
async function work(writer: Writer, kind: string, leaseMs: number, go: (item: WorkItem) => Promise<unknown>): Promise<void> {
  for (let idle = 0; idle < 4;) {
    const kinds = [{ kind, free: 4 }];
    const items = valueOf(await writer.write(claimWork, { owner: owners[writer.side], kinds, held: [], leaseUntilMs: atMs + leaseMs, atMs }));
    idle = items === undefined || items.length === 0 ? idle + 1 : 0;
    await writer.all((items ?? []).map((item) => () => go(item)));
    if (idle > 0) await new Promise((resolve) => setTimeout(resolve, 4));
  }
}

export function sendOf(names: Names, index: string, toRef: string): SendIntake {
  const id = names.id('ss', index);
  return {
    send: {
      id,
      mode: 'ping-pong',
      byAgent: false,
      fromRef: null,
      fromSessionKey: null,
      fromAgentId: null,
      toRef,
      toSessionKey: `hammer:${names.round}`,
      toAgentId: agentId,
      toPrincipalId: principalId,
      principalId,
      tokenId: 'root',
      authority: 'rpc',
      rootRunId: null,
      boundsJson: null,
      chatJson: null,
      text: 'Hello',
      tainted: false,
      maxTurns: 3,
      traceId: '',
      createdAtMs: atMs,
    },
    work: { ...workOf(names, 'session_send', index), key: `${id}/0`, payload: { sendId: id, leg: 0 } },
    isStarting: false,
    ageNowMs: atMs,
  };
}

/** Adds to a turn's end what belongs to it. */
const endOf = (names: Names, index: string, item: WorkItem, alongside: Parameters<Writer['write']>[1]) => {
  const ref = names.ref(500);
  const turn = turnOf(names, index, ref);
  return {
    claim: claimOf(item),
    turnId: turn.id,
    agentId,
    principalId,
    conversationRef: ref,
    turn,
    calls: [],
    conversation: null,
    settlement: { state: 'done' as const },
    alongside: alongside as never,
  };
};

const limit = { children: 3, queued: 5 };
const keys = 6;

interface Accepted {
  readonly byKey: readonly (string | undefined)[];
  readonly counted: number;
}

/** The same requests under the same keys, and more than the limit allows. */
const requests: Driver<Round, Accepted> = {
  name: 'requests of runs',
  prepare: (_, { round }) => Promise.resolve({ round }),
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const byKey = await writer.all(
      Array.from({ length: keys }, (_, index) => async () => {
        const asked = runOf(names, `${index}-${side}`, names.id('root', 'keys'), { counted: 0, requesterKey: names.id('requester', 'keys') });
        const key = { key: names.id('key', index), digest: '', sinceMs: 0 };
        const got = valueOf(await writer.write(acceptRun, { ...asked, key }));
        if (got === undefined || 'refused' in got) return undefined;
        return got.isNew ? asked.row.id : got.runId;
      }),
    );
    const some = await writer.all(
      Array.from(
        { length: 8 },
        (_, index) => () => writer.write(acceptRun, { ...runOf(names, `limited-${index}-${side}`, names.id('root', 'limit')), limits: limit }),
      ),
    );
    return { byKey, counted: count(some, (got) => 'isNew' in got && got.isNew) };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const [root] = await look(`select open_runs from root_run where id = ${quote(names.id('root', 'keys'))}`);
    const [rows] = await look(`select count(*) as count from sub_agent_run where root_run_id = ${quote(names.id('root', 'keys'))}`);
    const [limited] = await look(`select open_runs from root_run where id = ${quote(names.id('root', 'limit'))}`);
    return [
      ...first.byKey.flatMap((run, index) =>
        run !== undefined && run === second.byKey[index] ? [] : [`the key ${index} names ${String(run)} and ${String(second.byKey[index])}`],
      ),
      ...differs('runs under keys', rows?.['count'], keys),
      ...differs('open runs of their root', root?.['open_runs'], keys),
      ...differs('runs that were accepted within the limit', first.counted + second.counted, limit.children + limit.queued),
      ...differs('open runs of the limited root', limited?.['open_runs'], limit.children + limit.queued),
    ];
  },
};

const runs = 8;
/** Runs with an even number end without their turns. */
const isEven = (runId: string) => Number(runId.at(-1)) % 2 === 0;

interface Ends {
  readonly ended: readonly string[];
  readonly announced: readonly string[];
}

/** Runs with children: begun, steered, ended and killed by both, and announced once. */
const runEnds: Driver<Round, Ends> = {
  name: 'ends of runs',
  async prepare(db, names) {
    const rootRunId = names.id('root', 0);
    for (let index = 0; index < runs; index += 1) await db.write(acceptRun, runOf(names, index, rootRunId));
    for (let index = 0; index < runs; index += 1) {
      const parent = { parentRunId: names.id('sr', index), announceTo: 'run' as const, announceRunId: names.id('sr', index) };
      await db.write(acceptRun, runOf(names, `child-${index}`, rootRunId, parent));
    }
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const ended: string[] = [];
    const announced: string[] = [];
    const go = async (item: WorkItem) => {
      const { runId } = item.payload as { readonly runId: string };
      const claim = claimOf(item);
      await writer.write(beginRun, { claim, runId, atMs: atMs + item.fence });
      await writer.write(injectSteer, {
        runId,
        text: 'more',
        steerId: names.id('st', `${runId}-${side}-${item.fence}`),
        beforeMs: atMs,
        atMs: atMs + 1,
      });
      if (isEven(runId)) {
        if (valueOf(await writer.write(finishRun, { claim, ending: endingOf(runId) })) !== undefined) ended.push(runId);
        return;
      }
      const end = endOf(names, `${runId}-end`, item, [toCall(endRunWithTurn, endingOf(runId))]);
      const done = valueOf(await writer.write(commitDurableTurn, end));
      if (done?.settled === true && done.outputs[0]?.output !== undefined) ended.push(runId);
    };
    const killed = async (runId: string) => {
      const audit = names.audit(`kill-${runId}-${side}`);
      const some = valueOf(await writer.write(killRuns, { which: { runId }, endReason: 'killed', errorKind: 'killed', notify: true, audit, atMs }));
      for (const { row } of some ?? []) ended.push(row.id);
    };
    await writer.race([
      () => work(writer, 'subagent', 0, go),
      ...[0, 1, 2].map((index) => () => killed(names.id('sr', index))),
      () => writer.write(markSeen, { runIds: [names.id('sr', 3)], turnId: names.id('tn', 'none'), requesterRef: names.ref(0) }),
    ]);
    const announce = async (item: WorkItem) => {
      const { runId } = item.payload as { readonly runId: string };
      const claim = claimOf(item);
      const taken = valueOf(await writer.write(takeAnnouncement, { ref: names.ref(0), claim, runId, limit: 3 }, ['conflict']));
      const runIds = (taken?.rows ?? []).map(({ id }) => id);
      const isByTurn = !isEven(runId);
      const done = isByTurn
        ? valueOf(
            await writer.write(
              commitDurableTurn,
              endOf(names, `${runId}-announced`, item, [toCall(markRunsAnnounced, { runIds, as: 'turn' as const })]),
            ),
          )?.settled
        : valueOf(await writer.write(deliverAnnouncement, { claim, runIds, inbox: runIds.map((id) => messageOf(names, id, side)), atMs }));
      if (done === true) announced.push(...runIds);
    };
    await work(writer, 'announce', 0, announce);
    await writer.write(archiveRuns, { beforeMs: 0, unannouncedBeforeMs: 0, keysBeforeMs: 0, kept: 10_000, limit: 10 });
    return { ended, announced };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const rows = await look(`select id, ended_at_ms, announced, announce_to from sub_agent_run where root_run_id = ${quote(names.id('root', 0))}`);
    const [root] = await look(
      `select state, open_runs, completed_runs + failed_runs as ended from root_run where id = ${quote(names.id('root', 0))}`,
    );
    const ended = [...first.ended, ...second.ended];
    const announced = [...first.announced, ...second.announced];
    return [
      ...differs('runs', rows.length, runs * 2),
      ...rows.flatMap((row) => {
        const id = String(row['id']);
        return [
          ...differs(`ends of ${id} that were acknowledged`, ended.filter((other) => other === id).length, 1),
          ...(row['ended_at_ms'] === null ? [`the run ${id} is stuck`] : []),
          ...(row['announced'] === 'pending' ? [`the end of the run ${id} (to ${String(row['announce_to'])}) is never announced`] : []),
          ...(announced.filter((other) => other === id).length > 1 ? [`the run ${id} was announced twice`] : []),
        ];
      }),
      ...differs('open runs of the root', root?.['open_runs'], 0),
      ...differs('ended runs of the root', root?.['ended'], runs * 2),
      ...(root?.['state'] === 'active' ? ['the root without runs is still active'] : []),
    ];
  },
};

interface StopAnswers {
  readonly begun: number;
  readonly killed: number;
  readonly replaced: readonly number[];
  /** Roots, once for each booking that was acknowledged. */
  readonly spent: readonly number[];
}

/** Requests, replacements and scripts below roots that are stopped at the same time: nothing begins after a stop. */
const stops: Driver<Round, StopAnswers> = {
  name: 'stops',
  async prepare(db, names) {
    for (let index = 0; index < 4; index += 1) await db.write(acceptRun, runOf(names, index, names.id('root', index)));
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    let begun = 0;
    let killed = 0;
    const replaced: number[] = [];
    const spent: number[] = [];
    const refusals = ['denied', 'not_found', 'precondition_failed'];
    const did = (outcome: Outcome) => ('value' in outcome ? 1 : 0);
    await writer.race(
      [0, 1, 2, 3].flatMap((index) => {
        const rootRunId = names.id('root', index);
        const parentRunId = names.id('sr', index);
        const lease = leaseOf(names, `script-${index}-${side}`, rootRunId, names.id('ls', index));
        const stop = { rootRunId, turn: undefined, audit: names.audit(`stop-${index}-${side}`), agentIds: null, principalId: null, atMs };
        return [
          async () => (begun += did(await writer.write(acceptRun, runOf(names, `late-${index}-${side}`, rootRunId, { parentRunId }), refusals))),
          async () => {
            if (did(await writer.write(beginScript, { root: rootOf(rootRunId, 'script'), lease }, refusals)) === 1) {
              begun += 1;
              await writer.write(endScript, {
                leaseId: lease.id,
                bootId: liveBoot,
                root: { rootRunId, kind: 'script', failed: false, tokens: 0, costNano: 0, atMs },
              });
            }
          },
          async () => {
            const next = runOf(names, `next-${index}-${side}`, rootRunId);
            const got = valueOf(await writer.write(replaceRun, { runId: parentRunId, next, beforeMs: atMs, atMs: atMs + 1 }, refusals));
            if (typeof got === 'object') replaced.push(index);
          },
          async () => {
            killed += did(await writer.write(kill, stop, refusals));
            await writer.write(killRuns, { which: { rootRunId }, endReason: 'killed', errorKind: 'killed', notify: false, atMs });
          },
          async () => {
            // The booking of work, and the commit of a turn.
            if (did(await writer.write(bookWork, bookingOf(names, `${index}-${side}`, rootRunId))) === 1) spent.push(index);
            if (did(await writer.write(bookTurnOnRoot, { id: rootRunId, tokens: 2, nano: 1, unpriced: 0 })) === 1) spent.push(index);
          },
          () => writer.write(evict, { ...stop, audit: names.audit(`evict-${index}-${side}`) }, refusals),
          () => writer.write(revoke, { ...stop, leaseId: names.id('ls', index), audit: names.audit(`revoke-${index}-${side}`) }),
          () => writer.write(beginLease, { id: names.id('ls', index), expiresAtMs: atMs * 2 }),
          () => writer.write(renewLeases, { ids: [names.id('ls', index)], expiresAtMs: atMs * 2 }),
        ];
      }),
    );
    const free = names.id('root', `free-${side}`);
    const script = leaseOf(names, `free-${side}`, free);
    await writer.write(beginScript, { root: rootOf(free, 'script'), lease: script });
    await writer.write(endScript, {
      leaseId: script.id,
      bootId: liveBoot,
      root: { rootRunId: free, kind: 'script', failed: false, tokens: 0, costNano: 0, atMs },
    });
    await writer.write(keepRoots, { atMs, spent: [{ id: names.id('root', 0), tokens: 1, nano: 1, activeMs: 1, unpriced: false }] });
    await writer.write(pruneRoots, { beforeMs: 0, limit: 10 });
    await writer.write(escalate, messageOf(names, 'escalated', side));
    return { begun, killed, replaced, spent };
  },
  async check(look, { round }, [first, second]) {
    const wrong: string[] = [];
    for (const [index] of [0, 1, 2, 3].entries()) {
      const names = namesOf(round);
      const [root] = await look(`select state, open_runs, open_scripts, ended_nano from root_run where id = ${quote(names.id('root', index))}`);
      const [open] = await look(
        `select count(*) as count from sub_agent_run where root_run_id = ${quote(names.id('root', index))} and ended_at_ms is null`,
      );
      const [leases] = await look(
        `select count(*) as count from lease where root_run_id = ${quote(names.id('root', index))} and ended_at_ms is null`,
      );
      wrong.push(
        ...(root?.['state'] === 'revoked' ? [] : [`the stopped root ${index} is ${String(root?.['state'])}`]),
        ...differs(`runs left of the stopped root ${index}`, open?.['count'], 0),
        ...differs(`open runs that the root ${index} counts`, root?.['open_runs'], open?.['count']),
        ...differs(`open scripts that the root ${index} counts`, root?.['open_scripts'], 0),
        ...differs(`leases left of the stopped root ${index}`, leases?.['count'], 0),
      );
      const replaced = [...first.replaced, ...second.replaced].filter((other) => other === index).length;
      const spent = [...first.spent, ...second.spent].filter((other) => other === index).length;
      wrong.push(...differs(`the cost of the root ${index}`, root?.['ended_nano'], spent));
      if (replaced > 1) wrong.push(`the run ${index} was replaced ${replaced} times`);
    }
    const [seen] = await look(`select count(*) as count from inbox_message where op_key = ${quote(namesOf(round).id('op', 'escalated'))}`);
    return [...wrong, ...differs('messages under one key', seen?.['count'], 1)];
  },
};

/** One call of work that is a part of a root run. */
const bookingOf = (names: Names, index: string, rootRunId: string) => ({
  id: `wk_${names.round}-root-${index}`,
  agentId,
  principalId,
  conversationRef: null,
  rootRunId,
  opened: false,
  calls: [
    {
      provider: 'hammer',
      modelId: 'hammer',
      operation: 'condensation' as const,
      usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, estimated: false },
      cost: { input: 1, output: 0, cacheRead: 0, cacheWrite: 0 },
      savedNano: null,
      latencyMs: 1,
      startedAtMs: atMs,
      outcome: 'ok' as const,
    },
  ],
});

const graphs = 4;

interface GraphEnds {
  readonly accepted: readonly string[];
  readonly closed: readonly string[];
  readonly newAnswers: number;
  readonly cancelled: number;
}

const nodeOf = (nodeId: string, fence: number) => ({
  nodeId,
  state: 'running' as const,
  attempt: fence,
  runId: null,
  stepsJson: '[]',
  output: null,
  error: null,
  cause: null,
  effectsRefused: 0,
  partial: 0,
  tainted: 0,
  tokens: fence,
  costNano: 0,
  unpriced: 0,
  startedAtMs: atMs,
  deadlineMs: atMs + 60_000,
  endedAtMs: null,
});

/** Graphs accepted under the same key, moved and ended by the owner of the claim, answered and cancelled by both. */
const graphRuns: Driver<Round, GraphEnds> = {
  name: 'graphs',
  async prepare(db, names) {
    for (let index = 0; index < graphs; index += 1)
      await db.write(keepLoaded, graphOf(names, index, { state: 'pending', startedAtMs: null, workId: null, rootRunId: null }));
    await db.write(saveGraph, { row: savedOf(names, 'shared'), isNew: true, audit: names.audit('saved') });
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const accepted: string[] = [];
    const closed: string[] = [];
    let newAnswers = 0;
    let cancelled = 0;
    await writer.all(
      Array.from({ length: graphs }, (_, index) => async () => {
        const row = graphOf(names, index);
        const graph = { ...workOf(names, 'graph', index), key: row.id, payload: { graphId: row.id } };
        const root = rootOf(row.rootRunId ?? '', 'graph');
        const audit = names.audit(`graph-${index}-${side}`);
        const got = valueOf(await writer.write(acceptGraph, { row, nodeIds: ['gate', 'last'], wasLoaded: true, root, work: graph, audit }));
        if (got === 'accepted') accepted.push(row.id);
      }),
    );
    const go = async (item: WorkItem) => {
      const { graphId } = item.payload as { readonly graphId: string };
      const claim = claimOf(item);
      const changes = [nodeOf('gate', item.fence)];
      const inbox = [messageOf(names, `${graphId}-ask`, `${side}-${item.fence}`)];
      await writer.write(moveGraphNodes, { claim, graphId, changes, inbox, waitedMs: item.fence });
      const end = { id: graphId, state: 'completed' as const, reason: null, error: 'over', atMs };
      const announced = { ...workOf(names, 'graph_told', graphId), key: graphId, payload: { graphId } };
      const close = valueOf(await writer.write(closeGraph, { claim, end, errorKind: null, work: announced }));
      if (close === undefined) return;
      if ('found' in close) closed.push(graphId);
      else {
        const stop = { ...end, state: 'cancelled' as const, reason: close.stoppedBy };
        const stopped = valueOf(await writer.write(closeGraph, { claim, end: stop, errorKind: 'killed', work: announced }));
        if (stopped !== undefined && 'found' in stopped) closed.push(graphId);
      }
    };
    const ask = async (index: number) => {
      const answer = side === 0 ? ('approved' as const) : ('denied' as const);
      const got = valueOf(await writer.write(answerGate, { graphId: names.id('gr', index), nodeId: 'gate', answer, text: null, atMs }));
      if (got?.isNew === true) newAnswers += 1;
    };
    await writer.race([
      () => work(writer, 'graph', 0, go),
      ...Array.from({ length: graphs }, (_, index) => () => ask(index)),
      async () => (cancelled += count([await writer.write(cancelGraph, { id: names.id('gr', 0), reason: 'manual' })], Boolean)),
      () => writer.write(saveGraph, { row: savedOf(names, `own-${side}`), isNew: true, audit: names.audit(`save-${side}`) }),
      () => writer.write(saveGraph, { row: savedOf(names, 'shared'), isNew: false, audit: names.audit(`replace-${side}`) }),
      () => writer.write(deleteSaved, { id: names.id('sg', 'shared'), audit: names.audit(`delete-${side}`) }),
      () => writer.write(keepLoaded, graphOf(names, `loaded-${side}`, { state: 'pending', startedAtMs: null, workId: null, rootRunId: null })),
      () => writer.write(pruneGraphs, { beforeMs: 0, loadedBeforeMs: 0, kept: 10_000 }),
    ]);
    await work(writer, 'graph_told', 60_000, (item) =>
      writer.write(endWorkWithMessage, { ...claimOf(item), state: 'done', inbox: messageOf(names, `${item.key}-announced`, side), atMs }),
    );
    await writer.write(deleteGraphRun, { id: names.id('gr', 1), audit: names.audit(`drop-${side}`) });
    return { accepted, closed, newAnswers, cancelled };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const wrong: string[] = [];
    for (let index = 0; index < graphs; index += 1) {
      const id = names.id('gr', index);
      const is = (other: string) => other === id;
      wrong.push(
        ...differs(`acceptances of ${id}`, [...first.accepted, ...second.accepted].filter(is).length, 1),
        ...differs(`ends of ${id} that were acknowledged`, [...first.closed, ...second.closed].filter(is).length, 1),
      );
      const [announced] = await look(`select count(*) as count from inbox_message where op_key = ${quote(names.id('op', `${id}-announced`))}`);
      const [root] = await look(`select open_graphs, graphs from root_run where id = ${quote(names.id('root-graph', index))}`);
      wrong.push(
        ...differs(`announcements of ${id}`, announced?.['count'], 1),
        ...differs(`open graphs of the root of ${id}`, root?.['open_graphs'], 0),
        ...differs(`graphs of the root of ${id}`, root?.['graphs'], 1),
      );
    }
    if (first.cancelled + second.cancelled > 1) wrong.push('a graph was cancelled twice');
    if (first.newAnswers + second.newAnswers > graphs) wrong.push('a gate was answered twice');
    const [open] = await look(`select count(*) as count from graph_run where id like 'gr_${round}-%' and state = 'running'`);
    const [nodes] = await look('select count(*) as count from graph_node where graph_id not in (select id from graph_run)');
    const [saved] = await look(`select count(*) as count from saved_graph where id like 'sg_${round}-%'`);
    return [
      ...wrong,
      ...differs('graphs that are stuck', open?.['count'], 0),
      ...differs('nodes without a graph', nodes?.['count'], 0),
      ...differs('saved graphs', saved?.['count'], 2),
    ];
  },
};

const savedOf = (names: Names, index: string) => ({
  id: names.id('sg', index),
  principalId: names.id('principal', 0),
  agentId: null,
  label: index,
  definitionJson: '{}',
  nodeCount: 1,
  createdAtMs: atMs,
  updatedAtMs: atMs,
});

/** Answers to messages between conversations: each leg is stored once. */
const sends: Driver<Round, { readonly accepted: number; readonly crowded: number; readonly ended: readonly string[] }> = {
  name: 'messages between conversations',
  prepare: (_, { round }) => Promise.resolve({ round }),
  async run(writer, { round }, side: Side) {
    const names = namesOf(round);
    const intakes = Array.from({ length: 30 }, (_, index) => ({ ...sendOf(names, `${side}-${index}`, names.ref(0)), isStarting: true }));
    const accepted = await writer.all(intakes.map((intake) => () => writer.write(acceptSend, intake, ['rate_limited'])));
    const crowd = Array.from({ length: 30 }, (_, index) => ({ ...sendOf(names, `crowd-${side}-${index}`, names.ref(1)), isStarting: true }));
    const crowded = await writer.all(crowd.map((intake) => () => writer.write(acceptSend, intake, ['rate_limited'])));
    const ended: string[] = [];
    const go = async (item: WorkItem) => {
      const { sendId, leg } = item.payload as { readonly sendId: string; readonly leg: number };
      const claim = claimOf(item);
      if (sendId.includes('crowd')) {
        await writer.write(endWork, { ...claim, state: 'done', atMs });
        return;
      }
      const place = Number(sendId.split('-').at(-1));
      if (place % 3 === 0) {
        if (
          valueOf(await writer.write(failSendWork, { claim, id: sendId, errorKind: 'hammer', inbox: messageOf(names, sendId, side), atMs })) === true
        )
          ended.push(sendId);
        return;
      }
      if (place % 3 === 1) await writer.write(failSend, { id: sendId, errorKind: 'killed', atMs });
      const more = {
        ...workOf(names, 'session_send', `${sendId}-${leg + 1}`),
        key: `${sendId}/${leg + 1}`,
        payload: { sendId, leg: leg + 1 },
        owed: true as const,
      };
      const turn = turnOf(names, `${sendId}-${leg}`, names.ref(0), { state: 'running', endedAtMs: null });
      await writer.write(openDurableTurn, { claim, turn });
      const progress = { sendId, leg, response: 'said', tokens: 1, costNano: 1, errorKind: null, atMs };
      const answer: SendProgress = leg === 0 ? { ...progress, next: more } : { ...progress, inbox: messageOf(names, sendId, side) };
      const done = valueOf(await writer.write(commitDurableTurn, endOf(names, `${sendId}-${leg}`, item, [toCall(keepAnswer, answer)])));
      if (done?.settled === true && leg === 1) ended.push(sendId);
    };
    await work(writer, 'session_send', 0, go);
    return { accepted: count(accepted, () => true), crowded: count(crowded, () => true), ended };
  },
  async check(look, { round }, [first, second]) {
    const rows = await look(`select id, state, leg, tokens from session_send where to_ref = ${quote(namesOf(round).ref(0))}`);
    const ended = [...first.ended, ...second.ended];
    const [messages] = await look(`select count(*) as count from inbox_message where op_key like 'op_${round}-ss_%'`);
    return [
      ...differs('rows of messages', rows.length, first.accepted + second.accepted),
      ...differs('messages that fit in one conversation', first.crowded + second.crowded, 50),
      ...rows.flatMap(({ id, state, leg, tokens }) => {
        const times = ended.filter((other) => other === id).length;
        return [
          ...(state === 'open' ? [`the message ${String(id)} is stuck`] : []),
          ...(times > 1 ? [`the message ${String(id)} was ended ${times} times`] : []),
          ...(state === 'done' ? differs(`legs of ${String(id)} that are paid`, tokens, Number(leg) + 1) : []),
        ];
      }),
      ...differs('notices of ends', messages?.['count'], rows.filter(({ id }) => ended.includes(String(id))).length),
    ];
  },
};

export const delegationDrivers = [driver(requests), driver(runEnds), driver(stops), driver(graphRuns), driver(sends)];
