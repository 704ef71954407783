import { query, type Tx } from '../../../../kernel/db/operation.ts';
import type { DeliveryCounts } from './facts.ts';

const dayMs = 86_400_000;
const waitsMs = 10 * 60_000;
/** A channel is silent when it was busy in the week before, and took in nothing since. */
const silentMs = 3 * dayMs;
const weekMs = 7 * dayMs;
const busyMessages = 20;

interface Window {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** Parts that nobody has to care for are the many, and are left out by their state. */
const parts = query<Window & { waitsBeforeMs: number }, { dead: number | null; unknown: number | null; waiting: number | null }>(({ db, sql, p }) =>
  db
    .selectFrom('outboundMessage')
    .select([
      sql<number | null>`sum(case when state in ('rejected', 'expired') and ended_at_ms >= ${p('fromMs')} and ended_at_ms < ${p('untilMs')}
        then 1 else 0 end)`.as('dead'),
      sql<number | null>`sum(case when state = 'unknown' then 1 else 0 end)`.as('unknown'),
      // Quiet hours are not a fault, but what they held must be on its way after their end.
      sql<number | null>`sum(case when (state in ('pending', 'sending')
          or state = 'held' and (coalesce(error_kind, '') <> 'quiet_hours' or not_before_ms <= ${p('waitsBeforeMs')}))
        and created_at_ms <= ${p('waitsBeforeMs')} then 1 else 0 end)`.as('waiting'),
    ])
    .where('state', 'in', ['rejected', 'expired', 'unknown', 'pending', 'sending', 'held']),
);

/** Counts messages to chats that did not arrive, or not yet. */
export async function readDeliveries(tx: Tx, { fromMs, untilMs }: Window): Promise<DeliveryCounts> {
  const counts = await tx.get(parts, { fromMs, untilMs, waitsBeforeMs: untilMs - waitsMs });
  return { dead: counts?.dead ?? 0, unknown: counts?.unknown ?? 0, waiting: counts?.waiting ?? 0 };
}

const silent = query<{ weekFromMs: number; silentFromMs: number; least: number }, { instance: string }>(({ db, sql, p }) =>
  db
    .selectFrom('channelMessage')
    .select('instance')
    .where('receivedAtMs', '>=', p('weekFromMs'))
    .groupBy('instance')
    .having(sql<boolean>`count(*) >= ${p('least')} and max(received_at_ms) < ${p('silentFromMs')}`)
    .orderBy('instance'),
);

/** Returns the instances that took in many messages in a week, and none in the days after it. */
export async function readSilent(tx: Tx, untilMs: number): Promise<string[]> {
  const silentFromMs = untilMs - silentMs;
  const rows = await tx.all(silent, { weekFromMs: silentFromMs - weekMs, silentFromMs, least: busyMessages });
  return rows.map(({ instance }) => instance);
}
