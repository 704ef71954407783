import { createHash } from 'node:crypto';
import { AppError } from '../../../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../../../kernel/db/audit.ts';
import { operation, query, type Tx } from '../../../../kernel/db/operation.ts';
import { ofDeadBoot } from '../../../../kernel/owners.ts';
import { countRunningOf, occurrenceColumns } from '../occurrences/occurrence-store.ts';
import { beginStore, jobColumns } from '../store.ts';

export type Part = 'store' | 'ledger';
export type ResetTarget = Part | 'all';
export const partsOf: Readonly<Record<ResetTarget, readonly Part[]>> = { store: ['store'], ledger: ['ledger'], all: ['store', 'ledger'] };

/** Phases in order; each is committed before the next begins. */
export const resetPhases = ['prepared', 'archives_recorded', 'replacements_recorded', 'completion_recorded'] as const;
export type ResetPhase = (typeof resetPhases)[number];

export interface Authority {
  readonly exists: boolean;
  readonly bytes: number;
  readonly digest: string | null;
}

interface IntentRow {
  readonly agentId: string;
  readonly operationId: string;
  readonly target: string;
  readonly phase: string;
  readonly beforeJson: string;
  readonly afterJson: string | null;
  readonly createdAtMs: number;
  /** The boot that executes it. */
  readonly bootId: string;
}

/** A reset that has started and not finished. */
export interface ResetIntent extends IntentRow {
  readonly target: ResetTarget;
  readonly phase: ResetPhase;
}

export type Digests = Partial<Record<Part, string | null>>;

const intentColumns = ['agentId', 'operationId', 'target', 'phase', 'beforeJson', 'afterJson', 'createdAtMs', 'bootId'] as const;

const intentOf = query<{ agentId: string }, IntentRow>(({ db, p }) =>
  db.selectFrom('cronIntent').select(intentColumns).where('agentId', '=', p('agentId')),
);

const isValid = (row: IntentRow): row is ResetIntent => Object.hasOwn(partsOf, row.target) && resetPhases.some((phase) => phase === row.phase);

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');

const storeOf = query<{ agentId: string }, { agentId: string; seed: string; formatVersion: number }>(({ db, p }) =>
  db.selectFrom('cronStore').select(['agentId', 'seed', 'formatVersion']).where('agentId', '=', p('agentId')),
);

/** Yields one line of JSON per row with stable row and key order, as input of digests. */
async function* linesOf(tx: Tx, part: Part, agentId: string, principalId: string | null): AsyncGenerator<string> {
  const page = 1000;
  let after = part === 'store' ? '' : 0;
  for (;;) {
    const rows = await tx.build<{ id: string; seq: number }>((db) => {
      const [table, key, columns] =
        part === 'store' ? (['cronJob', 'id', jobColumns] as const) : (['cronOccurrence', 'seq', ['seq', ...occurrenceColumns]] as const);
      const own = db.selectFrom(table).select(columns).where('agentId', '=', agentId).where(key, '>', after);
      return (principalId === null ? own : own.where('principalId', '=', principalId)).orderBy(key).limit(page);
    });
    for (const row of rows) yield `${JSON.stringify(row)}\n`;
    const last = rows.at(-1);
    if (last === undefined || rows.length < page) return;
    after = part === 'store' ? last.id : last.seq;
  }
}

async function authorityOf(tx: Tx, part: Part, agentId: string, principalId: string | null, each?: (line: string) => void): Promise<Authority> {
  const store = await tx.get(storeOf, { agentId });
  if (store === undefined) return { exists: false, bytes: 0, digest: null };
  const digest = createHash('sha256');
  let bytes = 0;
  const add = (line: string) => {
    bytes += Buffer.byteLength(line);
    digest.update(line);
    each?.(line);
  };
  // A store after a reset differs from a store before its first job.
  if (part === 'store' && principalId === null) add(`${JSON.stringify(store)}\n`);
  for await (const line of linesOf(tx, part, agentId, principalId)) add(line);
  return { exists: true, bytes, digest: digest.digest('hex') };
}

export interface StatusRows {
  readonly store: Authority;
  readonly ledger: Authority;
  readonly jobs: number;
  readonly running: number;
  /** Unfinished occurrences of an earlier boot. */
  readonly orphans: number;
  readonly intent: { readonly row: ResetIntent; readonly digest: string } | { readonly invalid: true; readonly digest: string } | null;
}

