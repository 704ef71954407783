import type { Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import type { Io } from '../io.ts';
import { renderTable, renderTime } from '../render/table.ts';
import { confirm } from './confirm.ts';
import { addGroup } from './group.ts';
import { addInstallKeyCommand } from './install-key.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { readPeriod } from './period.ts';
import { print } from './print.ts';
import { readSecret } from './secret-value.ts';

type ListFlags = CommonFlags & { limit: number };
type SetFlags = CommonFlags & { provider?: string; description?: string; expiresIn?: string };
type RemoveFlags = CommonFlags & { yes?: true };

/** `gatehouse secrets list | set | remove | key`. */
export function addSecretsCommand(program: Command, io: Io): void {
  const secrets = addGroup(program, 'secrets')
    .summary('list, set and remove the secrets that config.yaml refers to')
    .description('Secrets for `${NAME}` in config.yaml, stored encrypted; values are never shown. Needs a token with scope admin.');

  addList(secrets, io);
  addSet(secrets, io);
  addRemove(secrets, io);
  addInstallKeyCommand(secrets, io);
}

function addList(secrets: Command, io: Io): void {
  withConnection(secrets.command('list [filter]', { isDefault: true }))
    .description('Lists the names of the stored secrets and where they are used; FILTER may contain *.')
    .addOption(countOption('--limit <n>', 'number of secrets, at most 500', 100))
    .action(async (filter: string | undefined, { limit, ...flags }: ListFlags) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('env.list', { filter, limit });
      print(io, flags, listed, secretTable);
    });
}

function addSet(secrets: Command, io: Io): void {
  withConnection(secrets.command('set <name>'))
    .description('Stores a secret, or replaces its value: the one on standard input, else a hidden prompt asks for it.')
    .option('--provider <name>', 'service that it is for')
    .option('--description <text>', 'what it is for')
    .option('--expires-in <time>', 'when the service ends it, such as 90d: shown in the list')
    .action(async (key: string, { provider, description, expiresIn, ...flags }: SetFlags) => {
      const expiry = expiresIn === undefined ? {} : { expiresAt: io.now() + readPeriod('--expires-in', expiresIn) };
      const value = await readSecret(key, `gatehouse secrets set ${key}`, io);
      const { client } = await connect(flags, io);
      const done = await client.call('env.set', { key, value, provider, description, ...expiry });
      print(io, flags, done, setText);
    });
}

function addRemove(secrets: Command, io: Io): void {
  withConnection(secrets.command('remove <name>'))
    .description('Removes a secret that config.yaml does not use.')
    .option('-y, --yes', 'do not ask')
    .action(async (key: string, { yes, ...flags }: RemoveFlags) => {
      if (yes !== true) await confirm(`Remove the secret ${key}? It can't be undone.`, io);
      const { client } = await connect(flags, io);
      const done = await client.call('env.remove', { key });
      print(io, flags, done, () => `Removed ${done.key}.`);
    });
}

function secretTable({ secrets, total, truncated }: Result<'env.list'>): string {
  if (total === 0) return 'No secrets.';
  const table = renderTable(
    ['Name', 'For', 'Used by', 'Changed', 'Last used', 'Expires', 'Note'],
    secrets.map((one) => [
      one.name,
      one.description ?? one.provider,
      one.usedBy.join(' ') || undefined,
      renderTime(one.updatedAt),
      renderTime(one.lastUsedAt),
      renderTime(one.expiresAt),
      one.unreadable === true
        ? 'sealed with another install key: set it again'
        : one.shadowed === true
          ? 'the environment has it, too, and wins'
          : undefined,
    ]),
  );
  return truncated ? `${table}\n${secrets.length} of ${total}.` : table;
}

function setText({ key, shadowed, restart, notApplied }: Result<'env.set'>): string {
  if (shadowed === true) return `Stored ${key}. It has no effect while the environment of the daemon has a variable of this name.`;
  if (notApplied !== undefined) return `Stored ${key}, which is not in force: ${notApplied}`;
  return restart.length === 0
    ? `Stored ${key}.`
    : `Stored ${key}. These keys need a restart (\`gatehouse call gateway.restart\`): ${restart.join(', ')}`;
}
