import type { TurnOrigin } from '@gatehouse/contract';
import type { ParkedTurn } from '../features/conversations/turns/durable/durable.ts';
import { parseJson } from '../kernel/json.ts';
import { operation, query } from '../kernel/db/operation.ts';

/** A turn interrupted in an earlier run of the daemon; `isSuspended`: a suspension of its agent ended its wait, and it waits for the resume. */
export interface WaitingTurn extends ParkedTurn {
  readonly isSuspended: boolean;
}

interface WaitingRow extends Pick<ParkedTurn, 'workId' | 'fence' | 'origin' | 'startedAtMs' | 'approvalId'> {
  readonly ref: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly isSuspended: 0 | 1;
  readonly turnJson: string | null;
}

// One row of each work item is enough: all its requests are of the same turn.
const waiting = query<Record<string, never>, WaitingRow>(({ db, sql, json }) =>
  db
    .with('asked', (with_) =>
      with_
        .selectFrom('approval')
        .select([json.text<string>('turn_json', 'workId').as('workId'), sql<string>`max(id)`.as('id'), sql<string>`max(turn_json)`.as('turnJson')])
        .where('turnJson', 'is not', null)
        .groupBy('workId'),
    )
    .selectFrom('workItem as w')
    .innerJoin('durableTurn as d', 'd.workId', 'w.id')
    .innerJoin('turn as t', 't.id', 'd.turnId')
    .leftJoin('asked as a', 'a.workId', 'w.id')
    .select([
      'w.id as workId',
      'w.fence',
      't.conversationRef as ref',
      't.sessionKey',
      't.agentId',
      't.principalId',
      't.origin',
      't.startedAtMs',
      sql<string>`case when ${json.text('w.waiting_json', 'kind')} = 'approval' then ${json.text('w.waiting_json', 'subject')} else a.id end`.as(
        'approvalId',
      ),
      sql<0 | 1>`${json.text('w.waiting_json', 'kind')} = 'agent'`.as('isSuspended'),
      'a.turnJson',
    ])
    .$narrowType<{ origin: TurnOrigin }>()
    .where(sql<boolean>`w.state = 'accepted'`)
    .where('w.waitingJson', 'is not', null)
    .where(
      sql<boolean>`(${json.text('w.waiting_json', 'kind')} = 'approval' or (${json.text('w.waiting_json', 'kind')} = 'agent' and a.id is not null))`,
    )
    .where(sql<boolean>`${json.text('w.waiting_json', 'endedBy')} is null`),
);

/** Returns turns that were waiting for an approval when an earlier run of the daemon stopped. */
export const readWaitingTurns = operation('turns.waiting', async (tx): Promise<WaitingTurn[]> => {
  const rows = await tx.all(waiting, {});
  return rows.map(({ turnJson, ref, sessionKey, agentId, principalId, isSuspended, ...row }) => {
    // Written only by `createAsk`.
    const { rootRunId = null, runId = null } = turnJson === null ? {} : (parseJson(turnJson) as { rootRunId?: string; runId?: string });
    return { ...row, target: { ref, sessionKey, agentId, principalId }, isSuspended: isSuspended === 1, rootRunId, runId };
  });
});

const dueBehind = query<{ atMs: number }>(({ db, sql, p, json }) =>
  db
    .updateTable('workItem')
    .set({ notBeforeMs: p('atMs') })
    .where(sql<boolean>`state = 'accepted'`)
    .where('waitingJson', 'is not', null)
    .where(sql<boolean>`${json.text('waiting_json', 'kind')} = 'conversation'`),
);

/** Used at start: work that waited behind a conversation checks whether it still must. */
export const resumeBehind = operation('turns.resumeBehind', async (tx, input: { readonly atMs: number }): Promise<void> => {
  await tx.run(dueBehind, input);
});
