import { acceptRun, beginRun } from '../../packages/server/src/transactions/accept-run.ts';
import { checkpointTurn, commitDurableTurn, openDurableTurn, reserveForDurable } from '../../packages/server/src/transactions/commit-durable-turn.ts';
import { endRunWithTurn, finishRun } from '../../packages/server/src/transactions/end-run.ts';
import type { RootEntry } from '../../packages/server/src/features/delegation/autonomy/api.ts';
import type { NewWork, WorkClaim, WorkItem } from '../../packages/server/src/features/unattended/durable/api.ts';
import { claimWork, releaseWork, renewWork, returnWork } from '../../packages/server/src/features/unattended/durable/store.ts';
import type { InboxMessage } from '../../packages/server/src/features/unattended/inbox/api.ts';
import type { SendRow } from '../../packages/server/src/features/delegation/session-send/api.ts';
import type { RunEnding } from '../../packages/server/src/features/delegation/subagents/api.ts';
import { endWork } from '../../packages/server/src/transactions/end-interrupted-turn.ts';
import { endWorkWithMessage } from '../../packages/server/src/transactions/end-interrupted-turn.ts';
import { acceptGraph, closeGraph, moveGraphNodes } from '../../packages/server/src/transactions/graph-work.ts';
import { markRunsAnnounced } from '../../packages/server/src/features/delegation/subagents/completion/announcement-store.ts';
import type { Db } from '../../packages/server/src/kernel/db/db.ts';
import { type OperationCall, toCall } from '../../packages/server/src/kernel/db/operation.ts';
import { acceptSend, failSendWork, keepAnswer } from '../../packages/server/src/transactions/send-work.ts';
import { deliverAnnouncement } from '../../packages/server/src/transactions/deliver-announcements.ts';
import { pause } from './daemon.ts';

/** Kinds of work for which a stale owner is tested. */
export const staleKinds = ['subagent', 'graph', 'session_send', 'announce', 'graph_told'] as const;
export type StaleKind = (typeof staleKinds)[number];

/** A write by the holder of the work, by name. */
export type Write = readonly [name: string, go: (db: Db, claim: WorkClaim) => Promise<unknown>];

/** An accepted work item, and all that its owner may write about it. */
export interface Piece {
  readonly kind: string;
  readonly writes: readonly Write[];
  /** Writes that end it. */
  readonly ends: readonly Write[];
}

const atMs = Date.UTC(2026, 8, 21, 12);
const principalId = 'token:root';
const agentId = 'default';
const ref = (n: number) => `cv_${String(n).padStart(43, '0')}`;

export async function makePiece(db: Db, kind: StaleKind, n: number): Promise<Piece> {
  switch (kind) {
    case 'subagent': {
      const runId = await addRun(db, n);
      const runEnd = endingOf(runId);
      // Each at a different time, so that a repeated write is seen.
      let begun = 0;
      const more: Write[] = [['begin', (on, claim) => on.write(beginRun, { claim, runId, atMs: atMs + (begun += 1) })]];
      return piece(kind, n, more, [
        ['finish', (on, claim) => on.write(finishRun, { claim, ending: runEnd })],
        ['commit', (on, claim) => on.write(commitDurableTurn, commitOf(n, claim, [toCall(endRunWithTurn, runEnd)]))],
      ]);
    }
    case 'graph': {
      const graphId = await addGraphRun(db, n);
      const change = {
        nodeId: 'only',
        state: 'running' as const,
        attempt: 1,
        runId: null,
        stepsJson: '[]',
        output: null,
        error: null,
        tainted: 0,
        partial: 0,
        cause: null,
      };
      const numbers = { effectsRefused: 0, tokens: 7, costNano: 7, unpriced: 0, startedAtMs: atMs, deadlineMs: null, endedAtMs: null };
      const moved = { graphId, changes: [{ ...change, ...numbers }], inbox: [messageOf(`graph:${graphId}:ask`)] };
      return piece(kind, n, [['move', (on, claim) => on.write(moveGraphNodes, { claim, ...moved })]], [['close', closing(graphId)]]);
    }
    case 'session_send': {
      const sendId = await addSend(db, n);
      const progress = { sendId, leg: 0, response: 'stale', tokens: 1, costNano: 1, errorKind: null, atMs };
      const next = workOf('session_send', `${sendId}/1`, { sendId, leg: 1 });
      return piece(
        kind,
        n,
        [],
        [
          ['fail', (on, claim) => on.write(failSendWork, { claim, id: sendId, errorKind: 'stale', atMs })],
          [
            'answer',
            (on, claim) =>
              on.write(commitDurableTurn, commitOf(n, claim, [toCall(keepAnswer, { ...progress, inbox: messageOf(`session_send:${sendId}`) })])),
          ],
          ['continue', (on, claim) => on.write(commitDurableTurn, commitOf(n, claim, [toCall(keepAnswer, { ...progress, next })]))],
        ],
      );
    }
    case 'announce': {
      const runId = await addRun(db, n);
      const run = await claimOf(db, 'subagent', 'past', atMs);
      await db.write(finishRun, { claim: run, ending: endingOf(runId) });
      const announcement = { runIds: [runId], atMs };
      return piece(
        kind,
        n,
        [],
        [
          ['note', (on, claim) => on.write(deliverAnnouncement, { claim, ...announcement, inbox: [messageOf(`subagent:${runId}`)] })],
          ['announce', (on, claim) => on.write(commitDurableTurn, commitOf(n, claim, [toCall(markRunsAnnounced, { runIds: [runId], as: 'turn' })]))],
        ],
      );
    }
    case 'graph_told': {
      const graphId = await addGraphRun(db, n);
      await closing(graphId, workOf('graph_told', graphId, { graphId }))(db, await claimOf(db, 'graph', 'past', atMs));
      const inbox = messageOf(`graph:${graphId}:end`);
      return piece(
        kind,
        n,
        [],
        [
          ['message', (on, claim) => on.write(endWorkWithMessage, { ...claim, state: 'done', inbox, atMs })],
          ['turn', (on, claim) => on.write(commitDurableTurn, commitOf(n, claim, []))],
        ],
      );
    }
  }
}