/** Reads the contents of `cron.status` for one principal, or for all when `principalId` is null. */
export const readStatus = operation(
  'cron.status',
  async (tx, { agentId, principalId, bootId }: { agentId: string; principalId: string | null; bootId: string }): Promise<StatusRows> => {
    const [jobs] = await tx.build<{ count: number }>((db, sql) => {
      const from = db
        .selectFrom('cronJob')
        .select(sql<number>`count(*)`.as('count'))
        .where('agentId', '=', agentId);
      return principalId === null ? from : from.where('principalId', '=', principalId);
    });
    const [open] = await tx.build<{ count: number; old: number }>((db, sql) => {
      const from = db
        .selectFrom('cronOccurrence')
        .select([sql<number>`count(*)`.as('count'), sql<number>`count(CASE WHEN boot_id <> ${bootId} THEN 1 END)`.as('old')])
        .where('agentId', '=', agentId)
        .where(sql<boolean>`terminal_at_ms IS NULL`);
      return principalId === null ? from : from.where('principalId', '=', principalId);
    });
    const intent = await tx.get(intentOf, { agentId });
    const digest = intent === undefined ? '' : digestOf(JSON.stringify(intent));
    return {
      store: await authorityOf(tx, 'store', agentId, principalId),
      ledger: await authorityOf(tx, 'ledger', agentId, principalId),
      jobs: jobs?.count ?? 0,
      running: open?.count ?? 0,
      orphans: open?.old ?? 0,
      intent: intent === undefined ? null : isValid(intent) ? { row: intent, digest } : { invalid: true, digest },
    };
  },
);

async function digestsOf(tx: Tx, target: ResetTarget, agentId: string): Promise<Digests> {
  const digests: Digests = {};
  for (const part of partsOf[target]) digests[part] = (await authorityOf(tx, part, agentId, null)).digest;
  return digests;
}

const dropIntent = query<{ agentId: string }>(({ db, p }) => db.deleteFrom('cronIntent').where('agentId', '=', p('agentId')));
const insertIntent = query<IntentRow>(({ db, each }) => db.insertInto('cronIntent').values(each(intentColumns)));

/** Returns a digest of what finishing a run does not change: the job definitions and the set of occurrences. */
async function identityOf(tx: Tx, target: ResetTarget, agentId: string): Promise<string> {
  const digest = createHash('sha256');
  for (const part of partsOf[target]) {
    const rows = await tx.build<object>((db) =>
      part === 'store'
        ? db
            .selectFrom('cronJob')
            .select(['id', 'name', 'principalId', 'tokenId', 'scheduleJson', 'payloadJson', 'policiesJson'])
            .where('agentId', '=', agentId)
            .orderBy('id')
        : db.selectFrom('cronOccurrence').select('executionId').where('agentId', '=', agentId).orderBy('seq'),
    );
    digest.update(JSON.stringify(rows));
  }
  return digest.digest('hex');
}

function refuseStale(target: ResetTarget, before: Digests, expected: Digests): void {
  const param = partsOf[target].find((part) => before[part] !== expected[part]);
  if (param !== undefined) throw new AppError('conflict', `expectedDigests.${param}: it has changed`, { param: `expectedDigests.${param}` });
}

type Comparison = Pick<ResetRequest, 'agentId' | 'target' | 'expected'>;

/** Compares the digests before a reset drains runs, which changes them; throws `conflict` when they differ. Returns the `identity` for later. */
export const compareReset = operation('cron.compareReset', async (tx, { agentId, target, expected }: Comparison): Promise<string> => {
  refuseStale(target, await digestsOf(tx, target, agentId), expected);
  return identityOf(tx, target, agentId);
});

export interface ResetRequest {
  readonly agentId: string;
  readonly operationId: string;
  readonly target: ResetTarget;
  readonly expected: Digests;
  /** Result of `compareReset`, present when runs were drained. */
  readonly identity?: string;
  readonly bootId: string;
  readonly atMs: number;
  readonly audit: AuditRow;
}

/**
 * Runs phase one, which compares and decides in one commit. Returns the digests before the reset. Throws `conflict` when a digest differs or
 * another reset is unfinished, `precondition_failed` while jobs run.
 */
