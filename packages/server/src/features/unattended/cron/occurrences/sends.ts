import type { CronDeliveryState, DeliveryState } from '@gatehouse/contract';
import { query, type Tx } from '../../../../kernel/db/operation.ts';

/** Key of what an occurrence delivers, in the inbox and in the outbox of channels. */
export const deliveryKeyOf = (executionId: string): string => `cron:${executionId}`;
const prefix = deliveryKeyOf('');

const waits: ReadonlySet<DeliveryState> = new Set(['pending', 'sending']);
const undecided: ReadonlySet<DeliveryState> = new Set(['unknown', 'held']);

/** Returns what became of a delivery; `isPending` while parts of it still wait. */
export function outcomeOf(
  stored: CronDeliveryState,
  states: readonly DeliveryState[] = [],
): { readonly status: CronDeliveryState; readonly isPending: boolean } {
  if (states.length === 0) return { status: stored, isPending: false };
  if (states.some((state) => undecided.has(state))) return { status: 'unknown', isPending: false };
  if (states.some((state) => waits.has(state))) return { status: 'unknown', isPending: true };
  const accepted = states.filter((state) => state === 'accepted').length;
  return { status: accepted === states.length ? 'accepted' : accepted > 0 ? 'partial' : 'rejected', isPending: false };
}

/** Returns the states of what these occurrences send to chats; those that sent nothing are left out. */
export async function readSends(tx: Tx, executionIds: readonly string[]): Promise<Map<string, DeliveryState[]>> {
  const found = new Map<string, DeliveryState[]>();
  if (executionIds.length === 0) return found;
  const keys = executionIds.map(deliveryKeyOf);
  const rows = await tx.build<{ opKey: string; state: DeliveryState }>((db, sql) =>
    db
      .selectFrom('outboundMessage')
      // What quiet hours hold is to be sent.
      .select(['opKey', sql<DeliveryState>`case when state = 'held' and error_kind = 'quiet_hours' then 'pending' else state end`.as('state')])
      .where('opKey', 'in', keys),
  );
  for (const { opKey, state } of rows) {
    const executionId = opKey.slice(prefix.length);
    found.set(executionId, [...(found.get(executionId) ?? []), state]);
  }
  return found;
}

const setStatus = query<{ executionId: string; status: CronDeliveryState }>(({ db, p }) =>
  db
    .updateTable('cronOccurrence')
    .set({ deliveryStatus: p('status') })
    .where('executionId', '=', p('executionId')),
);

/** Stores what became of deliveries whose parts, named by their keys, are about to be deleted. */
export async function keepOutcomes(tx: Tx, opKeys: readonly string[]): Promise<void> {
  const executionIds = [...new Set(opKeys.filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length)))];
  for (const [executionId, states] of await readSends(tx, executionIds))
    await tx.run(setStatus, { executionId, status: outcomeOf('unknown', states).status });
}
