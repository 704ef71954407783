import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import type { PartRow } from './api.ts';

/** Cause of parts held until the end of quiet hours; other held ones wait for an earlier part. */
export const quietHold = 'quiet_hours';
const quietText = 'It waits for the end of quiet hours';
/** Messages of one conversation that are held; beyond, they are refused. */
export const maxHeld = 100;
/** Somebody who wrote within this time is awake, and waits for what becomes of it. */
const awakeMs = 30 * 60_000;
const dayMs = 24 * 60 * 60_000;
/** Held messages of an instance that are read together. */
const maxRead = 10_000;

/** Whether a part waits for the end of quiet hours. */
export const isQuietHold = ({ state, errorKind }: Pick<PartRow, 'state' | 'errorKind'>): boolean => state === 'held' && errorKind === quietHold;

/** A message that is held, by its first part. */
export type HeldMessage = Pick<
  PartRow,
  'id' | 'opKey' | 'instance' | 'channelType' | 'conversationId' | 'agentId' | 'unsolicited' | 'notBeforeMs' | 'expiresAtMs'
>;

type Hold = Pick<PartRow, 'state' | 'notBeforeMs' | 'expiresAtMs' | 'errorKind' | 'error'>;

/**
 * Returns what holding changes in a part: its life continues after the quiet hours, that of a report for a day at least, as a machine may sleep in
 * the morning. A question has a separate end.
 */
export function holdOf({ unsolicited, expiresAtMs }: Pick<PartRow, 'unsolicited' | 'expiresAtMs'>, atMs: number, untilMs: number): Hold {
  const lifeMs = Math.max(expiresAtMs - atMs, unsolicited === 'report' ? dayMs : 0);
  const expiry = unsolicited === 'question' ? expiresAtMs : untilMs + lifeMs;
  return { state: 'held', notBeforeMs: untilMs, expiresAtMs: expiry, errorKind: quietHold, error: quietText };
}

/** Returns what the end of the quiet hours changes in a held part, also when it comes before the time that was expected. */
function releaseOf({ unsolicited, notBeforeMs, expiresAtMs }: HeldMessage | PartRow, atMs: number): Hold {
  const early = unsolicited === 'question' ? 0 : Math.max(0, notBeforeMs - atMs);
  return { state: 'pending', notBeforeMs: Math.min(notBeforeMs, atMs), expiresAtMs: expiresAtMs - early, errorKind: null, error: null };
}

const heldColumns = ['id', 'opKey', 'instance', 'channelType', 'conversationId', 'agentId', 'unsolicited', 'notBeforeMs', 'expiresAtMs'] as const;
const heldOf = query<{ instance: string; limit: number }, HeldMessage>(({ db, sql, p }) =>
  db
    .selectFrom('outboundMessage')
    .select(heldColumns)
    .where('instance', '=', p('instance'))
    .where(sql<boolean>`state = 'held'`)
    .where('errorKind', '=', quietHold)
    .where('part', '=', 1)
    .orderBy('id')
    .limit(p('limit')),
);

/** Returns the messages of an instance held by quiet hours. */
export const readHeld = operation('delivery.held', (tx, { instance }: { readonly instance: string }): Promise<HeldMessage[]> =>
  tx.all(heldOf, { instance, limit: maxRead }),
);

/** Number of parts of an instance: held by quiet hours, and queued or being sent. */
export interface WaitingParts {
  readonly instance: string;
  readonly held: number;
  readonly queued: number;
}

const countHeldOf = query<object, { instance: string; n: number }>(({ db, sql }) =>
  db
    .selectFrom('outboundMessage')
    .select(['instance', sql<number>`count(*)`.as('n')])
    .where(sql<boolean>`state = 'held'`)
    .where('errorKind', '=', quietHold)
    .groupBy('instance'),
);
const countQueuedOf = query<object, { instance: string; n: number }>(({ db, sql }) =>
  db
    .selectFrom('outboundMessage')
    .select(['instance', sql<number>`count(*)`.as('n')])
    .where(sql<boolean>`state in ('pending', 'sending')`)
    .groupBy('instance'),
);

/** Counts the waiting parts by instance. */
export const countWaitingParts = operation('delivery.countWaitingParts', async (tx): Promise<WaitingParts[]> => {
  const held = new Map((await tx.all(countHeldOf, {})).map(({ instance, n }) => [instance, n]));
  const queued = new Map((await tx.all(countQueuedOf, {})).map(({ instance, n }) => [instance, n]));
  return [...new Set([...held.keys(), ...queued.keys()])].map((instance) => ({
    instance,
    held: held.get(instance) ?? 0,
    queued: queued.get(instance) ?? 0,
  }));
});

interface Place {
  readonly instance: string;
  readonly conversationId: string;
}

