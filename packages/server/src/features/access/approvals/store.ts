import type { TurnOrigin } from '@gatehouse/contract';
import type { SelectQueryBuilder } from 'kysely';
import type { ChatEndpoint } from '../../../kernel/call-context.ts';
import { appendAudit, type AuditRow } from '../../../kernel/db/audit.ts';
import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import { derivedId } from '../../../kernel/ids.ts';
import { ofDeadBoot } from '../../../kernel/owners.ts';
import { systemDecider } from './deciders.ts';

/** A call for which a decision is requested. */
export interface NewRequest {
  /** `ap_<uuid>` */
  readonly id: string;
  readonly digest: string;
  readonly conversationRef: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly origin: TurnOrigin;
  readonly traceId: string;
  readonly tool: string;
  readonly action: string;
  readonly reason: string;
  readonly trustLevel: 'clean' | 'tainted';
  /** Arguments with live secrets removed. */
  readonly paramsJson: string;
  /** Digest of the original arguments. */
  readonly paramsBytes: number;
  readonly createdAtMs: number;
  readonly timeoutMs: number;
  readonly expiresAtMs: number;
  /** A `SuspendedTurn`, which asks again when it continues; null: the turn waits in memory. */
  readonly turnJson: string | null;
  /** The `ApprovalChat` in which it is asked; null: it did not come from a chat. */
  readonly chatJson: string | null;
}

/** The chat in which a request is asked. */
export type ApprovalChat = ChatEndpoint;

/** A turn that is suspended until a request is decided. */
export interface SuspendedTurn {
  readonly workId: string;
  readonly turnId: string;
  readonly rootRunId: string;
  readonly runId?: string;
  readonly leaseId?: string;
  readonly tokenId: string;
  readonly principalId: string;
  readonly startedAtMs: number;
  /** Digest of the call without the files that it covers. */
  readonly callDigest: string;
}

export type Decision = 'approved' | 'denied' | 'expired';
export type RequestState = 'pending' | Decision;

/** What remains of a decided request; the arguments are deleted. */
export interface RequestRow extends Omit<NewRequest, 'paramsJson'> {
  readonly paramsJson: string | null;
  readonly state: RequestState;
  readonly decidedAtMs: number | null;
  readonly decidedBy: string | null;
  readonly decidedReason: string | null;
  /** Grant of an approval that nobody awaited: valid for one call. For a suspended turn: `open` until the turn has collected the decision, `void` when its files have changed. */
  readonly grantState: 'open' | 'used' | 'void' | null;
  /** 1 until the cache of denials is cleared. */
  readonly reusable: number;
}

const requestColumns = [
  'id',
  'digest',
  'conversationRef',
  'sessionKey',
  'agentId',
  'origin',
  'traceId',
  'tool',
  'action',
  'reason',
  'trustLevel',
  'paramsJson',
  'paramsBytes',
  'createdAtMs',
  'timeoutMs',
  'expiresAtMs',
  'turnJson',
  'chatJson',
] as const;

const columns = [...requestColumns, 'state', 'decidedAtMs', 'decidedBy', 'decidedReason', 'grantState', 'reusable'] as const;

export interface Bounds {
  readonly perAgent: number;
  readonly inAll: number;
}

export interface Asking {
  readonly request: NewRequest;
  readonly bounds: Bounds;
  readonly approvalCacheMs: number;
  readonly denialCacheMs: number;
  /** How long an approval that nobody awaited is valid. */
  readonly grantMs: number;
  /** How long decisions are kept. */
  readonly keepMs: number;
  /** Use only existing decisions; create no request. */
  readonly isRefused: boolean;
  /** The boot in which the call waits; '' for suspended turns, which ask again. */
  readonly waitsAt: string;
}

/** Result of asking for a call that must be approved. */
export type Asked =
  | { readonly kind: 'allowed'; readonly audit: AuditRow }
  | { readonly kind: 'denied'; readonly by: string; readonly reason: string | null }
  /** An equal call is pending under this id; or the request was created. */
  | { readonly kind: 'waits'; readonly requestId: string; readonly expiresAtMs: number; readonly isNew: boolean }
  | { readonly kind: 'full'; readonly limit: 'perAgent' | 'inAll' }
  | { readonly kind: 'refused' }
  /** Files that the call covers were changed after each of its approvals. */
  | { readonly kind: 'changed' };

/** How often an unattended turn asks about a call whose files keep changing. */
const maxVoid = 3;

