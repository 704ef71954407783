import { resolve } from 'node:path';
import type { Command } from 'commander';
import { askControlInfo, startControlJob } from '../connection/control-socket.ts';
import { controlSocketFile, homeDir } from '../connection/target.ts';
import { CliError } from '../failure.ts';
import type { Io } from '../io.ts';
import { renderBytes } from '../render/table.ts';
import { confirm } from './confirm.ts';
import { runDaemonMode } from './daemon-process.ts';
import { followJob } from './job.ts';
import { homeOption, jsonOption, type OutputFlags, outputOption } from './options.ts';
import { print } from './print.ts';

type BackupFlags = OutputFlags & { readonly home?: string };

/**
 * `gatehouse backup [FILE]`. Only the daemon may open its database: a running one copies it on a request over its owner-only
 * socket; otherwise the daemon is started in a separate backup mode.
 */
export function addBackupCommand(program: Command, io: Io): void {
  program
    .command('backup [file]')
    .summary('copy the database, while the daemon runs or not')
    .description('Writes a consistent copy of all data to FILE (default: a new file in the `backups` folder of the home folder).')
    .addOption(homeOption())
    .addOption(outputOption())
    .addOption(jsonOption())
    .action(async (file: string | undefined, flags: BackupFlags) => {
      const home = homeDir(flags, io);
      const target = file === undefined ? undefined : resolve(io.workingDir, file);
      const running = await startControlJob(controlSocketFile(home), '/control/backup', { file: target });
      const lines = running ?? runDaemonMode(['--home', home, '--backup', ...(target === undefined ? [] : [target])], io);
      const result = await followJob(lines, 'Backup', io);
      print(io, flags, result, () => `Wrote ${result.file}, ${renderBytes(result.bytes)}.`);
    });
}

/** `gatehouse restore FILE`, for a stopped daemon only. */
export function addRestoreCommand(program: Command, io: Io): void {
  program
    .command('restore <file>')
    .summary('replace the data with a backup')
    .description('Checks FILE and replaces the data with it; the former data is kept next to it. The daemon must be stopped.')
    .option('-y, --yes', 'skip the confirmation')
    .addOption(homeOption())
    .addOption(outputOption())
    .addOption(jsonOption())
    .action(async (file: string, flags: BackupFlags & { yes?: true }) => {
      const home = homeDir(flags, io);
      const info = await askControlInfo(controlSocketFile(home));
      if (info !== undefined)
        throw new CliError(`The daemon of ${home} is running (process ${info.pid}).`, {
          hint: "Stop it first. The data of a running daemon can't be replaced.",
        });
      if (flags.yes !== true) await confirm(`Replace all data of ${home} with ${file}?`, io);
      const result = await followJob(runDaemonMode(['--home', home, '--restore', resolve(io.workingDir, file)], io), 'Restore', io);
      const kept = result.previous === undefined ? '' : ` The former data is in ${result.previous}.`;
      print(io, flags, result, () => `Restored ${result.file}, ${renderBytes(result.bytes)}.${kept}`);
    });
}
