import { join } from 'node:path';
import type { Command } from 'commander';
import { askControlInfo } from '../connection/control-socket.ts';
import { controlSocketFile, homeDir } from '../connection/target.ts';
import { CliError } from '../failure.ts';
import type { Io } from '../io.ts';
import { runDaemonMode } from './daemon-process.ts';
import { followJob } from './job.ts';
import { homeOption, jsonOption, type OutputFlags, outputOption } from './options.ts';
import { print } from './print.ts';

/** The result of an import (README.md). */
interface ImportResult {
  readonly place: string;
  readonly imported: boolean;
  readonly tables: number;
  readonly rows: number;
  readonly replacedTexts: number;
  readonly digest: string;
  readonly dataDir: string;
  readonly keyFile?: string;
  readonly keyIsInKeyring?: true;
  readonly tokenFile?: string;
  readonly folders: readonly string[];
}

/** `gatehouse storage import`, for a stopped daemon only. */
export function addStorageCommand(program: Command, io: Io): void {
  const group = program.command('storage').summary('move the data from SQLite to PostgreSQL');
  group
    .command('import')
    .summary('copy the data of a stopped daemon into an empty PostgreSQL database')
    .description(
      'Copies the SQLite database of the home folder into an empty PostgreSQL database and compares every row, all counts and all sums of money. The files of the home stay as they are. An interrupted import is repeated by the same command.',
    )
    .option('--to <url>', "database, as postgres://user@host/name or '${NAME}' for a variable that holds it (default: storage.url of config.yaml)")
    .addOption(homeOption())
    .addOption(outputOption())
    .addOption(jsonOption())
    .action(async (flags: OutputFlags & { readonly home?: string; readonly to?: string }) => {
      const home = homeDir(flags, io);
      const info = await askControlInfo(controlSocketFile(home));
      if (info !== undefined)
        throw new CliError(`The daemon of ${home} is running (process ${info.pid}${info.address === null ? '' : ` at ${info.address}`}).`, {
          hint: 'Stop it first. The data of a running daemon changes while it is copied.',
        });
      const target = flags.to === undefined ? [] : ['--to', flags.to];
      const result = await followJob<ImportResult>(runDaemonMode(['--home', home, '--storage-import', ...target], io), 'Import', io);
      print(io, flags, result, () => describe(result));
    });
}

function describe(result: ImportResult): string {
  const { place, imported, tables, rows, replacedTexts, digest, dataDir } = result;
  return [
    imported
      ? `Imported ${rows} rows of ${tables} tables into ${place}. Every row, the counts and all sums of money are equal (SHA-256 ${digest}).`
      : `This data is in ${place} already: ${rows} rows of ${tables} tables (SHA-256 ${digest}). Nothing was done.`,
    ...(replacedTexts === 0 ? [] : [`${replacedTexts} texts held the character U+0000, which PostgreSQL cannot store: it is U+FFFD there.`]),
    '',
    'Next steps:',
    ...nextSteps(result).map((step, index) => `  ${index + 1}. ${step}`),
    '',
    `The SQLite database stays in ${dataDir} as it was. No daemon starts on it as long as ${join(dataDir, 'imported-into-postgres.json')} exists.`,
  ].join('\n');
}

function nextSteps({ place, keyFile, keyIsInKeyring, tokenFile, folders }: ImportResult): readonly string[] {
  const key =
    keyIsInKeyring === true
      ? 'the install key of this home, which is in the keyring of the system: "gatehouse secrets key --file" writes it into install.key, for GATEHOUSE_MASTER_KEY_FILE or a copy'
      : keyFile === undefined
        ? 'the present GATEHOUSE_MASTER_KEY'
        : `the install key of this home: GATEHOUSE_MASTER_KEY_FILE=${keyFile}, or a copy of it`;
  return [
    `In config.yaml set storage.driver to "postgres" and storage.url to "\${DATABASE_URL}", which holds ${place} with user and password.`,
    `Give each daemon on this database ${key}. Another key is refused.`,
    ...(tokenFile === undefined
      ? []
      : [`For a standby, copy ${tokenFile} into its home. With GATEHOUSE_TOKEN instead, callers have another id and start new conversations.`]),
    ...(folders.length === 0
      ? []
      : [`For a standby, move these folders to a path that both machines mount, and set storage.sharedPath to it: ${folders.join(', ')}.`]),
    'Start the daemon.',
  ];
}
