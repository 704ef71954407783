import { AppError } from '../../../kernel/app-error.ts';
import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import type { SendProgress, SendRow, SendState } from './api.ts';

/** How long ended messages are kept. */
const keptMs = 24 * 60 * 60_000;
/** Maximum number of open messages to one conversation (decisions §7). */
const maxOpen = 50;
const retryAfterMs = 1_000;
/** Number of old messages deleted with each new one. */
const prunedAtOnce = 8;

type Stored = Omit<SendRow, 'byAgent' | 'tainted'> & { readonly byAgent: number; readonly tainted: number };

const sendColumns = [
  'id',
  'mode',
  'byAgent',
  'fromRef',
  'fromSessionKey',
  'fromAgentId',
  'toRef',
  'toSessionKey',
  'toAgentId',
  'toPrincipalId',
  'principalId',
  'tokenId',
  'authority',
  'rootRunId',
  'boundsJson',
  'chatJson',
  'text',
  'tainted',
  'maxTurns',
  'traceId',
  'createdAtMs',
] as const;

const insert = query<Stored>(({ db, each }) =>
  db.insertInto('sessionSend').values({
    ...each(sendColumns),
    state: 'open',
    leg: 0,
    response: null,
    errorKind: null,
    tokens: 0,
    costNano: 0,
    announced: 0,
    endedAtMs: null,
  }),
);

const old = query<{ beforeMs: number; limit: number }>(({ db, p }) =>
  db
    .deleteFrom('sessionSend')
    .where('id', 'in', db.selectFrom('sessionSend').select('id').where('endedAtMs', '<', p('beforeMs')).limit(p('limit')).forUpdate().skipLocked()),
);

const openTo = query<{ ref: string }, { count: number }>(({ db, sql, p }) =>
  db
    .selectFrom('sessionSend')
    .select(sql<number>`count(*)`.as('count'))
    .where('toRef', '=', p('ref'))
    .where('endedAtMs', 'is', null),
);

/** Stores a new message, unless its conversation has too many open ones. Part of `acceptSend`. */
export async function addSend(tx: Tx, { byAgent, tainted, ...send }: SendRow, ageNowMs: number): Promise<void> {
  const open = (await tx.get(openTo, { ref: send.toRef }))?.count ?? 0;
  if (open >= maxOpen) throw new AppError('rate_limited', `Too many messages are waiting for this conversation (limit ${maxOpen})`, { retryAfterMs });
  await tx.run(old, { beforeMs: ageNowMs - keptMs, limit: prunedAtOnce });
  await tx.run(insert, { ...send, byAgent: Number(byAgent), tainted: Number(tainted) });
}

const byId = query<{ id: string }, Stored & Omit<SendState, 'announced'> & { readonly announced: number }>(({ db, p }) =>
  db
    .selectFrom('sessionSend')
    .select([...sendColumns, 'state', 'leg', 'response', 'errorKind', 'tokens', 'costNano', 'announced'])
    .where('id', '=', p('id')),
);

export const findSend = operation('sessionSend.find', async (tx, input: { readonly id: string }): Promise<(SendRow & SendState) | undefined> => {
  const row = await tx.get(byId, input);
  return row === undefined ? undefined : { ...row, byAgent: row.byAgent === 1, tainted: row.tainted === 1, announced: row.announced === 1 };
});

interface Advance extends Omit<SendProgress, 'next' | 'inbox'> {
  readonly state: SendState['state'];
  readonly announced: boolean;
}

const move = query<Omit<Advance, 'announced'> & { nextLeg: number; announced: number; endedAtMs: number | null }>(({ db, sql, p }) =>
  db
    .updateTable('sessionSend')
    .set({
      state: p('state'),
      leg: p('nextLeg'),
      response: p('response'),
      errorKind: p('errorKind'),
      tokens: sql<number>`tokens + ${p('tokens')}`,
      costNano: sql<number>`cost_nano + ${p('costNano')}`,
      announced: p('announced'),
      endedAtMs: p('endedAtMs'),
    })
    .where('id', '=', p('sendId'))
    .where('leg', '=', p('leg'))
    .where('state', '=', 'open'),
);

/** Stores an answer once; false when it was already stored, or the message had ended. */
export async function advanceSend(tx: Tx, { announced, ...progress }: Advance): Promise<boolean> {
  const { state, leg, atMs } = progress;
  const { changes } = await tx.run(move, {
    ...progress,
    announced: Number(announced),
    nextLeg: state === 'open' ? leg + 1 : leg,
    endedAtMs: state === 'open' ? null : atMs,
  });
  return changes > 0;
}

const fail = query<{ id: string; errorKind: string; atMs: number }>(({ db, p }) =>
  db
    .updateTable('sessionSend')
    .set({ state: 'failed', errorKind: p('errorKind'), endedAtMs: p('atMs') })
    .where('id', '=', p('id'))
    .where('state', '=', 'open'),
);

export interface SendFailure {
  readonly id: string;
  readonly errorKind: string;
  readonly atMs: number;
}

/** Ends a message without an answer; false when it had already ended. Part of `failSendWork`. */
export async function closeSend(tx: Tx, { id, errorKind, atMs }: SendFailure): Promise<boolean> {
  return (await tx.run(fail, { id, errorKind, atMs })).changes > 0;
}

/** Ends a message from outside its work, which then finds it ended. */
export const failSend = operation('sessionSend.fail', closeSend);

const openOf = query<{ rootRunId: string }, { id: string }>(({ db, p }) =>
  db.selectFrom('sessionSend').select('id').where('rootRunId', '=', p('rootRunId')).where('endedAtMs', 'is', null),
);

/** Lists the open messages of a root run. */
export const openSends = operation('sessionSend.open', async (tx, input: { readonly rootRunId: string }): Promise<string[]> => {
  return (await tx.all(openOf, input)).map(({ id }) => id);
});

const dueIn = query<{ ref: string }, { id: string; leg: number }>(({ db, sql, p }) =>
  db
    .selectFrom('sessionSend')
    .select(['id', 'leg'])
    .where('endedAtMs', 'is', null)
    .where(sql<boolean>`(to_ref = ${p('ref')} or (from_ref = ${p('ref')} and leg % 2 = 1))`)
    .forUpdate(),
);

/** Ends the messages that a deleted conversation should have answered; returns the pending answers. Part of `deleteConversation`. */
export async function endSendsOf(tx: Tx, { ref, atMs }: { readonly ref: string; readonly atMs: number }) {
  const due = await tx.all(dueIn, { ref });
  for (const { id } of due) await tx.run(fail, { id, errorKind: 'deleted', atMs });
  return due;
}

export const sessionSendOperations = [findSend, failSend, openSends];
