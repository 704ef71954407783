import { appendAudit, type AuditRow } from '../../../kernel/db/audit.ts';
import { operation, query } from '../../../kernel/db/operation.ts';
import type { Tier } from './vetting/vet.ts';

/** Provenance of a skill that passed the gate: it is trusted only with these bytes. */
export interface ProvenanceRow {
  /** Id of the agent; empty for a shared skill. */
  readonly owner: string;
  readonly name: string;
  readonly digest: string;
  readonly source: 'uploaded' | 'created' | 'imported';
  readonly tier: Tier;
  readonly verdict: 'safe' | 'caution' | 'dangerous';
  readonly forced: 0 | 1;
  readonly url: string | null;
  readonly principalId: string;
  readonly atMs: number;
}

/** How the turns ended that used a skill. */
export interface StatRow {
  readonly agentId: string;
  readonly owner: string;
  readonly name: string;
  readonly uses: number;
  readonly failures: number;
  /** Consecutive turns with the same end: positive well, negative badly. */
  readonly streak: number;
  readonly standing: 'neutral' | 'promoted' | 'demoted';
  readonly atMs: number;
}

const provenanceColumns = ['owner', 'name', 'digest', 'source', 'tier', 'verdict', 'forced', 'url', 'principalId', 'atMs'] as const;

const allProvenance = query<object, ProvenanceRow>(({ db }) => db.selectFrom('skillProvenance').select(provenanceColumns));
const statColumns = ['agentId', 'owner', 'name', 'uses', 'failures', 'streak', 'standing', 'atMs'] as const;

const allStats = query<object, StatRow>(({ db }) => db.selectFrom('skillStat').select(statColumns));

/** Read once, at start: both tables have a row per skill. */
export const loadSkills = operation(
  'skills.load',
  async (tx): Promise<{ readonly provenance: readonly ProvenanceRow[]; readonly stats: readonly StatRow[] }> => ({
    provenance: await tx.all(allProvenance, {}),
    stats: await tx.all(allStats, {}),
  }),
);

type Key = Pick<ProvenanceRow, 'owner' | 'name'>;
const removeProvenance = query<Key>(({ db, p }) => db.deleteFrom('skillProvenance').where('owner', '=', p('owner')).where('name', '=', p('name')));
const removeStats = query<Key>(({ db, p }) => db.deleteFrom('skillStat').where('owner', '=', p('owner')).where('name', '=', p('name')));
const insertProvenance = query<ProvenanceRow>(({ db, each }) => db.insertInto('skillProvenance').values(each(provenanceColumns)));

/** Records a write under a name; forgets what was learned about the previous skill. */
export const keepSkill = operation(
  'skills.keep',
  async (tx, { row, audits }: { readonly row: ProvenanceRow; readonly audits: readonly AuditRow[] }): Promise<void> => {
    const key = { owner: row.owner, name: row.name };
    await tx.run(removeProvenance, key);
    await tx.run(removeStats, key);
    await tx.run(insertProvenance, row);
    for (const audit of audits) await appendAudit(tx, audit);
  },
);

export const forgetSkill = operation('skills.forget', async (tx, { key, audit }: { readonly key: Key; readonly audit: AuditRow }): Promise<void> => {
  await tx.run(removeProvenance, key);
  await tx.run(removeStats, key);
  await appendAudit(tx, audit);
});

const upsertStat = query<StatRow>(({ db, sql, each }) =>
  db
    .insertInto('skillStat')
    .values(each(statColumns))
    .onConflict((conflict) =>
      conflict.columns(['agentId', 'owner', 'name']).doUpdateSet({
        uses: sql<number>`excluded.uses`,
        failures: sql<number>`excluded.failures`,
        streak: sql<number>`excluded.streak`,
        standing: sql<StatRow['standing']>`excluded.standing`,
        atMs: sql<number>`excluded.at_ms`,
      }),
    ),
);

export const saveStats = operation('skills.saveStats', async (tx, { stats }: { readonly stats: readonly StatRow[] }): Promise<void> => {
  for (const stat of stats) await tx.run(upsertStat, stat);
});

export const skillOperations = [loadSkills, keepSkill, forgetSkill, saveStats];
