import { join } from 'node:path';
import { InstallKey, SecretVault } from '@gatehouse/server';
import type { Canaries, Scanner } from './canaries.ts';
import { sayTo, type Target } from './canary-transports.ts';

/** Name of the secret that a provider of the proof uses. */
export const storedName = 'STORED_PROVIDER_KEY';

/** Puts a secret into the sealed copy of a home, as a daemon leaves one: the first start inserts it into the database. */
export function sealInto(home: string, rootKey: string, value: string): void {
  const vault = new SecretVault({ file: join(home, 'secrets.sealed'), key: new InstallKey(Buffer.from(rootKey, 'hex')), redactor: { add() {} } });
  vault.put(vault.seal(storedName, value));
  vault.save();
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
