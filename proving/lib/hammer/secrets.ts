import {
  importSecrets,
  type NewSecret,
  recordSecretUses,
  removeSecret,
  setSecret,
} from '../../../packages/server/src/features/operations/secrets/store.ts';
import type { AuditRow } from '../../../packages/server/src/kernel/db/audit.ts';
import { atMs, differs, driver, type Driver, type Names, namesOf, quote, valueOf } from './driver.ts';

interface Round {
  readonly round: string;
}

interface Kept {
  /** Writes within the limit. */
  readonly written: number;
  readonly created: number;
  readonly imported: number;
}

const windowMs = 60_000;
const limit = { limit: 5, windowMs, maxSecrets: 1_000_000 };

/** A time of its round alone: writes are limited within a window over all names. */
function timeOf(round: string): number {
  const number = Number(BigInt(`0x${Buffer.from(round).toString('hex')}`) % 1_000_003n);
  return atMs + number * 10 * windowMs;
}

const auditOf = (names: Names, index: string): AuditRow => ({ ...names.audit(index), atMs: timeOf(names.round) });
const secretOf = (names: Names, index: number | string, sealed: string): NewSecret => ({
  name: names.id('SECRET', index),
  sealed,
  provider: null,
  description: null,
  createdAtMs: atMs,
  updatedAtMs: atMs,
  expiresAtMs: null,
});

/** Secrets that both set, remove, import and use: no more writes than the limit, and nothing is counted twice. */
const secrets: Driver<Round, Kept> = {
  name: 'secrets',
  async prepare(db, names) {
    const rows = ['used', 'gone'].map((index) => secretOf(names, index, index));
    await db.write(importSecrets, { rows, audits: rows.map(({ name }) => auditOf(names, name)) });
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const audit = (what: string) => auditOf(names, `${what}-${side}`);
    let [created, written] = [0, 0];
    await writer.race([
      ...[0, 1, 2, 3].map((index) => async () => {
        const row = secretOf(names, index, `${index}-${side}`);
        const outcome = valueOf(await writer.write(setSecret, { row, limit, audit: audit(`set-${index}`) }));
        if (outcome === 'created') created += 1;
        if (outcome === 'created' || outcome === 'updated') written += 1;
      }),
      async () => {
        if (valueOf(await writer.write(removeSecret, { name: names.id('SECRET', 'gone'), limit, audit: audit('remove') })) === 'deleted')
          written += 1;
      },
      () => writer.write(recordSecretUses, { uses: [{ name: names.id('SECRET', 'used'), count: 2, atMs }] }),
    ]);
    const again = ['lost', 'used'].map((index) => secretOf(names, index, `import-${side}`));
    const imported = await writer.write(importSecrets, { rows: again, audits: again.map(({ name }) => audit(`import-${name}`)) });
    return { written, created, imported: valueOf(imported)?.length ?? 0 };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const time = timeOf(round);
    const [writes] = await look(`select count(*) as count from secret_write where at_ms = ${time}`);
    const [used] = await look(`select usage_count as count, sealed from secret where name = ${quote(names.id('SECRET', 'used'))}`);
    const [rows] = await look(`select count(*) as count from secret where name like 'SECRET_${round}-_'`);
    const [audits] = await look(`select count(*) as count from audit where target = ${quote(round)} and at_ms = ${time}`);
    return [
      ...differs('writes within the limit', first.written + second.written, limit.limit),
      ...differs('rows of writes', writes?.['count'], limit.limit),
      ...differs('secrets that were created', rows?.['count'], first.created + second.created),
      ...differs('secrets that were inserted again', first.imported + second.imported, 1),
      ...differs('uses', used?.['count'], 4),
      ...(used?.['sealed'] === 'used' ? [] : ['an import replaced a secret']),
      // Two rows were prepared.
      ...differs('audit rows of what was done', audits?.['count'], 2 + limit.limit + 1),
    ];
  },
};

export const secretDrivers = [driver(secrets)];
