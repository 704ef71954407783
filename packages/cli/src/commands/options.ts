import { type Command, Option } from 'commander';
import type { ConnectionFlags } from '../connection/target.ts';

export interface OutputFlags {
  readonly output: 'human' | 'json';
}

export type CommonFlags = ConnectionFlags & OutputFlags;

export function homeOption(): Option {
  return new Option('--home <dir>', 'home folder of the daemon (default: $GATEHOUSE_HOME or ~/.gatehouse)');
}

/** For machine use: one JSON value on standard output. */
export function outputOption(): Option {
  return new Option('-o, --output <format>', 'how to print').choices(['human', 'json']).default('human');
}

/** Flags of every command that talks to a daemon. The token itself is never on a command line, where other users could read it. */
export function withConnection(command: Command): Command {
  return command
    .addOption(new Option('--url <url>', 'address of the gateway (default: $GATEHOUSE_URL, else that of the home folder)'))
    .addOption(new Option('--token-file <file>', 'file that holds the token (default: $GATEHOUSE_TOKEN, else the file `token` of the home folder)'))
    .addOption(homeOption())
    .addOption(outputOption());
}
