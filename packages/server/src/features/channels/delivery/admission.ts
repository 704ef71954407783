import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import type { Admits } from '../../../channels/people.ts';
import { principalOfSender } from '../../../channels/sender-principal.ts';
import type { Destination } from './api.ts';

type Direct = Pick<Destination, 'instance' | 'channelType' | 'conversationId'>;
interface Person {
  readonly senderId: string;
  readonly principalId: string | null;
}

/** Messages in which the people of a conversation are looked for. */
const looked = 50;

const heard = query<Direct & { limit: number }, { senderId: string }>(({ db, p }) =>
  db
    .selectFrom('channelMessage')
    .select('senderId')
    .where('instance', '=', p('instance'))
    .where('conversationId', '=', p('conversationId'))
    .where('channelType', '=', p('channelType'))
    .where('conversationKind', '=', 'direct')
    .orderBy('id', 'desc')
    .limit(p('limit')),
);
const pairedIn = query<Direct & { senderIds: string }, Person>(({ db, json, p }) =>
  db
    .selectFrom('channelPairing')
    .select(['senderId', 'principalId'])
    .where('instance', '=', p('instance'))
    .where('channelType', '=', p('channelType'))
    .where('codeMac', 'is', null)
    .where((where) => where.or([where('conversationId', '=', p('conversationId')), where('senderId', 'in', json.texts(p('senderIds')))])),
);
const removedFrom = query<Direct, { atMs: number }>(({ db, p }) =>
  db
    .selectFrom('channelRemoved')
    .select('atMs')
    .where('instance', '=', p('instance'))
    .where('channelType', '=', p('channelType'))
    .where('conversationId', '=', p('conversationId')),
);
const putRemoved = query<Direct & { atMs: number }>(({ db, each }) =>
  db
    .insertInto('channelRemoved')
    .values(each(['instance', 'channelType', 'conversationId', 'atMs']))
    .onConflict((conflict) => conflict.doNothing()),
);
/** Notes that the person of a direct conversation may not be written to any more, also when its messages are pruned. */
export async function markRemoved(tx: Tx, { instance, channelType, conversationId }: Direct, atMs: number): Promise<void> {
  await tx.run(putRemoved, { instance, channelType, conversationId, atMs });
}

/**
 * Returns the ids of the people whom a message to a direct conversation is for: those who may write there, and of these the ones whose principal
 * it belongs to. Undefined when nobody may any more; empty when nobody is known, as in a conversation that the operator named.
 */
export async function recipientsIn(
  tx: Tx,
  { instance, channelType, conversationId, principalId }: Direct & { readonly principalId: string | null },
  { listed, arePaired, isOpen }: Admits,
): Promise<readonly string[] | undefined> {
  const place = { instance, channelType, conversationId };
  const wrote = (await tx.all(heard, { ...place, limit: looked })).map(({ senderId }) => senderId);
  const pairings = await tx.all(pairedIn, { ...place, senderIds: JSON.stringify([...new Set(wrote)]) });
  const paired = new Map(pairings.map((one) => [one.senderId, one.principalId]));
  const people = [...new Set([...wrote, ...paired.keys()])];
  const mayWrite = (senderId: string) => isOpen || listed.includes(senderId) || (arePaired && paired.has(senderId));
  const isTheirs = (senderId: string) =>
    principalId !== null && (principalOfSender({ instance, senderId }) === principalId || paired.get(senderId) === principalId);
  const theirs = people.filter(isTheirs);
  const admitted = (theirs.length > 0 ? theirs : people).filter(mayWrite);
  if (admitted.length > 0 || isOpen || listed.includes(conversationId)) return admitted;
  const isKnown = people.length > 0 || (await tx.get(removedFrom, place)) !== undefined;
  return isKnown ? undefined : [];
}

/** Returns whom a message to a direct conversation may reach, of any principal. */
export const readRecipients = operation(
  'delivery.recipients',
  (tx, { to, admits }: { readonly to: Direct; readonly admits: Admits }): Promise<readonly string[] | undefined> =>
    recipientsIn(tx, { ...to, principalId: null }, admits),
);