/** Claims an item; PostgreSQL skips one that another process has locked at that moment. */
export async function claimOf(db: Db, kind: string, owner: string, nowMs: number): Promise<WorkItem> {
  const kinds = [{ kind, free: 1 }];
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const [item] = await db.write(claimWork, { owner, kinds, held: [], leaseUntilMs: nowMs + 60_000, atMs: nowMs });
    if (item !== undefined) return item;
    await pause(50);
  }
  throw new Error(`${owner} finds no work of kind ${kind}`);
}

/** Ends the graphs of some items; open ones are limited in number. */
export async function endGraphs(db: Db, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n += 1) {
    const end = { id: `gr_${n}`, state: 'completed' as const, reason: null, error: 'over', atMs };
    await db.write(closeGraph, { end, errorKind: null });
  }
}

/** Ends the work that an item has led to, so that the next one is alone. */
export async function endAll(db: Db, all: readonly string[] = staleKinds): Promise<void> {
  const kinds = all.map((kind) => ({ kind, free: 10 }));
  const left = await db.write(claimWork, { owner: 'last', kinds, held: [], leaseUntilMs: atMs * 2, atMs: atMs + 200_000 });
  for (const { id, owner, fence } of left) await db.write(endWork, { id, owner, fence, state: 'done', atMs });
}

/** Adds the writes that every owner of work may make. */
export function piece(kind: string, n: number, writes: readonly Write[], ends: readonly Write[]): Piece {
  const totals = { steps: 1, inputTokens: 1, outputTokens: 1, costNano: 1 };
  const intent = { opKey: `stale-${n}`, step: 1, callId: 'c', toolName: 'ls' };
  const ledger: readonly Write[] = [
    ['open', (db, claim) => db.write(openDurableTurn, { claim, turn: turnOf(n, 'running') })],
    ['checkpoint', (db, claim) => db.write(checkpointTurn, { claim, ...ofTurn(n), totals, calls: [], intent })],
    ['reserve', (db, claim) => db.write(reserveForDurable, { claim, id: `tn_${n}`, reservedNano: 5, model: 'stale' })],
    ['renew', (db, claim) => db.write(renewWork, { claims: [claim], leaseUntilMs: atMs * 2 })],
  ];
  const general: readonly Write[] = [
    ['settle', (db, claim) => db.write(endWork, { ...claim, state: 'failed', errorKind: 'stale', atMs })],
    ['retry', (db, claim) => db.write(returnWork, { ...claim, errorKind: 'stale', notBeforeMs: atMs })],
    ['release', (db, claim) => db.write(releaseWork, claim)],
  ];
  return { kind, writes: [...ledger, ...writes, ...ends, ...general], ends };
}

const workOf = (kind: StaleKind, key: string, payload: object): NewWork => ({
  id: `wi_${kind}_${key}`,
  kind,
  key,
  digest: '',
  agentId,
  payload,
  owed: true,
  atMs,
});

const rootOf = (rootRunId: string, what: RootEntry['kind']): RootEntry => ({
  rootRunId,
  kind: what,
  agentId,
  principalId,
  conversationRef: null,
  origin: 'rpc' as const,
  profile: 'standard',
  atMs,
});

