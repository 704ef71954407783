import { join } from 'node:path';
import { InstallKey, SecretVault } from '@gatehouse/server';
import { onPostgres, sql } from '@gatehouse/testkit/sql';
import type { Canaries, Scanner } from './canaries.ts';
import { sayTo, type Target } from './canary-transports.ts';

/** Name of the secret that a provider of the proof uses. */
export const storedName = 'STORED_PROVIDER_KEY';

/**
 * Puts a secret into the sealed copy of a home, as a daemon leaves one: the first start inserts it into the database. On PostgreSQL, where
 * another daemon may have removed it since, it is only used when the database has it too.
 */
export async function sealInto(home: string, rootKey: string, value: string): Promise<void> {
  const vault = new SecretVault({ file: join(home, 'secrets.sealed'), key: new InstallKey(Buffer.from(rootKey, 'hex')), redactor: { add() {} } });
  const { name, sealed } = vault.seal(storedName, value);
  vault.put({ name, sealed });
  vault.save();
  const row = 'INSERT INTO secret (name, sealed, created_at_ms, updated_at_ms, usage_count) VALUES (?, ?, 0, 0, 0)';
  if (onPostgres) await sql(home, row, name, sealed);
}

/** Secrets that are stored, replaced, removed and refused, and the lists of them. */
export async function useSecrets(target: Target, canaries: Canaries, scan: Scanner['scan'], unprovoked: string[]): Promise<void> {
  const say = sayTo(target, scan);
  const set = (key: string, value: string, more: object = {}) => say('env.set', { key, value, ...more });
  await set('STAYS_KEY', canaries.make('a stored secret'), { description: 'It stays', provider: 'somebody' });
  await set('STAYS_KEY', canaries.make('the new value of a stored secret', 'sk-'));
  await set('GONE_KEY', canaries.make('a stored secret that is removed'));
  await say('env.remove', { key: 'GONE_KEY' });
  await say('env.remove', { key: storedName });
  await set('not a name', canaries.make('a stored secret with a wrong name'));
  await set('LONG_KEY', canaries.make('a stored secret that is too long').repeat(300));
  await set('MARKED_KEY', `${canaries.make('a stored secret next to the marker')} [REDACTED]`);
  const listed = await say('env.list', {});
  for (const name of ['STAYS_KEY', storedName]) if (!listed.includes(name)) unprovoked.push(`${name} is not stored`);
  for (const section of ['providers', 'secrets']) await say('config.read', { section });
}
