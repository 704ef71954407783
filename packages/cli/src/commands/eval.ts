import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@gatehouse/client';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { connect } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { CliError, usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { type Evaluated, evaluationText, junitText } from './eval-text.ts';
import { untilInterrupted } from './interrupt.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';

type EvalFlags = CommonFlags & {
  agent?: string;
  against: string[];
  model: string[];
  concurrency?: number;
  budget?: number;
  junit?: string;
  casesOf?: string;
};

/** Each poll is one of the hundred calls that a token has per minute. */
const pollMs = 1000;
const pageCases = 50;

const collect = (value: string, before: string[]): string[] => [...before, value];

/** `gatehouse eval`: asks the questions of test cases and checks the answers. */
export function addEvalCommand(program: Command, io: Io, setExit: SetExit): void {
  withConnection(program.command('eval [file]'))
    .summary('run test cases against an agent')
    .description(
      'Asks the questions of FILE (YAML or JSON), checks the answers, and compares agents or models side by side. The turns have no effects: tools that change or reach something are refused.\nExit code 0: everything passed; 1: an answer did not pass, or the evaluation ended early; 2: FILE or flags are invalid.\n--cases-of prints test cases made of earlier answers instead.',
    )
    .option('--agent <id>', 'agent to ask (default: `agent` of the file, then the default agent)')
    .option('--against <id>', 'compare with this agent; repeatable', collect, [])
    .option('--model <name>', 'compare with the agent on this model, as provider/model or model; repeatable', collect, [])
    .addOption(countOption('--concurrency <n>', 'questions at the same time, at most 8 (default: `concurrency` of the file, then 2)'))
    .addOption(new Option('--budget <usd>', 'ask nothing more once the cost reaches it (default: `budgetUsd` of the file)').argParser(readUsd))
    .option('--junit <file>', 'also write the results in the format of JUnit')
    .option('--cases-of <what>', 'print test cases made of a turn (tn_…), a trace, or answers that were marked: good, bad, marked')
    .addHelpText('after', fileHelp)
    .action(async (file: string | undefined, flags: EvalFlags) => {
      if (flags.casesOf !== undefined) return await printCases(file, flags.casesOf, flags, io);
      if (file === undefined) throw usageError('FILE is missing.', '`gatehouse eval --cases-of good` makes a first one.');
      await evaluate(file, flags, io, setExit);
    });
}

const fileHelp = `
FILE:
  name, agent, model, concurrency, budgetUsd   optional
  cases:
    - name: refund
      input: Can I return shoes after 20 days?
      system, history [{role, content}], reference   optional
      checks: any of contains, notContains, regex, jsonSchema, toolCalled, toolNotCalled,
              maxCostUsd, maxLatencyMs, judge {rubric, model}`;

function readUsd(text: string): number {
  const value = Number(text);
  if (!/^\d*\.?\d+$/.test(text) || value <= 0) throw new InvalidArgumentError('Expected US dollars, such as 0.5.');
  return value;
}

async function evaluate(given: string, flags: EvalFlags, io: Io, setExit: SetExit): Promise<void> {
  // Loaded only here, with the schema of the file.
  const { readEvalFile } = await import('./eval-file.ts');
  const file = await readEvalFile(given, io);
  const agentId = flags.agent ?? file.agent;
  const variants = [
    { agentId, model: file.model },
    ...flags.against.map((id) => ({ agentId: id })),
    ...flags.model.map((model) => ({ agentId, model })),
  ];
  const { client } = await connect(flags, io);
  const { evalId } = await client.call('eval.run', {
    name: file.name,
    cases: file.cases,
    variants,
    concurrency: flags.concurrency ?? file.concurrency,
    budgetUsd: flags.budget ?? file.budgetUsd,
  });
  let isDone = false;
  await untilInterrupted(io, setExit, async (signal) => {
    await follow(client, evalId, flags, io, signal);
    isDone = true;
  });
  if (!isDone) await client.call('eval.stop', { evalId });
  const evaluated = await readAll(client, evalId);
  if (flags.junit !== undefined) await writeReport(resolve(io.workingDir, flags.junit), junitText(evaluated));
  print(io, flags, evaluated, evaluationText);
  const { run } = evaluated;
  if (isDone && (run.state !== 'completed' || run.variants.some(({ passed }) => passed < run.cases))) setExit(exitCode.failed);
}

/** Waits for the end, with a counter that is overwritten in a terminal. */
async function follow(client: Client, evalId: string, { output }: EvalFlags, io: Io, signal: AbortSignal): Promise<void> {
  const shows = io.stderr.isTTY === true && output !== 'json';
  for (;;) {
    signal.throwIfAborted();
    const { run } = await client.call('eval.get', { evalId, limit: 1 }, { signal });
    const left = run.variants.reduce((sum, { pending }) => sum + pending, 0);
    const total = run.cases * run.variants.length;
    if (shows) io.stderr.write(`\r${total - left} of ${total} answers\x1b[K`);
    if (run.state !== 'running') break;
    await pause(pollMs, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
  if (shows) io.stderr.write('\r\x1b[K');
}

async function readAll(client: Client, evalId: string): Promise<Evaluated> {
  const first = await client.call('eval.get', { evalId, limit: pageCases });
  const cases = [...first.cases];
  while (cases.length < first.total) {
    const page = await client.call('eval.get', { evalId, limit: pageCases, offset: cases.length });
    if (page.cases.length === 0) break;
    cases.push(...page.cases);
  }
  return { run: first.run, cases };
}

async function writeReport(path: string, text: string): Promise<void> {
  await writeFile(path, text).catch((error: unknown) => {
    throw new CliError(`Cannot write ${path}: ${error instanceof Error ? error.message : String(error)}`);
  });
}

async function printCases(file: string | undefined, what: string, flags: EvalFlags, io: Io): Promise<void> {
  if (file !== undefined) throw usageError('--cases-of takes no FILE.', 'It prints to standard output.');
  const { client } = await connect(flags, io);
  const isMark = what === 'good' || what === 'bad' || what === 'marked';
  const made = await client.call(
    'eval.cases',
    isMark ? { ...(what !== 'marked' && { rating: what }), ...(flags.agent !== undefined && { agentId: flags.agent }) } : { ref: what },
  );
  print(io, flags, made.cases, () => made.yaml.trimEnd());
}
