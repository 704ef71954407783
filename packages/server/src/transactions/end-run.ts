import type { SubAgentTelemetry } from '@gatehouse/contract';
import { settleWithoutTurn } from './end-interrupted-turn.ts';
import { keepDone } from './keep-done.ts';
import { endLease, leaveRoot } from '../features/delegation/autonomy/store.ts';
import type { WorkClaim, WorkEnd } from '../features/unattended/durable/api.ts';
import { acceptWork, cancelWork } from '../features/unattended/durable/store.ts';
import type { RunEnding } from '../features/delegation/subagents/api.ts';
import { markAnnounced, forwardAnnouncements } from '../features/delegation/subagents/completion/announcement-store.ts';
import { type EndedRun, isEnded, type RunRow } from '../features/delegation/subagents/run/row.ts';
import {
  closeRun,
  lockRun,
  openRunsOfRoot,
  readRunParts,
  readSeen,
  subtreeOf,
  suppressAnnouncement,
  withParts,
} from '../features/delegation/subagents/store.ts';
import { announceWork } from '../features/delegation/subagents/requests/work-kind.ts';
import type { TurnTotals } from '../features/conversations/turns/durable/ledger.ts';
import { abandonTurn, findDurableTurn } from '../features/conversations/turns/durable/ledger-store.ts';
import { appendAudit, type AuditRow } from '../kernel/db/audit.ts';
import { operation, type Tx } from '../kernel/db/operation.ts';
import { parseJson } from '../kernel/json.ts';

/**
 * Ends a run, in the transaction that ends its work: its row, its lease, its part of the root, and the work that announces it.
 * Returns the run as it is then; undefined when it had ended before.
 */
export async function endRun(tx: Tx, { runId, tokens, costNano, ...closing }: RunEnding): Promise<EndedRun | undefined> {
  const { state, atMs } = closing;
  const telemetryJson = withParts(closing.telemetryJson, await readRunParts(tx, runId));
  const row = await closeRun(tx, { id: runId, ...closing, telemetryJson });
  if (row === undefined) return undefined;
  await endLease(tx, { leaseId: row.leaseId, atMs });
  const passedOn = await forwardAnnouncements(tx, row);
  if (row.announceTo === 'none') await markAnnounced(tx, { runIds: passedOn, as: 'none' });
  if (row.announceTo === 'conversation' || row.announceTo === 'inbox')
    for (const id of [row.id, ...passedOn]) await acceptAnnouncement(tx, id, row.agentId, atMs);
  // The root after its runs, as all others lock them.
  await leaveRoot(tx, { rootRunId: row.rootRunId, kind: 'run', failed: state === 'failed', cause: closing.cause, tokens, costNano, atMs });
  return { row, seen: await readSeen(tx, runId) };
}

/** `endRun` as an operation, called in the transaction of the run's last turn. */
export const endRunWithTurn = operation('subagents.endWithTurn', endRun);

async function acceptAnnouncement(tx: Tx, runId: string, agentId: string, atMs: number): Promise<void> {
  // Exactly one per run: the id of the work guarantees it as well.
  await acceptWork(tx, { id: `wi_${runId}`, kind: announceWork, key: runId, digest: '', agentId, payload: { runId }, owed: true, atMs });
}

export interface RunFinish {
  readonly claim: WorkClaim;
  readonly ending: RunEnding;
}

const cutOff = 'The daemon stopped during an action that must not be repeated; how far it got is not known';
const workEnds: Readonly<Record<RunEnding['state'], WorkEnd>> = { completed: 'done', failed: 'failed' };

/** Ends a run whose turn did not; undefined when another process holds the claim, or the run had ended before. */
export const finishRun = operation('subagents.finish', async (tx, { claim, ending }: RunFinish): Promise<EndedRun | undefined> => {
  const { id, owner, fence } = claim;
  const { state, errorKind, atMs } = ending;
  const settled = await settleWithoutTurn(tx, { id, owner, fence, state: workEnds[state], errorKind, atMs });
  if (settled === 'lost') return undefined;
  return endRun(tx, settled === 'unknown' ? { ...ending, errorKind: 'unknown', cause: cutOff } : ending);
});

