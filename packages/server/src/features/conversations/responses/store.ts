import { operation, query } from '../../../kernel/db/operation.ts';
import type { ResponseRow } from './api.ts';

const insert = query<Required<ResponseRow>>(({ db, each }) =>
  db
    .insertInto('response')
    .values(
      each(['id', 'previousId', 'principalId', 'agentId', 'bodyJson', 'systemJson', 'messagesJson', 'inputJson', 'createdAtMs', 'expiresAtMs']),
    ),
);

/** Stores an answer of `/v1/responses`. Called in the transaction of its turn, so that it exists exactly when its turn does. */
export const keepResponse = operation('responses.keep', async (tx, row: ResponseRow): Promise<void> => {
  await tx.run(insert, { inputJson: null, ...row });
});

interface Owned {
  readonly id: string;
  readonly principalId: string;
}

/** A query of an owner; `atMs` hides expired responses that are not yet pruned. */
interface Asked extends Owned {
  readonly nowMs: number;
}

type Found = Required<Pick<ResponseRow, 'bodyJson' | 'agentId' | 'inputJson'>>;

const byId = query<Asked, Found>(({ db, p }) =>
  db
    .selectFrom('response')
    .select(['bodyJson', 'agentId', 'inputJson'])
    .where('id', '=', p('id'))
    .where('principalId', '=', p('principalId'))
    .where('expiresAtMs', '>', p('nowMs')),
);

export const findResponse = operation('responses.find', async (tx, input: Asked): Promise<Found | undefined> => tx.get(byId, input));

/** Maximum responses of one history, and maximum total length of their messages in characters. */
export const maxDepth = 500;
export const maxHistoryLength = 16 * 1024 * 1024;

export type Link = Pick<ResponseRow, 'previousId' | 'agentId' | 'systemJson' | 'messagesJson'>;

interface Walk extends Asked {
  readonly maxDepth: number;
  readonly maxLength: number;
}

/** Walks backwards from the response. The first row past a limit is included, so that the excess is visible. */
const chain = query<Walk, Link>(({ db, sql, p }) =>
  db
    .withRecursive('link', (with_) =>
      with_
        .selectFrom('response')
        .select([
          'id',
          'previousId',
          'agentId',
          'systemJson',
          'messagesJson',
          sql<number>`1`.as('depth'),
          sql<number>`length(system_json) + length(messages_json)`.as('size'),
        ])
        .where('id', '=', p('id'))
        .where('principalId', '=', p('principalId'))
        .where('expiresAtMs', '>', p('nowMs'))
        .unionAll((union) =>
          union
            .selectFrom('response as earlier')
            .innerJoin('link', 'link.previousId', 'earlier.id')
            .select([
              'earlier.id',
              'earlier.previousId',
              'earlier.agentId',
              'earlier.systemJson',
              'earlier.messagesJson',
              sql<number>`link.depth + 1`.as('depth'),
              sql<number>`link.size + length(earlier.system_json) + length(earlier.messages_json)`.as('size'),
            ])
            .where('earlier.principalId', '=', p('principalId'))
            .where('link.depth', '<=', p('maxDepth'))
            .where('link.size', '<=', p('maxLength')),
        ),
    )
    .selectFrom('link')
    .select(['previousId', 'agentId', 'systemJson', 'messagesJson'])
    .orderBy('depth'),
);

/** Returns a response and those before it, newest first; expired earlier ones are included while a later one follows them. */
export const readChain = operation('responses.chain', async (tx, input: Asked): Promise<Link[]> =>
  tx.all(chain, { ...input, maxDepth, maxLength: maxHistoryLength }),
);

const remove = query<Owned>(({ db, p }) => db.deleteFrom('response').where('id', '=', p('id')).where('principalId', '=', p('principalId')));

/** Deletes a response; returns false when there is none. */
export const deleteResponse = operation('responses.delete', async (tx, input: Owned): Promise<boolean> => (await tx.run(remove, input)).changes > 0);

const expired = query<{ nowMs: number }>(({ db, p }) =>
  db
    .withRecursive('held', (with_) =>
      with_
        .selectFrom('response')
        .select(['id', 'previousId'])
        .where('expiresAtMs', '>', p('nowMs'))
        .union((union) =>
          union.selectFrom('response as earlier').innerJoin('held', 'held.previousId', 'earlier.id').select(['earlier.id', 'earlier.previousId']),
        ),
    )
    .deleteFrom('response')
    .where('expiresAtMs', '<=', p('nowMs'))
    .where(({ eb, selectFrom }) => eb('id', 'not in', selectFrom('held').select('held.id'))),
);

/** Deletes expired responses that are not part of the history of an unexpired one. */
export const pruneResponses = operation(
  'responses.prune',
  async (tx, input: { readonly nowMs: number }): Promise<number> => (await tx.run(expired, input)).changes,
);

export const responseOperations = [keepResponse, findResponse, readChain, deleteResponse, pruneResponses];