/** How long a decision is kept for a suspended turn that does not collect it. */
const uncollectedMs = 7 * 86_400_000;
const sweep = query<{ beforeMs: number; uncollectedBeforeMs: number }>(({ db, sql, p }) =>
  db
    .deleteFrom('approval')
    .where('decidedAtMs', '<', p('beforeMs'))
    .where(sql<boolean>`(turn_json is null or grant_state = 'used' or decided_at_ms < ${p('uncollectedBeforeMs')})`),
);
const uncollected = query<{ digest: string }, RequestRow>(({ db, p }) =>
  db
    .selectFrom('approval')
    .select(columns)
    .where('digest', '=', p('digest'))
    .where('turnJson', 'is not', null)
    .where('grantState', '=', 'open')
    .orderBy('decidedAtMs', 'desc')
    .limit(1)
    .forUpdate(),
);
/** Requests for the same call of the same turn, about earlier versions of its files. */
const decidedBefore = query<{ turnJson: string }, RequestRow>(({ db, p }) =>
  db
    .selectFrom('approval')
    .select(columns)
    .where('turnJson', '=', p('turnJson'))
    .where('grantState', 'in', ['open', 'void'])
    .orderBy('decidedAtMs', 'desc')
    .limit(maxVoid),
);
const voidGrant = query<{ id: string }>(({ db, p }) => db.updateTable('approval').set({ grantState: 'void' }).where('id', '=', p('id')));
const latestDecided = query<{ digest: string }, RequestRow>(({ db, p }) =>
  db
    .selectFrom('approval')
    .select(columns)
    .where('digest', '=', p('digest'))
    .where('state', 'in', ['approved', 'denied'])
    .where('decidedAtMs', 'is not', null)
    .orderBy('decidedAtMs', 'desc')
    .orderBy('id', 'desc')
    .limit(1),
);
const useGrant = query<{ id: string }>(({ db, p }) =>
  db.updateTable('approval').set({ grantState: 'used' }).where('id', '=', p('id')).where('grantState', '=', 'open'),
);
const pendingOf = query<{ digest: string }, RequestRow>(({ db, p }) =>
  db.selectFrom('approval').select(columns).where('digest', '=', p('digest')).where('state', '=', 'pending').forUpdate(),
);
/** Counts calls of attended turns, or those of suspended turns: they have separate limits. */
const countPending = query<{ agentId: string; atMs: number; left: 0 | 1 }, { own: number; total: number }>(({ db, sql, p }) =>
  db
    .selectFrom('approval')
    .select([sql<number>`count(*)`.as('total'), sql<number>`count(CASE WHEN agent_id = ${p('agentId')} THEN 1 END)`.as('own')])
    .where('state', '=', 'pending')
    .where(sql<boolean>`(turn_json is not null) = ${p('left')}`)
    .where('expiresAtMs', '>', p('atMs')),
);
const insert = query<NewRequest & Pick<Asking, 'waitsAt'>>(({ db, each }) =>
  db.insertInto('approval').values({
    ...each([...requestColumns, 'waitsAt']),
    state: 'pending',
  }),
);
const join = query<{ id: string; waitsAt: string }>(({ db, p }) =>
  db
    .updateTable('approval')
    .set({ waitsAt: p('waitsAt') })
    .where('id', '=', p('id'))
    .where('waitsAt', '<>', p('waitsAt')),
);

/** Uses the decision about exactly this call, joins a pending request, or creates one. */
export async function askForCall(tx: Tx, asking: Asking): Promise<Asked> {
  const { request } = asking;
  const atMs = request.createdAtMs;
  await tx.run(sweep, { beforeMs: atMs - asking.keepMs, uncollectedBeforeMs: atMs - uncollectedMs });
  const { turnJson } = request;
  const collected = turnJson === null ? undefined : ((await collect(tx, request)) ?? (await collectChanged(tx, turnJson)));
  if (collected !== undefined) return collected;
  const decided = await tx.get(latestDecided, { digest: request.digest });
  if (decided !== undefined) {
    // A decision dated in the future was made under a clock that was ahead: it is not valid until then.
    const ageMs = Math.abs(atMs - (decided.decidedAtMs ?? 0));
    if (decided.state === 'denied' && decided.reusable === 1 && ageMs < asking.denialCacheMs)
      return { kind: 'denied', by: decided.decidedBy ?? '', reason: decided.decidedReason };
    const isGranted =
      decided.turnJson === null &&
      decided.grantState === 'open' &&
      ageMs < asking.grantMs &&
      (await tx.run(useGrant, { id: decided.id })).changes === 1;
    if (isGranted || (decided.state === 'approved' && decided.grantState === null && ageMs < asking.approvalCacheMs)) {
      const audit = auditOf(decided, atMs, { action: 'approval.use', outcome: 'success', by: isGranted ? 'grant' : 'cache', for: request.id });
      await appendAudit(tx, audit);
      return { kind: 'allowed', audit };
    }
  }
  const waiting = await tx.get(pendingOf, { digest: request.digest });
  const { waitsAt } = asking;
  if (waiting !== undefined && waiting.expiresAtMs > atMs) {
    if (turnJson === null) await tx.run(join, { id: waiting.id, waitsAt });
    return { kind: 'waits', requestId: waiting.id, expiresAtMs: waiting.expiresAtMs, isNew: false };
  }
  if (waiting !== undefined) await expire(tx, waiting, atMs);
  // Checked last: requests made before this was configured can still be decided.
  if (asking.isRefused) return { kind: 'refused' };
  const counts = await tx.get(countPending, { agentId: request.agentId, atMs, left: turnJson === null ? 0 : 1 });
  if ((counts?.own ?? 0) >= asking.bounds.perAgent) return { kind: 'full', limit: 'perAgent' };
  if ((counts?.total ?? 0) >= asking.bounds.inAll) return { kind: 'full', limit: 'inAll' };
  await tx.run(insert, { ...request, waitsAt });
  return { kind: 'waits', requestId: request.id, expiresAtMs: request.expiresAtMs, isNew: true };
}

