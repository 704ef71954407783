import type { Command } from 'commander';
import type { Io } from '../io.ts';
import type { FilterBy } from '../render/jq.ts';
import { type CommonFlags, withOwnJson } from './options.ts';

export type CallFlags = CommonFlags & { readonly list?: true };

/** `gatehouse call METHOD --name value …`: calls any method of the registry, with flags and help generated from the contract. */
export function addCallCommand(program: Command, io: Io, filterBy: FilterBy): void {
  withOwnJson(program.command('call [method] [params...]'))
    .summary('call any JSON-RPC method')
    .description('Calls one JSON-RPC method and prints its result. `gatehouse call METHOD --help` shows the parameters of a method.')
    .option('--list', 'list all methods')
    // Arguments after the method name belong to the method: a parameter may have the name of one of our flags.
    .passThroughOptions()
    .addHelpText('after', callNotes)
    .action(async (name: string | undefined, words: string[], flags: CallFlags) => {
      // Loading the registry with zod takes 0.2 s, so only this command does it.
      const { runCall } = await import('../call/run-call.ts');
      await runCall({ name, words, flags }, io, filterBy);
    });
}

const callNotes = `
Parameters:
  --name value            a parameter; agent-id and agentId are the same
  --outer.inner value     a parameter inside an object
  --name a --name b       a list
  --name, --no-name       true, false
  --json OBJECT           all parameters as JSON; @FILE reads a file, - standard input

Examples:
  gatehouse call system.ping
  gatehouse call session.list --kind dm --limit 10
  gatehouse call agents.create --agent-id scout --config.model local/test-model`;
