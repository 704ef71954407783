import { type Command, InvalidArgumentError, Option } from 'commander';
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

/** The same in short; not for `call`, where `--json` holds the parameters. */
export function jsonOption(): Option {
  return new Option('--json', 'the same as --output json').implies({ output: 'json' });
}

/** A whole number from 0 on. */
export function countOption(flags: string, text: string, otherwise?: number): Option {
  const option = new Option(flags, text).argParser((value) => {
    if (!/^\d{1,9}$/.test(value)) throw new InvalidArgumentError('Expected a whole number from 0 on.');
    return Number(value);
  });
  return otherwise === undefined ? option : option.default(otherwise);
}

/** Flags of every command that talks to a daemon. The token itself is never on a command line, where other users could read it. */
export function withConnection(command: Command): Command {
  return withOwnJson(command).addOption(jsonOption());
}

/** The same for a command with a meaning of its own for `--json`. */
export function withOwnJson(command: Command): Command {
  return command
    .addOption(new Option('--url <url>', 'address of the gateway (default: $GATEHOUSE_URL, else that of the home folder)'))
    .addOption(new Option('--token-file <file>', 'file that holds the token (default: $GATEHOUSE_TOKEN, else the file `token` of the home folder)'))
    .addOption(homeOption())
    .addOption(outputOption());
}
