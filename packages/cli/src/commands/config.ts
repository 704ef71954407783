import type { Client } from '@gatehouse/client';
import { GatehouseError } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { resolve } from 'node:path';
import { connect, homeDir } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { CliError, usageError } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { renderTable, renderTime } from '../render/table.ts';
import { editConfig } from './config-edit.ts';
import { changeText, paintDiff } from './config-text.ts';
import { ask, confirm } from './confirm.ts';
import { readDaemonMode } from './daemon-process.ts';
import { type CommonFlags, countOption, homeOption, jsonOption, type OutputFlags, outputOption, withConnection } from './options.ts';
import { print } from './print.ts';

type ChangeFlags = CommonFlags & { readonly yes?: true; readonly dryRun?: true };
type Change = { readonly confirm?: boolean; readonly dryRun?: boolean };

/** `gatehouse config get | set | unset | edit | check | diff | history | rollback`. */
export function addConfigCommand(program: Command, io: Io, setExit: SetExit): void {
  const config = program
    .command('config')
    .summary('show and change the configuration, with its history')
    .description(
      'Shows and changes config.yaml through the running daemon, which validates the whole and puts in force what it can without a restart. Needs a token with scope admin; keys that decide who may do what need an owner.',
    );
  addGet(config, io);
  addSet(config, io);
  addUnset(config, io);
  addEdit(config, io);
  addCheck(config, io, setExit);
  addDiff(config, io);
  addHistory(config, io);
  addRollback(config, io);
}