async function addRun(db: Db, n: number): Promise<string> {
  const id = `sr_${n}`;
  const [rootRunId, leaseId, conversationRef] = [`root-run-${n}`, `ls_${n}`, ref(1_000_000 + n)];
  const work = workOf('subagent', id, { runId: id });
  const row = {
    id,
    rootRunId,
    leaseId,
    parentRunId: null,
    depth: 1,
    agentId,
    principalId,
    tokenId: 'root',
    requesterKey: `key-${n}`,
    requesterRef: ref(n),
  };
  const about = { requesterAgentId: agentId, counted: 1, conversationRef, sessionKey: `subagent:gateway:${id}`, task: 'Look', optionsJson: '{}' };
  const requester = { announceTo: 'conversation' as const, announceRef: ref(n), announceTargetJson: '{}', announceRunId: null };
  await db.write(acceptRun, {
    row: { ...row, ...about, ...requester, graphId: null, nodeId: null, workId: work.id, queuedAtMs: atMs, steeredAtMs: null },
    work,
    lease: {
      id: leaseId,
      rootRunId,
      parentLeaseId: null,
      runId: id,
      agentId,
      principalId,
      caps: [],
      issuedAtMs: atMs,
      expiresAtMs: atMs * 2,
      bearerDigest: null,
      bootId: '',
    },
    root: rootOf(rootRunId, 'run'),
  });
  return id;
}

const endingOf = (runId: string): RunEnding => ({
  runId,
  state: 'completed',
  endReason: 'completed',
  errorKind: null,
  cause: null,
  summary: 'said',
  resultText: 'said',
  resultRefJson: null,
  telemetryJson: null,
  tainted: 0,
  tokens: 3,
  costNano: 3,
  atMs,
});

async function addGraphRun(db: Db, n: number): Promise<string> {
  const id = `gr_${n}`;
  const rootRunId = `root-graph-${n}`;
  const work = workOf('graph', id, { graphId: id });
  const row = { id, principalId, tokenId: 'root', agentId, label: null, definitionJson: '{}', variablesJson: '{}', nodeCount: 1, rootRunId };
  const times = { createdAtMs: atMs, startedAtMs: atMs, endedAtMs: null, waitedMs: 0 };
  const accepted = await db.write(acceptGraph, {
    row: {
      ...row,
      ...times,
      requesterJson: null,
      byAgent: 0,
      announceJson: '{}',
      nodeProgress: 0,
      workId: work.id,
      state: 'running',
      cancelReason: null,
    },
    nodeIds: ['only'],
    wasLoaded: false,
    root: rootOf(rootRunId, 'graph'),
    work,
    audit: { id: `au_${n}`, atMs, principalId, action: 'graph.execute', classification: 'mutate', outcome: 'success', traceId: '' },
  });
  if (accepted !== 'accepted') throw new Error(`the graph ${id} was not accepted: ${JSON.stringify(accepted)}`);
  return id;
}

function closing(graphId: string, work?: NewWork): Write[1] {
  const end = { id: graphId, state: 'completed' as const, reason: null, error: 'over', atMs };
  const notice = work === undefined ? { inbox: messageOf(`graph:${graphId}:end`) } : { work };
  return (db, { id, owner, fence }) => db.write(closeGraph, { claim: { id, owner, fence }, end, errorKind: null, ...notice });
}

async function addSend(db: Db, n: number): Promise<string> {
  const id = `ss_${n}`;
  const from = { fromRef: ref(n), fromSessionKey: 'a:b', fromAgentId: agentId };
  const to = { toRef: ref(2_000_000 + n), toSessionKey: 'c:d', toAgentId: agentId, toPrincipalId: principalId };
  const send: SendRow = {
    id,
    mode: 'ping-pong',
    byAgent: false,
    tainted: false,
    ...from,
    ...to,
    principalId,
    tokenId: 'root',
    authority: 'rpc',
    rootRunId: null,
    boundsJson: null,
    chatJson: null,
    text: 'Hello',
    maxTurns: 3,
    traceId: '',
    createdAtMs: atMs,
  };
  await db.write(acceptSend, { send, work: workOf('session_send', `${id}/0`, { sendId: id, leg: 0 }), isStarting: true, ageNowMs: atMs });
  return id;
}

const messageOf = (opKey: string): InboxMessage => ({
  id: `in_${opKey}`,
  opKey,
  digest: '',
  source: 'turn',
  agentId,
  conversationRef: null,
  principalId,
  level: 'info',
  text: opKey,
  atMs,
});

const ofTurn = (n: number) => ({ turnId: `tn_${n}`, agentId, principalId, conversationRef: ref(3_000_000 + n) });

export const turnOf = (n: number, state: 'running' | 'completed') => ({
  id: `tn_${n}`,
  conversationRef: ref(3_000_000 + n),
  sessionKey: 'e:f',
  agentId,
  principalId,
  origin: 'subagent' as const,
  state,
  finishReason: null,
  failureKind: null,
  model: null,
  steps: 0,
  inputTokens: 0,
  outputTokens: 0,
  costNano: 0,
  reservedNano: null,
  traceId: '',
  startedAtMs: atMs,
  endedAtMs: state === 'running' ? null : atMs,
  bootId: 'boot',
});

export const commitOf = (n: number, claim: WorkClaim, alongside: readonly OperationCall[]) => ({
  claim,
  ...ofTurn(n),
  turn: turnOf(n, 'completed'),
  calls: [],
  conversation: null,
  settlement: { state: 'done' as const },
  alongside,
});