export const prepareReset = operation('cron.prepareReset', async (tx, request: ResetRequest): Promise<Digests> => {
  const { agentId, operationId, target, expected, identity, bootId, atMs, audit } = request;
  const present = await tx.get(intentOf, { agentId });
  if (present !== undefined && isValid(present)) throw new AppError('conflict', `Another reset has not finished: ${present.operationId}`);
  if ((await countRunningOf(tx, agentId)) > 0) throw new AppError('precondition_failed', `Jobs of agent ${agentId} are running`);
  const before = await digestsOf(tx, target, agentId);
  if (identity === undefined || identity !== (await identityOf(tx, target, agentId))) refuseStale(target, before, expected);
  await tx.run(dropIntent, { agentId });
  await tx.run(insertIntent, {
    agentId,
    operationId,
    target,
    phase: 'prepared',
    beforeJson: JSON.stringify(before),
    afterJson: null,
    createdAtMs: atMs,
    bootId,
  });
  await appendAudit(tx, audit);
  return before;
});

const setPhase = query<{ agentId: string; phase: string; afterJson: string | null }>(({ db, p }) =>
  db
    .updateTable('cronIntent')
    .set({ phase: p('phase'), afterJson: p('afterJson') })
    .where('agentId', '=', p('agentId')),
);

const insertArchive = query<{
  operationId: string;
  part: string;
  agentId: string;
  digest: string;
  bytes: number;
  content: string;
  atMs: number;
}>(({ db, each, p }) =>
  db
    .insertInto('cronArchive')
    .values({ ...each(['operationId', 'part', 'agentId', 'digest', 'bytes', 'content']), archivedAtMs: p('atMs') })
    .onConflict((conflict) => conflict.doNothing()),
);

/** Number of archives kept per agent. */
const keptArchives = 10;

async function archive(tx: Tx, { agentId, operationId, target }: ResetIntent, atMs: number): Promise<void> {
  for (const part of partsOf[target]) {
    const lines: string[] = [];
    const { digest, bytes } = await authorityOf(tx, part, agentId, null, (line) => lines.push(line));
    if (digest !== null) await tx.run(insertArchive, { operationId, part, agentId, digest, bytes, content: lines.join(''), atMs });
  }
  await tx.build((db, sql) =>
    db
      .deleteFrom('cronArchive')
      .where('agentId', '=', agentId)
      .where(
        sql<boolean>`operation_id NOT IN (SELECT DISTINCT operation_id FROM cron_archive WHERE agent_id = ${agentId} ORDER BY operation_id DESC LIMIT ${keptArchives})`,
      ),
  );
}

async function replace(tx: Tx, { agentId, operationId, target }: ResetIntent, atMs: number): Promise<void> {
  for (const part of partsOf[target])
    for (const table of part === 'store' ? (['cronJob', 'cronStore', 'cronBackfill'] as const) : (['cronOccurrence', 'cronBackfill'] as const))
      await tx.build((db) => db.deleteFrom(table).where('agentId', '=', agentId));
  await beginStore(tx, { agentId, seed: operationId, atMs });
}

/** Executes and records the next phase of a reset; returns the updated intent, or null after the last phase. */
export const advanceReset = operation(
  'cron.advanceReset',
  async (tx, { agentId, atMs }: { readonly agentId: string; readonly atMs: number }): Promise<ResetIntent | null> => {
    const intent = await tx.get(intentOf, { agentId });
    if (intent === undefined || !isValid(intent)) return null;
    const to = async (phase: ResetPhase, afterJson = intent.afterJson): Promise<ResetIntent> => {
      await tx.run(setPhase, { agentId, phase, afterJson });
      return { ...intent, phase, afterJson };
    };
    switch (intent.phase) {
      case 'prepared':
        await archive(tx, intent, atMs);
        return to('archives_recorded');
      case 'archives_recorded':
        await replace(tx, intent, atMs);
        return to('replacements_recorded', JSON.stringify(await digestsOf(tx, intent.target, agentId)));
      case 'replacements_recorded':
        return to('completion_recorded');
      case 'completion_recorded':
        await tx.run(dropIntent, { agentId });
        return null;
    }
  },
);

const leftIntents = query<Record<string, never>, IntentRow>(({ db, sql }) =>
  db.selectFrom('cronIntent').select(intentColumns).where(ofDeadBoot(sql, 'cronIntent.bootId')).orderBy('agentId'),
);

/** Reads the resets that dead boots left unfinished, and whether each is valid. */
export const openIntents = operation('cron.intents', async (tx): Promise<{ agentId: string; isValid: boolean }[]> =>
  (await tx.all(leftIntents, {})).map((row) => ({ agentId: row.agentId, isValid: isValid(row) })),
);

export const cronResetOperations = [readStatus, compareReset, prepareReset, advanceReset, openIntents];