function addGet(config: Command, io: Io): void {
  withConnection(config.command('get [key]'))
    .description('Prints the value in force of a key, such as gateway.port or agents.default; all of it without a key. Secrets are hidden.')
    .action(async (key: string | undefined, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const [section, ...rest] = key === undefined ? [] : key.split(/[.[\]"]+/).filter((part) => part !== '');
      if (key !== undefined && section === undefined) throw usageError(`${plainText(key)} is not a key: expected names with dots between them.`);
      const read = await client.call('config.read', { section });
      const value = rest.reduce<unknown>((part, name) => partOf(part, name), read.config);
      if (value === undefined) throw new CliError(`${plainText(key ?? '')} has no value.`, { hint: '`gatehouse config get` prints all keys.' });
      const { stringify } = await import('./yaml.ts');
      print(io, flags, value, () => (typeof value === 'object' && value !== null ? stringify(value, { lineWidth: 0 }).trimEnd() : String(value)));
      if (flags.output === 'human') for (const line of noteLines(read)) printLine(io.stderr, line);
    });
}

function partOf(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return /^\d+$/.test(name) ? value[Number(name)] : value.find((item: unknown) => partOf(item, 'id') === name);
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
}

function noteLines({ fault, restartNeeded }: Result<'config.read'>): string[] {
  return [
    ...(fault === undefined ? [] : [`note: config.yaml cannot be used, an earlier configuration is in force: ${plainText(fault)}`]),
    ...(restartNeeded.length === 0 ? [] : [`note: a restart is needed for ${plainText(restartNeeded.join(', '))}.`]),
  ];
}

function withChange(command: Command): Command {
  return withConnection(command)
    .option('--yes', 'change protected keys without asking')
    .option('--dry-run', 'show what would change, and change nothing');
}

function addSet(config: Command, io: Io): void {
  withChange(config.command('set <key> <value>'))
    .description('Sets a value in config.yaml. Numbers, true, false and JSON become what the key holds; "${NAME}" takes it from the environment.')
    .action(async (key: string, value: string, flags: ChangeFlags) => {
      const { client } = await connect(flags, io);
      const done = await confirmed(flags, io, (change) => client.call('config.set', { path: key, value, ...change }));
      print(io, flags, done, () => changeText(`Set ${plainText(key)}`, done, io));
    });
}

function addUnset(config: Command, io: Io): void {
  withChange(config.command('unset <key>'))
    .description('Removes a key from config.yaml, so that its default is in force.')
    .action(async (key: string, flags: ChangeFlags) => {
      const { client } = await connect(flags, io);
      const done = await confirmed(flags, io, (change) => client.call('config.set', { path: key, value: null, ...change }));
      const was = done.previous === undefined ? `${plainText(key)} was not in config.yaml` : `Removed ${plainText(key)}`;
      print(io, flags, done, () => changeText(was, done, io));
    });
}

/** Makes a change; asks first when it is one of protected keys. */
async function confirmed<T>({ yes, dryRun }: ChangeFlags, io: Io, change: (how: Change) => Promise<T>): Promise<T> {
  const how = dryRun === true ? { dryRun: true } : {};
  if (yes === true) return change({ ...how, confirm: true });
  try {
    return await change(how);
  } catch (error) {
    if (!(error instanceof GatehouseError && error.code === 'precondition_failed' && error.message.includes('confirm: true'))) throw error;
    await confirm(`${plainText(error.message.replace(/: repeat the call.*/, ''))}. Change ${dryRun === true ? 'nothing, but show it' : 'it'}?`, io);
    return change({ ...how, confirm: true });
  }
}

function addEdit(config: Command, io: Io): void {
  config
    .command('edit')
    .description(
      'Opens config.yaml in $VISUAL or $EDITOR; shows the difference and asks before it is changed. Only on the machine of the daemon, for its owner.',
    )
    .addOption(homeOption())
    .option('--yes', 'apply a valid text without asking')
    .action(async (flags: { home?: string; yes?: true }) => editConfig(flags, io));
}

function addCheck(config: Command, io: Io, setExit: SetExit): void {
  config
    .command('check [file]')
    .description('Checks config.yaml, or another file, as a start would; without a daemon. Exits with 1 when it cannot be used.')
    .addOption(homeOption())
    .addOption(outputOption())
    .addOption(jsonOption())
    .action(async (file: string | undefined, flags: OutputFlags & { home?: string }) => {
      const found = await checkFile(file === undefined ? undefined : resolve(io.workingDir, file), flags, io);
      if (found.problems.length > 0) setExit(exitCode.failed);
      print(io, flags, found, () => (found.problems.length === 0 ? `${found.file} can be used.` : found.problems.map(plainText).join('\n')));
    });
}

interface Checked {
  readonly file: string;
  readonly problems: readonly string[];
}

async function checkFile(file: string | undefined, flags: { home?: string }, io: Io): Promise<Checked> {
  const args = ['--home', homeDir(flags, io), '--config-check', ...(file === undefined ? [] : [file])];
  const { code, stdout, stderr } = await readDaemonMode(args, io);
  if (code !== 0) throw new CliError(`The check failed to run: ${stderr.trim()}`);
  const answer: Partial<Checked> = JSON.parse(stdout);
  return { file: String(answer.file), problems: Array.isArray(answer.problems) ? answer.problems.map(String) : [] };
}

function addDiff(config: Command, io: Io): void {
  withConnection(config.command('diff [sha]'))
    .description('Shows what changed since a version, or last. Secrets are hidden.')
    .action(async (sha: string | undefined, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const { diff } = await client.call('config.diff', { sha });
      print(io, flags, { diff }, () => (diff === '' ? 'No difference.' : paintDiff(diff, io)));
    });
}

function addHistory(config: Command, io: Io): void {
  withConnection(config.command('history'))
    .description('Lists the versions of config.yaml, newest first.')
    .addOption(countOption('--limit <n>', 'how many, at most 200', 10))
    .option('--section <name>', 'only changes of this section')
    .action(async ({ limit, section, ...flags }: CommonFlags & { limit: number; section?: string }) => {
      const { client } = await connect(flags, io);
      const { entries } = await client.call('config.history', { limit, section });
      print(io, flags, entries, () => historyTable(entries));
    });
}

function historyTable(entries: Result<'config.history'>['entries']): string {
  if (entries.length === 0) return 'No versions.';
  return renderTable(
    ['Version', 'SHA', 'Time', 'By', 'From', 'Change'],
    entries.map(({ version, sha, timestamp, metadata, from, message }) => [
      version,
      sha.slice(0, 12),
      renderTime(timestamp),
      metadata.user,
      from,
      message,
    ]),
  );
}

function addRollback(config: Command, io: Io): void {
  withChange(config.command('rollback <sha>'))
    .description('Writes an earlier version again, byte for byte, as a new version; shows the difference and asks first.')
    .action(async (sha: string, flags: ChangeFlags) => {
      const { client } = await connect(flags, io);
      if (flags.dryRun !== true && flags.yes !== true) await askForRollback(client, sha, io);
      const done = await client.call('config.rollback', { sha, confirm: true, ...(flags.dryRun === true && { dryRun: true }) });
      const what = done.newCommitSha === '' ? 'config.yaml has this text already' : `Back to ${done.sha.slice(0, 12)}`;
      print(io, flags, done, () => changeText(what, done, io));
    });
}

async function askForRollback(client: Client, sha: string, io: Io): Promise<void> {
  const { diff = '' } = await client.call('config.rollback', { sha, confirm: true, dryRun: true });
  if (diff === '') return;
  printLine(io.stderr, paintDiff(diff, io));
  if (!(await ask('Go back to this version?', io))) throw new CliError('Nothing was changed.');
}
