import { operation, query, raw } from '../../../../kernel/db/operation.ts';

/** Days of every time zone begin at such a moment. */
const pastSlotMs = 900_000;

// A durable turn that is not over reads its calls again.
const due = query<{ beforeMs: number; limit: number }, { id: number }>(({ db, sql, p }) =>
  db
    .selectFrom('modelCall')
    .select('id')
    .where(sql<boolean>`rolled_up = 1`)
    .where('atMs', '<', p('beforeMs'))
    // The newest stays, so that no id is given twice.
    .where(sql<boolean>`id < (select max(id) from model_call)`)
    .where(sql<boolean>`not exists (select 1 from durable_turn where durable_turn.turn_id = model_call.turn_id)`)
    .orderBy('atMs')
    .limit(p('limit'))
    .forUpdate()
    .skipLocked(),
);

/** Replaces some old calls that are in the slots by the sums of their quarters of an hour; returns how many. Reports stay the same. */
export const pruneCalls = operation(
  'budgets.pruneCalls',
  async (tx, input: { readonly beforeMs: number; readonly limit: number }): Promise<number> => {
    const ids = (await tx.all(due, input)).map(({ id }) => id);
    if (ids.length === 0) return 0;
    await tx.build((db, sql) =>
      raw(
        db,
        sql`INSERT INTO usage_past (slot_ms, conversation_ref, agent_id, principal_id, provider, model, operation,
              calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_nano, saved_nano, unpriced)
            SELECT at_ms / ${sql.lit(pastSlotMs)} * ${sql.lit(pastSlotMs)}, coalesce(conversation_ref, ''), agent_id, principal_id, provider, model, operation,
              count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens),
              coalesce(sum(cost_nano), 0), coalesce(sum(saved_nano), 0), count(*) - count(cost_nano)
            FROM model_call WHERE id IN (${sql.join(ids)})
            GROUP BY 1, 2, 3, 4, 5, 6, 7
            ON CONFLICT (slot_ms, conversation_ref, agent_id, principal_id, provider, model, operation) DO UPDATE SET
              calls = usage_past.calls + excluded.calls,
              input_tokens = usage_past.input_tokens + excluded.input_tokens,
              output_tokens = usage_past.output_tokens + excluded.output_tokens,
              cache_read_tokens = usage_past.cache_read_tokens + excluded.cache_read_tokens,
              cache_write_tokens = usage_past.cache_write_tokens + excluded.cache_write_tokens,
              cost_nano = usage_past.cost_nano + excluded.cost_nano,
              saved_nano = usage_past.saved_nano + excluded.saved_nano,
              unpriced = usage_past.unpriced + excluded.unpriced`,
      ),
    );
    await tx.build((db) => db.deleteFrom('modelCall').where('id', 'in', ids));
    return ids.length;
  },
);

const oldest = query<object, { atMs: number }>(({ db, sql }) =>
  db
    .selectFrom('modelCall')
    .select('atMs')
    .where(sql<boolean>`rolled_up = 1`)
    .orderBy('atMs')
    .limit(1),
);

/** Returns the time of the oldest call that is kept and in the slots. */
export const oldestCall = operation('budgets.oldestCall', async (tx): Promise<number | undefined> => (await tx.get(oldest, {}))?.atMs);

export const usagePastOperations = [pruneCalls, oldestCall];