/** Collects the decision made while the turn was suspended; each is for one call. */
async function collect(tx: Tx, { id, digest, createdAtMs: atMs }: NewRequest): Promise<Asked | undefined> {
  const pending = await tx.get(pendingOf, { digest });
  if (pending !== undefined && pending.expiresAtMs <= atMs) await expire(tx, pending, atMs);
  const decided = await tx.get(uncollected, { digest });
  if (decided === undefined || (await tx.run(useGrant, { id: decided.id })).changes === 0) return undefined;
  if (decided.state !== 'approved') return { kind: 'denied', by: decided.decidedBy ?? '', reason: decided.decidedReason };
  const audit = auditOf(decided, atMs, { action: 'approval.use', outcome: 'success', by: 'grant', for: id });
  await appendAudit(tx, audit);
  return { kind: 'allowed', audit };
}

/** When a file changed meanwhile, a denial still holds but an approval does not. */
async function collectChanged(tx: Tx, turnJson: string): Promise<Asked | undefined> {
  const before = await tx.all(decidedBefore, { turnJson });
  const denied = before.find(({ state }) => state !== 'approved');
  if (denied !== undefined) {
    await tx.run(useGrant, { id: denied.id });
    return { kind: 'denied', by: denied.decidedBy ?? '', reason: denied.decidedReason };
  }
  for (const { id } of before) await tx.run(voidGrant, { id });
  return before.length < maxVoid ? undefined : { kind: 'changed' };
}

interface Closing {
  readonly id: string;
  readonly state: Decision;
  readonly atMs: number;
  readonly by: string;
  readonly reason: string | null;
  readonly grantState: 'open' | null;
}

const close = query<Closing>(({ db, p }) =>
  db
    .updateTable('approval')
    .set({
      state: p('state'),
      paramsJson: null,
      decidedAtMs: p('atMs'),
      decidedBy: p('by'),
      decidedReason: p('reason'),
      grantState: p('grantState'),
    })
    .where('id', '=', p('id'))
    .where('state', '=', 'pending'),
);

const due = query<{ atMs: number }, RequestRow>(({ db, p }) =>
  db.selectFrom('approval').select(columns).where('state', '=', 'pending').where('expiresAtMs', '<=', p('atMs')).forUpdate().skipLocked(),
);

/** Marks a decision as collected by its suspended turn. */
const openIf = ({ turnJson }: RequestRow, isGranted: boolean) => (turnJson !== null || isGranted ? 'open' : null);

/** Denies overdue requests. */
async function expire(tx: Tx, row: RequestRow, atMs: number): Promise<AuditRow> {
  await tx.run(close, { id: row.id, state: 'expired', atMs, by: systemDecider.timeout, reason: null, grantState: openIf(row, false) });
  const audit = auditOf(row, atMs, { action: 'approval.resolve', outcome: 'denied', by: systemDecider.timeout });
  await appendAudit(tx, audit);
  return audit;
}

/** Changes to announce after the commit. */
export interface Made {
  readonly decided: readonly RequestRow[];
  readonly audits: readonly AuditRow[];
}

const pendingById = query<{ id: string }, RequestRow>(({ db, p }) =>
  db.selectFrom('approval').select(columns).where('id', '=', p('id')).where('state', '=', 'pending').forUpdate(),
);

