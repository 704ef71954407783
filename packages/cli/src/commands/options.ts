import { type Command, InvalidArgumentError, Option } from 'commander';
import type { ConnectionFlags } from '../connection/target.ts';

export interface OutputFlags {
  readonly output: 'human' | 'json';
}

export type CommonFlags = ConnectionFlags & OutputFlags;

export function homeOption(): Option {
  return new Option('--home <dir>', 'home folder of the daemon (default: $GATEHOUSE_HOME or ~/.gatehouse)');
}

/** Output format: `json` prints one JSON value for programs. */
export function outputOption(): Option {
  return new Option('-o, --output <format>', 'how to print').choices(['human', 'json']).default('human');
}

/** Short form of `--output json`; not for `call`, where `--json` holds the parameters. */
export function jsonOption(): Option {
  return new Option('--json', 'the same as --output json').implies({ output: 'json' });
}

/** Filters what a command prints as JSON; carried out for all commands in `cli.ts`. */
export function jqOption(): Option {
  return new Option('--jq <filter>', 'print what a filter of jq returns for the JSON output').implies({ output: 'json' });
}

/** An option with a non-negative integer. */
export function countOption(flags: string, text: string, otherwise?: number): Option {
  const option = new Option(flags, text).argParser((value) => {
    if (!/^\d{1,9}$/.test(value)) throw new InvalidArgumentError('Expected a non-negative integer.');
    return Number(value);
  });
  return otherwise === undefined ? option : option.default(otherwise);
}

/** Adds the flags of commands that call a daemon. The token itself is never a flag, because other users can read a command line. */
export function withConnection(command: Command): Command {
  return withOwnJson(command).addOption(jsonOption());
}

/** Adds the same flags to a command with its own meaning of `--json`. */
export function withOwnJson(command: Command): Command {
  return command
    .addOption(new Option('--url <url>', 'address of the gateway (default: $GATEHOUSE_URL, then the home folder)'))
    .addOption(new Option('--token-file <file>', 'file that holds the token (default: $GATEHOUSE_TOKEN, then the file `token` in the home folder)'))
    .addOption(homeOption())
    .addOption(outputOption())
    .addOption(jqOption());
}