const countThere = query<Place, { n: number }>(({ db, sql, p }) =>
  db
    .selectFrom('outboundMessage')
    .select(sql<number>`count(*)`.as('n'))
    .where('instance', '=', p('instance'))
    .where('conversationId', '=', p('conversationId'))
    .where(sql<boolean>`state = 'held'`)
    .where('errorKind', '=', quietHold)
    .where('part', '=', 1),
);
const lastHeard = query<Place, { atMs: number }>(({ db, p }) =>
  db
    .selectFrom('channelMessage')
    .select('receivedAtMs as atMs')
    .where('instance', '=', p('instance'))
    .where('conversationId', '=', p('conversationId'))
    .where('isBot', '=', 0)
    .where('verdict', '=', 'turn')
    .orderBy('id', 'desc')
    .limit(1),
);

/** Returns whether a person writes in the conversation of a part just now, and waits for what becomes of it; nobody waits for notifications. */
async function isAwaited(tx: Tx, { instance, conversationId, unsolicited }: PartRow, atMs: number): Promise<boolean> {
  if (unsolicited !== 'report' && unsolicited !== 'question') return false;
  const heard = await tx.get(lastHeard, { instance, conversationId });
  return heard !== undefined && heard.atMs <= atMs && atMs - heard.atMs < awakeMs;
}

/** Returns the parts of a new message as they are to be stored: held ones are open when somebody waits for them; undefined when too many are held. */
export async function admitHeld(tx: Tx, parts: readonly PartRow[]): Promise<readonly PartRow[] | undefined> {
  const [first] = parts;
  if (first === undefined || !isQuietHold(first)) return parts;
  const { createdAtMs, instance, conversationId } = first;
  if (await isAwaited(tx, first, createdAtMs)) return parts.map((part) => ({ ...part, ...releaseOf(part, createdAtMs) }));
  return ((await tx.get(countThere, { instance, conversationId }))?.n ?? 0) >= maxHeld ? undefined : parts;
}

const hold = query<Hold & { opKey: string }>(({ db, p }) =>
  db
    .updateTable('outboundMessage')
    .set({ state: p('state'), notBeforeMs: p('notBeforeMs'), expiresAtMs: p('expiresAtMs'), errorKind: p('errorKind'), error: p('error') })
    .where('opKey', '=', p('opKey'))
    .where('state', '=', 'pending'),
);
const release = query<Hold & { opKey: string; endedAtMs: number | null }>(({ db, p }) =>
  db
    .updateTable('outboundMessage')
    .set({
      state: p('state'),
      notBeforeMs: p('notBeforeMs'),
      expiresAtMs: p('expiresAtMs'),
      errorKind: p('errorKind'),
      error: p('error'),
      endedAtMs: p('endedAtMs'),
    })
    .where('opKey', '=', p('opKey'))
    .where('state', '=', 'held')
    .where('errorKind', '=', quietHold),
);

/**
 * Holds a message of which nothing was sent until the end of quiet hours, as it is about to be sent; false when somebody waits for it, or a part
 * of it may have been sent.
 */
export async function holdMessage(tx: Tx, row: PartRow, atMs: number, untilMs: number): Promise<boolean> {
  if (row.part > 1 || row.ambiguousSinceMs !== null || row.repeats > 0 || (await isAwaited(tx, row, atMs))) return false;
  await tx.run(hold, { ...holdOf(row, atMs, untilMs), opKey: row.opKey });
  return true;
}

/** What becomes of a held message: its hours have ended, they end later than they did, or its agent is gone. */
export interface HeldDecision {
  readonly message: HeldMessage;
  readonly is: 'sent' | 'held' | 'dropped';
  /** New end of the hours, for `held`. */
  readonly untilMs?: number | undefined;
}

export interface HeldDecisions {
  readonly decisions: readonly HeldDecision[];
  readonly atMs: number;
}

/** Carries out what was decided about held messages; returns those that another process had not decided about. */
export const releaseHeld = operation('delivery.release', async (tx, { decisions, atMs }: HeldDecisions): Promise<HeldMessage[]> => {
  const changed: HeldMessage[] = [];
  for (const decision of decisions) {
    const { opKey } = decision.message;
    const endedAtMs = decision.is === 'dropped' ? atMs : null;
    const { changes } = await tx.run(release, { ...endOf(decision, atMs), opKey, endedAtMs });
    if (changes > 0) changed.push(decision.message);
  }
  return changed;
});

function endOf({ is, message, untilMs }: HeldDecision, atMs: number): Hold {
  if (is === 'held') return holdOf(message, message.notBeforeMs, untilMs ?? message.notBeforeMs);
  const released = releaseOf(message, atMs);
  return is === 'sent' ? released : { ...released, state: 'rejected', errorKind: 'agent_deleted', error: 'The agent was deleted' };
}