/** Closes all overdue requests, and the one of `id`, whose timer may be a little early or whose clock went back. */
export const expireDue = operation('approvals.expire', async (tx, { atMs, id }: { readonly atMs: number; readonly id?: string }): Promise<Made> => {
  const decided = await tx.all(due, { atMs });
  const own = id === undefined || decided.some((row) => row.id === id) ? undefined : await tx.get(pendingById, { id });
  if (own !== undefined) decided.push(own);
  const audits: AuditRow[] = [];
  for (const row of decided) audits.push(await expire(tx, row, atMs));
  return { decided, audits };
});

/** The requests that a caller selects and may decide. */
export interface Meant {
  readonly id?: string | undefined;
  readonly sessionKey?: string | undefined;
  /** Null: all. */
  readonly agentIds: readonly string[] | null;
}

export interface Deciding extends Meant {
  readonly approved: boolean;
  readonly by: string;
  readonly reason: string | null;
  readonly atMs: number;
  /** Scope of the decider. */
  readonly principalId: string;
  readonly traceId: string;
  /** Set when the decision was made elsewhere than through the API. */
  readonly via?: 'channel' | undefined;
}

// oxlint-disable-next-line typescript/no-explicit-any -- the builder's own type names the tables
type Rows<Row> = SelectQueryBuilder<any, 'approval', Row>;

function meant<Row>(rows: Rows<Row>, { id, sessionKey, agentIds }: Meant): Rows<Row> {
  let found = rows;
  if (id !== undefined) found = found.where('id', '=', id);
  if (sessionKey !== undefined) found = found.where('sessionKey', '=', sessionKey);
  return agentIds === null ? found : found.where('agentId', 'in', [...agentIds]);
}

/**
 * Makes exactly one of several decisions about a request: the others find it in `found`, and it is not among `decided`. When no
 * call waits for an approval, it is granted for later.
 */
export const decide = operation('approvals.decide', async (tx, input: Deciding): Promise<Made & { readonly found: readonly RequestRow[] }> => {
  if (input.agentIds?.length === 0) return { found: [], decided: [], audits: [] };
  const found = await tx.build<RequestRow & { readonly isWaited: 0 | 1 }>((db, sql) => {
    const isWaited = sql<0 | 1>`case when ${ofDeadBoot(sql, 'approval.waitsAt')} then 0 else 1 end`.as('isWaited');
    const rows = meant(db.selectFrom('approval').select([...columns, isWaited]), input).forUpdate();
    return input.id === undefined ? rows.where('state', '=', 'pending').where('expiresAtMs', '>', input.atMs).orderBy('id') : rows;
  });
  const decided: RequestRow[] = [];
  const audits: AuditRow[] = [];
  for (const { isWaited, ...row } of found) {
    if (row.state !== 'pending' || row.expiresAtMs <= input.atMs) continue;
    const state = input.approved ? 'approved' : 'denied';
    const grantState = openIf(row, input.approved && isWaited === 0);
    const { changes } = await tx.run(close, { id: row.id, state, atMs: input.atMs, by: input.by, reason: input.reason, grantState });
    if (changes === 0) continue;
    const made = auditOf(row, input.atMs, { action: 'approval.resolve', outcome: input.approved ? 'success' : 'denied', by: input.by });
    const audit = {
      ...made,
      ...(input.via !== undefined && { metadata: { ...made.metadata, via: input.via } }),
      principalId: input.principalId,
      traceId: input.traceId,
    };
    await appendAudit(tx, audit);
    decided.push(row);
    audits.push(audit);
  }
  return { found, decided, audits };
});

function auditOf(
  row: RequestRow,
  atMs: number,
  {
    action,
    outcome,
    by,
    for: forId = '',
  }: {
    readonly action: string;
    readonly outcome: AuditRow['outcome'];
    readonly by: string;
    /** The request that uses the decision. */ readonly for?: string;
  },
): AuditRow {
  const { digest, tool, agentId, conversationRef } = row;
  return {
    id: derivedId('au', action, row.id, forId),
    atMs,
    principalId: 'system',
    action,
    classification: 'security',
    outcome,
    target: row.id,
    metadata: { tool, agentId, conversationRef, digest, by },
    traceId: row.traceId,
  };
}

