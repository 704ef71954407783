import type { Command } from 'commander';
import { homeDir } from '../connection/target.ts';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { runDaemonMode } from './daemon-process.ts';
import { followJob } from './job.ts';
import { homeOption, jsonOption, type OutputFlags, outputOption } from './options.ts';
import { print } from './print.ts';

type Flags = OutputFlags & { readonly home?: string; readonly keyring?: true; readonly file?: true };

/** The result of the mode (README.md). */
interface KeyState {
  readonly place: 'file' | 'keyring';
  readonly moved: boolean;
  readonly account: string;
  readonly keyFile: string;
}

/** `gatehouse secrets key`: acts on the home folder itself, whether its daemon runs or not. */
export function addInstallKeyCommand(secrets: Command, io: Io): void {
  secrets
    .command('key')
    .summary('move the install key into the keyring of the system, or back')
    .description(
      'Says where the install key of the home folder is, or moves it. The key itself stays the same. With the key in the keyring, the daemon starts only in a session whose keyring is unlocked.',
    )
    .option('--keyring', 'keep it in the keyring of the system: Secret Service, Keychain or Credential Manager')
    .option('--file', 'keep it in the file install.key of the home folder')
    .addOption(homeOption())
    .addOption(outputOption())
    .addOption(jsonOption())
    .action(async (flags: Flags) => {
      if (flags.keyring === true && flags.file === true) throw usageError('Expected one of --keyring and --file.');
      const to = flags.keyring === true ? 'keyring' : flags.file === true ? 'file' : 'show';
      const lines = runDaemonMode(['--home', homeDir(flags, io), '--install-key', to], io);
      print(io, flags, await followJob<KeyState>(lines, 'The move of the key', io), describe);
    });
}

function describe({ place, moved, account, keyFile }: KeyState): string {
  const entry = `entry ${account} of the service gatehouse`;
  if (!moved) return place === 'file' ? `The install key is in ${keyFile}.` : `The install key is in the keyring of the system, ${entry}.`;
  return place === 'keyring'
    ? `Moved the install key into the keyring of the system, ${entry}. Earlier copies of ${keyFile} still have it. Keep a copy of the key in a safe place: without it tokens and secrets are void.`
    : `Moved the install key into ${keyFile}. The keyring still has it (${entry}): another copy of this home may need it. Remove the entry there when none does.`;
}
