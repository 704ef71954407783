import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import type { ResponseRow } from './api.ts';

const insert = query<Required<ResponseRow>>(({ db, p }) =>
  db.insertInto('response').values({
    id: p('id'),
    previous_id: p('previousId'),
    principal_id: p('principalId'),
    agent_id: p('agentId'),
    body_json: p('bodyJson'),
    system_json: p('systemJson'),
    messages_json: p('messagesJson'),
    input_json: p('inputJson'),
    created_at_ms: p('createdAtMs'),
    expires_at_ms: p('expiresAtMs'),
  }),
);

/** Keeps an answer of `/v1/responses`. Part of `commitTurn`: it is there when its turn is. */
export async function keepResponse(tx: Tx, row: ResponseRow): Promise<void> {
  await tx.run(insert, { inputJson: null, ...row });
}

interface Owned {
  readonly id: string;
  readonly principalId: string;
}

/** Of an owner who asks now; what is past its time is gone, also before it is pruned. */
interface Asked extends Owned {
  readonly nowMs: number;
}

type Found = Required<Pick<ResponseRow, 'bodyJson' | 'agentId' | 'inputJson'>>;

const byId = query<Asked, Found>(({ db, p }) =>
  db
    .selectFrom('response')
    .select(['body_json as bodyJson', 'agent_id as agentId', 'input_json as inputJson'])
    .where('id', '=', p('id'))
    .where('principal_id', '=', p('principalId'))
    .where('expires_at_ms', '>', p('nowMs')),
);

export const findResponse = operation('responses.find', async (tx, input: Asked): Promise<Found | undefined> => tx.get(byId, input));

/** How many responses one history may hold, and how long their messages may be together, in characters. */
export const maxDepth = 500;
export const maxHistoryLength = 16 * 1024 * 1024;

export type Link = Pick<ResponseRow, 'previousId' | 'agentId' | 'systemJson' | 'messagesJson'>;

interface Walk extends Asked {
  readonly maxDepth: number;
  readonly maxLength: number;
}

/** From the response backwards; the row that passes a bound is the last one, so that it can be seen that there was one. */
const chain = query<Walk, Link>(({ db, sql, p }) =>
  db
    .withRecursive('link', (with_) =>
      with_
        .selectFrom('response')
        .select([
          'id',
          'previous_id',
          'agent_id',
          'system_json',
          'messages_json',
          sql<number>`1`.as('depth'),
          sql<number>`length(system_json) + length(messages_json)`.as('size'),
        ])
        .where('id', '=', p('id'))
        .where('principal_id', '=', p('principalId'))
        .where('expires_at_ms', '>', p('nowMs'))
        .unionAll((union) =>
          union
            .selectFrom('response as earlier')
            .innerJoin('link', 'link.previous_id', 'earlier.id')
            .select([
              'earlier.id',
              'earlier.previous_id',
              'earlier.agent_id',
              'earlier.system_json',
              'earlier.messages_json',
              sql<number>`link.depth + 1`.as('depth'),
              sql<number>`link.size + length(earlier.system_json) + length(earlier.messages_json)`.as('size'),
            ])
            .where('earlier.principal_id', '=', p('principalId'))
            .where('link.depth', '<=', p('maxDepth'))
            .where('link.size', '<=', p('maxLength')),
        ),
    )
    .selectFrom('link')
    .select(['previous_id as previousId', 'agent_id as agentId', 'system_json as systemJson', 'messages_json as messagesJson'])
    .orderBy('depth'),
);

/** A response and those before it, newest first; an earlier one counts also past its own time, as long as a later one holds it. */
export const readChain = operation('responses.chain', async (tx, input: Asked): Promise<Link[]> =>
  tx.all(chain, { ...input, maxDepth, maxLength: maxHistoryLength }),
);

const remove = query<Owned>(({ db, p }) => db.deleteFrom('response').where('id', '=', p('id')).where('principal_id', '=', p('principalId')));

/** False when there was none. */
export const deleteResponse = operation('responses.delete', async (tx, input: Owned): Promise<boolean> => (await tx.run(remove, input)).changes > 0);

const expired = query<{ nowMs: number }>(({ db, p }) =>
  db
    .withRecursive('held', (with_) =>
      with_
        .selectFrom('response')
        .select(['id', 'previous_id'])
        .where('expires_at_ms', '>', p('nowMs'))
        .union((union) =>
          union.selectFrom('response as earlier').innerJoin('held', 'held.previous_id', 'earlier.id').select(['earlier.id', 'earlier.previous_id']),
        ),
    )
    .deleteFrom('response')
    .where('expires_at_ms', '<=', p('nowMs'))
    .where('id', 'not in', db.selectFrom('held').select('id')),
);

/** Removes what is past its time and is no part of the history of a response that is not. */
export const pruneResponses = operation(
  'responses.prune',
  async (tx, input: { readonly nowMs: number }): Promise<number> => (await tx.run(expired, input)).changes,
);

export const responseOperations = [findResponse, readChain, deleteResponse, pruneResponses];
