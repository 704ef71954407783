import type { Expression, ExpressionBuilder } from 'kysely';
import { operation, query, type QueryTools, type Tx } from '../../../kernel/db/operation.ts';
import type { Tables } from '../../../kernel/db/tables.ts';
import type { ClaimedBoot, ListedNode, NodeRole } from './api.ts';

/** The time by which leases are judged: of the database where daemons of several machines share it, else of the daemon. */
const leaseNow = ({ p, sql, dialect }: Pick<QueryTools<{ readonly atMs: number }>, 'p' | 'sql' | 'dialect'>): Expression<number> =>
  dialect === 'postgres' ? sql<number>`floor(extract(epoch from clock_timestamp()) * 1000)::bigint` : p('atMs');

/** A boot of a daemon that renews its lease. */
export interface Renewal {
  readonly bootId: string;
  readonly address: string | null;
  readonly leaseMs: number;
  readonly atMs: number;
}

export interface NodeStart extends Omit<Renewal, 'address'> {
  readonly homeId: string;
  readonly version: string;
  readonly role: NodeRole;
  /** 1: the database is in the home, whose lock shows that all other boots are dead, also those of a home that this one is a copy of. */
  readonly isSole: 0 | 1;
  /** Rows that were last renewed before are deleted, unless they are live. */
  readonly prunedBeforeMs: number;
}

const insert = query<Omit<NodeStart, 'prunedBeforeMs' | 'isSole'>>((tools) =>
  tools.db.insertInto('node').values({
    ...tools.each(['bootId', 'homeId', 'version', 'role']),
    address: null,
    state: 'live',
    leaseUntilMs: tools.sql<number>`${leaseNow(tools)} + ${tools.p('leaseMs', 'integer')}`,
    startedAtMs: leaseNow(tools),
    renewedAtMs: leaseNow(tools),
    claimedBy: '',
  }),
);

const prune = query<{ beforeMs: number }>(({ db, sql, p }) =>
  db
    .deleteFrom('node')
    .where(sql<boolean>`claimed_by <> ''`)
    .where('renewedAtMs', '<', p('beforeMs')),
);

interface Claiming {
  readonly bootId: string;
  readonly homeId: string;
  readonly isSole: 0 | 1;
  readonly atMs: number;
}

/**
 * The boots that nobody has claimed and that are dead: they stopped in order, their leases lapsed, or they are of the same home, whose
 * lock the claiming boot holds.
 */
const isClaimable = (tools: QueryTools<Claiming>) => (is: ExpressionBuilder<Tables, 'node'>) =>
  is.and([
    is('claimedBy', '=', ''),
    is('bootId', '<>', tools.p('bootId')),
    is.or([
      is('state', '=', 'ended'),
      is('homeId', '=', tools.p('homeId')),
      is('leaseUntilMs', '<=', leaseNow(tools)),
      tools.sql<boolean>`${tools.p('isSole')} = 1`,
    ]),
  ]);

const claim = query<Claiming, ClaimedBoot>((tools) =>
  tools.db
    .updateTable('node')
    .set({
      claimedBy: tools.p('bootId'),
      state: tools.sql<ClaimedBoot['state']>`case when state = 'ended' then state else 'claimed' end`,
    })
    .where(isClaimable(tools))
    .returning(['bootId', 'address', 'state'])
    .$narrowType<{ state: ClaimedBoot['state'] }>(),
);

const claimable = query<Claiming, { bootId: string }>((tools) => tools.db.selectFrom('node').select('bootId').where(isClaimable(tools)).forUpdate());

/** Each boot has one winner. Waits for commits of the boots that are under way: they come before the claim, and all later ones are refused. */
async function claimBoots(tx: Tx, { bootId, homeId, isSole, atMs }: Claiming): Promise<ClaimedBoot[]> {
  const claiming = { bootId, homeId, isSole, atMs };
  return (await tx.all(claimable, claiming)).length === 0 ? [] : tx.all(claim, claiming);
}

/** Adds the row of a boot, and claims the dead ones. */
export const beginNode = operation('nodes.begin', async (tx, { prunedBeforeMs, isSole, ...start }: NodeStart): Promise<ClaimedBoot[]> => {
  await tx.run(prune, { beforeMs: prunedBeforeMs });
  await tx.run(insert, start);
  return claimBoots(tx, { ...start, isSole });
});