type Which = { readonly runId: string } | { readonly rootRunId: string; readonly only?: 'queued' } | { readonly runIds: readonly string[] };

export interface RunKill {
  readonly which: Which;
  readonly endReason: Extract<RunEnding['endReason'], 'killed' | 'ghost_sweep'>;
  readonly errorKind: string;
  /** Whether the requester of a run is notified; false when it ends the run itself. */
  readonly notify: boolean;
  /** Written when something was ended. */
  readonly audit?: AuditRow | undefined;
  readonly atMs: number;
}

/**
 * Ends runs with everything that they delegated, in one commit that also ends their work, so that their owners can write nothing
 * any more. Only then are they stopped. Returns the runs that it ended.
 */
export const killRuns = operation('subagents.kill', async (tx, kill: RunKill) => {
  const ended = await killWithin(tx, kill);
  if (kill.audit !== undefined && ended.length > 0) await appendAudit(tx, kill.audit);
  return ended;
});

/** Part of `killRuns` and of a steer that starts a new run. */
export async function killWithin(tx: Tx, { which, endReason, errorKind, notify, atMs }: RunKill): Promise<EndedRun[]> {
  // A run that ended on its own meanwhile keeps its end, and what it left behind continues.
  const heads: string[] = [];
  for (const id of await headsOf(tx, which)) if ((await openRun(tx, id)) !== undefined) heads.push(id);
  const ids = new Set<string>();
  for (const head of heads) for (const id of await subtreeOf(tx, head)) ids.add(id);
  const ended: EndedRun[] = [];
  // First suppress the announcements of runs that end with others.
  for (const id of ids) if (!notify || !heads.includes(id)) await suppressAnnouncement(tx, id);
  for (const id of ids) {
    const row = await openRun(tx, id);
    if (row === undefined) continue;
    await cancelWork(tx, { id: row.workId, errorKind, atMs });
    const left = await findDurableTurn(tx, row.workId);
    if (left !== undefined) {
      // Written only by `planRun`; the storage threads know no schemas.
      const { message: question } = parseJson(row.optionsJson) as { readonly message: string };
      await keepDone(tx, { ...left, question }, { errorKind, atMs });
      await abandonTurn(tx, { turnId: left.turnId, atMs });
    }
    const said = { cause: null, summary: null, resultText: null, resultRefJson: null, tainted: Number(left?.isTainted === true) };
    const closed = await endRun(tx, { runId: id, state: 'failed', endReason, errorKind, ...said, ...usageOf(left?.totals), atMs });
    if (closed !== undefined) ended.push(closed);
  }
  return ended;
}

async function openRun(tx: Tx, id: string): Promise<RunRow | undefined> {
  const row = await lockRun(tx, id);
  return row === undefined || isEnded(row) ? undefined : row;
}

function usageOf(used: TurnTotals | undefined): Pick<RunEnding, 'tokens' | 'costNano' | 'telemetryJson'> {
  if (used === undefined) return { tokens: 0, costNano: 0, telemetryJson: null };
  const { steps: stepsExecuted, inputTokens, outputTokens, costNano } = used;
  const tokens = inputTokens + outputTokens;
  const telemetry: SubAgentTelemetry = {
    tokensUsedTotal: tokens,
    costTotal: costNano === null ? null : costNano / 1e9,
    finishReason: 'aborted',
    stepsExecuted,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  };
  return { tokens, costNano, telemetryJson: JSON.stringify(telemetry) };
}

async function headsOf(tx: Tx, which: Which): Promise<readonly string[]> {
  if ('runId' in which) return [which.runId];
  if ('runIds' in which) return which.runIds;
  const open = await openRunsOfRoot(tx, which.rootRunId);
  if (which.only === 'queued') return open.filter(({ state }) => state === 'queued').map(({ id }) => id);
  const ids = new Set(open.map(({ id }) => id));
  return open.filter(({ parentRunId }) => parentRunId === null || !ids.has(parentRunId)).map(({ id }) => id);
}
