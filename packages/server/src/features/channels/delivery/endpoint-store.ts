import { operation, query } from '../../../kernel/db/operation.ts';

export interface Named {
  readonly instance: string;
  readonly conversationId: string;
}

export type Kind = { readonly kind: 'direct' | 'shared' };

const heard = query<Named, Kind>(({ db, p }) =>
  db
    .selectFrom('channelMessage')
    .select('conversationKind as kind')
    .where('instance', '=', p('instance'))
    .where('conversationId', '=', p('conversationId'))
    .limit(1),
);
const said = query<Named, Kind>(({ db, p }) =>
  db
    .selectFrom('outboundMessage')
    .select('conversationKind as kind')
    .where('instance', '=', p('instance'))
    .where('conversationId', '=', p('conversationId'))
    .where('state', '=', 'accepted')
    .limit(1),
);
const paired = query<Named & { principalId: string }, { id: string }>(({ db, p }) =>
  db
    .selectFrom('channelPairing')
    .select('id')
    .where('instance', '=', p('instance'))
    .where('conversationId', '=', p('conversationId'))
    .where('principalId', '=', p('principalId'))
    .where('codeMac', 'is', null)
    .limit(1),
);
const saidTo = query<Named & { principalId: string }, { id: string }>(({ db, p }) =>
  db
    .selectFrom('outboundMessage')
    .select('id')
    .where('instance', '=', p('instance'))
    .where('conversationId', '=', p('conversationId'))
    .where('principalId', '=', p('principalId'))
    .where('conversationKind', '=', 'direct')
    .where('state', '=', 'accepted')
    .limit(1),
);

const removed = query<Named, { atMs: number }>(({ db, p }) =>
  db.selectFrom('channelRemoved').select('atMs').where('instance', '=', p('instance')).where('conversationId', '=', p('conversationId')).limit(1),
);

export interface KnownEndpoint {
  /** Null when nobody wrote there. */
  readonly kind: 'direct' | 'shared' | null;
  /** Whether it is a direct conversation of the principal. */
  readonly isOwn: boolean;
}

/** Returns what is known about a conversation of a platform. */
export const readKnownEndpoint = operation(
  'delivery.knownEndpoint',
  async (tx, { principalId, ...named }: Named & { readonly principalId: string }): Promise<KnownEndpoint> => {
    const isPaired = (await tx.get(paired, { ...named, principalId })) !== undefined;
    // Messages of a person who was removed may be pruned: the conversation must not become a group, where nobody is checked.
    const isDirect = isPaired || (await tx.get(removed, named)) !== undefined;
    const kind = isDirect ? 'direct' : ((await tx.get(heard, named)) ?? (await tx.get(said, named)))?.kind;
    return { kind: kind ?? null, isOwn: isPaired || (await tx.get(saidTo, { ...named, principalId })) !== undefined };
  },
);