/** Claims the dead boots for one whose row is there already. */
export const adoptNode = operation('nodes.adopt', async (tx, { prunedBeforeMs, ...claiming }: Claiming & { readonly prunedBeforeMs: number }) => {
  await tx.run(prune, { beforeMs: prunedBeforeMs });
  return claimBoots(tx, claiming);
});

interface ListedRow {
  readonly bootId: string;
  readonly role: NodeRole;
  readonly state: 'live' | 'draining';
  readonly version: string;
  readonly address: string | null;
  readonly leaseLeftMs: number;
}

const list = query<{ readonly atMs: number }, ListedRow>((tools) =>
  tools.db
    .selectFrom('node')
    .select(['bootId', 'role', 'state', 'version', 'address', tools.sql<number>`lease_until_ms - ${leaseNow(tools)}`.as('leaseLeftMs')])
    .where('state', 'in', ['live', 'draining'])
    .orderBy('role')
    .orderBy('startedAtMs')
    .orderBy('bootId')
    .$narrowType<{ state: ListedRow['state'] }>(),
);

/** Returns the daemons that have neither stopped nor been claimed: the active one first. */
export const listNodes = operation(
  'nodes.list',
  async (tx, { bootId, atMs }: { readonly bootId: string; readonly atMs: number }): Promise<ListedNode[]> =>
    (await tx.all(list, { atMs })).map(({ bootId: each, state, ...rest }) => ({
      ...rest,
      state: rest.leaseLeftMs > 0 ? state : 'lapsed',
      ...(each === bootId && { self: true as const }),
    })),
);

/** Claims the boots whose leases have lapsed; each has one winner. */
export const claimLapsed = operation('nodes.claim', claimBoots);

const lapsed = query<Claiming, { bootId: string }>((tools) => tools.db.selectFrom('node').select('bootId').where(isClaimable(tools)).limit(1));

/** Returns whether a boot can be claimed, so that a check that finds none commits nothing. */
export const hasLapsed = operation('nodes.hasLapsed', async (tx, input: Claiming): Promise<boolean> => (await tx.get(lapsed, input)) !== undefined);

const renew = query<Renewal>((tools) =>
  tools.db
    .updateTable('node')
    .set({
      address: tools.p('address'),
      leaseUntilMs: tools.sql<number>`${leaseNow(tools)} + ${tools.p('leaseMs', 'integer')}`,
      renewedAtMs: leaseNow(tools),
    })
    .where('bootId', '=', tools.p('bootId'))
    .where('state', 'in', ['live', 'draining']),
);

/** Renews a lease, even one that has lapsed, unless it was claimed; returns false then. */
export const renewNode = operation('nodes.renew', async (tx, input: Renewal): Promise<boolean> => (await tx.run(renew, input)).changes > 0);

const move = query<{ bootId: string; state: 'draining' | 'ended' }>(({ db, p }) =>
  db
    .updateTable('node')
    .set({ state: p('state') })
    .where('bootId', '=', p('bootId'))
    .where('state', 'in', ['live', 'draining']),
);

/** Records that a boot starts nothing more, or has stopped; a claimed one stays claimed. */
export const moveNode = operation(
  'nodes.move',
  async (tx, input: { readonly bootId: string; readonly state: 'draining' | 'ended' }): Promise<void> => {
    await tx.run(move, input);
  },
);

const liveBoot = query<{ bootId: string }, { bootId: string }>(({ db, p }) =>
  db.selectFrom('node').select('bootId').where('bootId', '=', p('bootId')).where('state', 'in', ['live', 'draining']).forKeyShare(),
);

/** Returns whether a boot may still write, and keeps it from being claimed until the commit. Check it in the transaction of a write that a dead owner must not make and that has no fence. */
export async function holdsBoot(tx: Tx, bootId: string): Promise<boolean> {
  return (await tx.get(liveBoot, { bootId })) !== undefined;
}

export const nodeOperations = [beginNode, adoptNode, listNodes, claimLapsed, hasLapsed, renewNode, moveNode];