/** Lists pending requests, oldest first; a page has at least one and is limited by the characters of its arguments. */
export const listPending = operation(
  'approvals.pending',
  async (
    tx,
    {
      agentIds,
      atMs,
      after,
      pageCharacters,
    }: { readonly agentIds: readonly string[] | null; readonly atMs: number; readonly after: string; readonly pageCharacters: number },
  ): Promise<{ readonly rows: RequestRow[]; readonly total: number }> => {
    if (agentIds?.length === 0) return { rows: [], total: 0 };
    const all = await tx.build<RequestRow>((db) =>
      meant(db.selectFrom('approval').select(columns), { agentIds }).where('state', '=', 'pending').where('expiresAtMs', '>', atMs).orderBy('id'),
    );
    const rows: RequestRow[] = [];
    let characters = 0;
    for (const row of all) {
      if (row.id <= after) continue;
      characters += row.paramsJson?.length ?? 0;
      if (rows.length > 0 && characters > pageCharacters) break;
      rows.push(row);
    }
    return { rows, total: all.length };
  },
);

/** Forgets denials. */
export const forgetDenials = operation(
  'approvals.forgetDenials',
  async (tx, { audit, ...meaning }: Omit<Meant, 'id'> & { readonly audit: AuditRow }): Promise<void> => {
    await tx.build((db) => {
      let denials = db.updateTable('approval').set({ reusable: 0 }).where('state', '=', 'denied');
      if (meaning.sessionKey !== undefined) denials = denials.where('sessionKey', '=', meaning.sessionKey);
      return meaning.agentIds === null ? denials : denials.where('agentId', 'in', [...meaning.agentIds]);
    });
    await appendAudit(tx, audit);
  },
);

const drop = query<{ conversationRef: string }>(({ db, p }) => db.deleteFrom('approval').where('conversationRef', '=', p('conversationRef')));
const dropOwn = query<{ conversationRef: string }>(({ db, sql, p }) =>
  db
    .deleteFrom('approval')
    .where('conversationRef', '=', p('conversationRef'))
    .where(sql<boolean>`(turn_json is null or grant_state = 'used')`),
);

/** Deletes requests, decisions and grants of a conversation. Part of the operation that deletes it. */
export async function dropApprovals(tx: Tx, input: { readonly conversationRef: string }): Promise<void> {
  await tx.run(drop, input);
}

/** The same except for suspended turns, which still collect their decisions. Part of the operations that clear a conversation. */
export async function clearApprovals(tx: Tx, input: { readonly conversationRef: string }): Promise<void> {
  await tx.run(dropOwn, input);
}

const forget = query<{ id: string }>(({ db, p }) => db.updateTable('approval').set({ reusable: 0 }).where('id', '=', p('id')));

const removePending = query<{ id: string }>(({ db, p }) => db.deleteFrom('approval').where('id', '=', p('id')).where('state', '=', 'pending'));

/** Deletes an undecided request; returns false when it was decided. */
export async function removeRequest(tx: Tx, input: { readonly id: string }): Promise<boolean> {
  return (await tx.run(removePending, input)).changes > 0;
}

/** Denies requests whose runs were stopped or whose conversations were reset; does not affect the next equal call. */
export const dropRequests = operation(
  'approvals.drop',
  async (tx, { ids, atMs }: { readonly ids: readonly string[]; readonly atMs: number }): Promise<Made> => {
    const decided: RequestRow[] = [];
    const audits: AuditRow[] = [];
    for (const id of ids) {
      const row = await tx.get(pendingById, { id });
      if (row === undefined) continue;
      await tx.run(close, { id, state: 'denied', atMs, by: systemDecider.dropped, reason: null, grantState: openIf(row, false) });
      await tx.run(forget, { id });
      const audit = auditOf(row, atMs, { action: 'approval.resolve', outcome: 'denied', by: systemDecider.dropped });
      await appendAudit(tx, audit);
      decided.push(row);
      audits.push(audit);
    }
    return { decided, audits };
  },
);

const leave = query<{ id: string; waitsAt: string }>(({ db, p }) =>
  db.updateTable('approval').set({ waitsAt: '' }).where('id', '=', p('id')).where('waitsAt', '=', p('waitsAt')).where('state', '=', 'pending'),
);

/** Records that no call of this boot waits for a request any more. */
export const leaveRequest = operation('approvals.leave', async (tx, input: { readonly id: string; readonly waitsAt: string }): Promise<void> => {
  await tx.run(leave, input);
});
const stateOf = query<{ id: string }, Pick<RequestRow, 'state'>>(({ db, p }) => db.selectFrom('approval').select('state').where('id', '=', p('id')));

/** Whether a request is still undecided. */
export const isPending = operation(
  'approvals.isPending',
  async (tx, input: { readonly id: string }): Promise<boolean> => (await tx.get(stateOf, input))?.state === 'pending',
);

export const approvalOperations = [expireDue, decide, listPending, forgetDenials, dropRequests, leaveRequest, isPending];
