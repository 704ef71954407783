import { type Command, InvalidArgumentError, Option } from 'commander';
import type { SetExit } from '../../exit-codes.ts';
import type { Io } from '../../io.ts';
import { type CommonFlags, countOption, withConnection } from '../options.ts';

export type SetupFlags = CommonFlags & {
  readonly vendor?: string;
  readonly baseUrl?: string;
  readonly keyEnv?: string;
  readonly keyStdin?: true;
  readonly model?: string;
  readonly template?: string;
  readonly client?: string;
  readonly budget?: number;
  readonly budgetTokens?: number;
};

/** `gatehouse setup`: connects a model, gets a first answer, and offers what comes next. */
export function addSetupCommand(program: Command, io: Io, setExit: SetExit): void {
  withConnection(program.command('setup'))
    .summary('connect a model, get a first answer, and set up the agent')
    .description(
      'Connects a model (vendor, key, a real test, choice of the model) and gets a first answer; then offers a template for the agent, a client to connect and a budget. Starts the daemon while it runs when none does. It can be repeated and interrupted: each step is done whole or not at all.\nWhat a flag says is not asked. Without a terminal nothing is asked: the steps without a flag are skipped. Needs scope *, or the socket of the home folder.',
    )
    .option('--vendor <type>', 'vendor or local server, such as openai, anthropic, ollama or openai-compatible')
    .option('--base-url <url>', 'address of the API; needed for openai-compatible and azure')
    .addOption(new Option('--key-env <name>', 'variable of this environment that holds the key').conflicts('keyStdin'))
    .option('--key-stdin', 'read the key from standard input')
    .option('--model <id>', 'model, as the provider names it (default: the one that was tested)')
    .option('--template <id>', 'give the default agent a template: assistant, researcher, coder or home-operator')
    .option('--client <id>', 'print the command that connects this client, such as codex or openai')
    .addOption(new Option('--budget <usd>', 'US dollars that all agents together may spend in 24 hours').argParser(readDollars))
    .addOption(countOption('--budget-tokens <n>', 'the same in tokens, for models whose price is not known'))
    .action(async (flags: SetupFlags) => {
      const { runSetup } = await import('./run-setup.ts');
      await runSetup(flags, io, setExit);
    });
}

export function readDollars(text: string): number {
  const dollars = Number(text);
  if (/^\d+(\.\d+)?$/.test(text.trim()) && dollars > 0 && dollars <= 1_000_000) return dollars;
  throw new InvalidArgumentError('Expected US dollars, such as 5 or 0.50.');
}
