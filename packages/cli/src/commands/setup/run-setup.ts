import type { Client } from '@gatehouse/client';
import type { SetExit } from '../../exit-codes.ts';
import { CliError } from '../../failure.ts';
import { type Io, printLine } from '../../io.ts';
import { plainText } from '../../render/plain.ts';
import { shapedText } from '../agent-template.ts';
import { shownText } from '../../chat/shown-text.ts';
import { startInForeground } from '../start.ts';
import { noteFinish, runKeptTurn } from '../../chat/turn.ts';
import { connectModel, type ConnectedModel } from './connect-model.ts';
import { checkLaterFlags, chooseBudget, type ChosenBudget, chooseClient, type ChosenTemplate, chooseTemplate } from './later-steps.ts';
import { interrupted, openPrompts, type Prompts } from './prompts.ts';
import { openDaemon, type RunningDaemon } from './running-daemon.ts';
import type { SetupFlags } from './setup.ts';

const hello = 'Hello! In one or two short sentences: who are you, and what can you do for me?';
/** The conversation that `gatehouse chat` continues. */
const chatSession = 'cli:chat';

interface Outcome {
  readonly model: ConnectedModel;
  readonly answer: string;
  readonly template: ChosenTemplate | null;
  readonly connect: string | null;
  readonly budget: ChosenBudget | null;
  readonly url: string;
}

/** Runs the steps of the setup in order. */
export async function runSetup(flags: SetupFlags, io: Io, setExit: SetExit): Promise<void> {
  await checkLaterFlags(flags);
  const prompts = await openPrompts(io);
  const controller = new AbortController();
  const release = io.onInterrupt(() => controller.abort(interrupted()));
  let keepsRunning: string | undefined;
  try {
    await using daemon = await openDaemon(flags, io, {
      signal: controller.signal,
      onStart: (home) => prompts.note(`Starting the daemon in ${plainText(home)} …`),
    });
    const outcome = await takeSteps(daemon, { flags, io, prompts, signal: controller.signal });
    const isAsked = io.stdin.isTTY === true && flags.output !== 'json';
    if (daemon.isOurs && isAsked && (await keepRunning(prompts))) keepsRunning = daemon.home;
    if (flags.output === 'json') printLine(io.stdout, JSON.stringify(outcome));
    else printLine(io.stderr, nextSteps(outcome, { isRunning: !daemon.isOurs || keepsRunning !== undefined }));
  } catch (error) {
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    release();
  }
  if (keepsRunning !== undefined) await startInForeground(['--home', keepsRunning], io, setExit);
}

interface StepDeps {
  readonly flags: SetupFlags;
  readonly io: Io;
  readonly prompts: Prompts;
  readonly signal: AbortSignal;
}

async function takeSteps({ client, url }: RunningDaemon, deps: StepDeps): Promise<Outcome> {
  const { signal, prompts } = deps;
  const step = { ...deps, client, defaultAgentId: await defaultAgent(client) };
  const model = await connectModel(step);
  signal.throwIfAborted();
  prompts.success(`${model.verdict === 'kept' ? 'Using' : 'Connected'} ${plainText(`${model.provider}/${model.model}`)}.`);
  const answer = await firstAnswer(client, deps);
  const template = await chooseTemplate(step);
  if (template !== undefined)
    prompts.success(
      [`Applied the template ${template.template}.`, ...shapedText(template), `Files for the agent go to ${plainText(template.dir)}.`].join('\n'),
    );
  const connect = await chooseClient(step);
  const budget = await chooseBudget(step, model);
  return { model, answer, template: template ?? null, connect: connect ?? null, budget: budget ?? null, url };
}

async function defaultAgent(client: Client): Promise<string> {
  const { config } = await client.call('config.read', { section: 'routing' });
  const id = typeof config === 'object' && config !== null && 'defaultAgentId' in config ? config.defaultAgentId : undefined;
  return typeof id === 'string' ? id : 'default';
}

/** Sends a first message and shows the answer as it arrives. */
async function firstAnswer(client: Client, { flags, io, prompts, signal }: StepDeps): Promise<string> {
  const isJson = flags.output === 'json';
  prompts.note(`You: ${hello}`);
  const onText = (piece: string) => void (isJson || io.stdout.write(shownText(piece, io)));
  const turn = await runKeptTurn(client, { message: hello, sessionKey: chatSession }, { signal, onText });
  signal.throwIfAborted();
  if (!isJson) io.stdout.write('\n');
  noteFinish(turn, io);
  if (turn.content === '')
    throw new CliError('The model is connected, but its first answer is empty.', {
      code: 'no_answer',
      hint: 'Try `gatehouse chat`, or another model: `gatehouse setup` again.',
    });
  return turn.content;
}

async function keepRunning(prompts: Prompts): Promise<boolean> {
  const next = await prompts.select({
    message: 'The daemon was started for this setup. What now?',
    choices: [
      { value: 'run', label: 'Run it in this terminal', hint: 'Ctrl-C stops it' },
      { value: 'stop', label: 'Stop it', hint: '`gatehouse start` starts it' },
    ],
  });
  return next === 'run';
}

function nextSteps({ connect, budget, url }: Outcome, { isRunning }: { readonly isRunning: boolean }): string {
  const limit =
    budget?.perDayUsd !== undefined
      ? `${budget.perDayUsd} dollars`
      : budget?.perDayTokens !== undefined
        ? `${budget.perDayTokens} tokens`
        : undefined;
  return [
    ...(limit === undefined ? [] : [`All agents together stop at ${limit} in 24 hours.`]),
    'Next:',
    ...(isRunning ? [] : ['  gatehouse start       starts the daemon']),
    '  gatehouse chat        continues the conversation',
    ...(connect === null ? [] : [`  ${connect}`]),
    ...(isRunning && url !== 'http://localhost' ? [`  ${url}/   the dashboard`] : []),
  ].join('\n');
}
