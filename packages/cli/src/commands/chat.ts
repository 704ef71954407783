import { text } from 'node:stream/consumers';
import type { Client } from '@gatehouse/client';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { exitCode } from '../exit-codes.ts';
import { usageError } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { type Conversation, converse } from './conversation.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { noteFinish, runKeptTurn, runTurn, type Turn } from './turn.ts';

type ChatFlags = CommonFlags & { readonly agent?: string; readonly model?: string; readonly session?: string };

/** `gatehouse chat`: a conversation in the terminal, or one question and its answer. */
export function addChatCommand(program: Command, io: Io, setExit: (code: number) => void): void {
  withConnection(program.command('chat [text...]'))
    .summary('talk to an agent')
    .description(
      'Talks to an agent. With TEXT, or with standard input from a pipe, one question is answered and printed; `-` inside TEXT stands for standard input.\nCtrl-C stops the answer that is being written, a second one ends.',
    )
    .option('--agent <id>', 'agent to talk to (default: default)')
    .option('--model <name>', 'model of the default agent instead, as provider/model or model')
    .option('--session <key>', 'in this conversation, which the daemon keeps, such as ada:desk')
    .action(async (words: string[], flags: ChatFlags) => {
      if (flags.agent !== undefined && flags.model !== undefined) throw usageError('Give --agent or --model, not both: an agent has its own model.');
      if (flags.session !== undefined && flags.model !== undefined)
        throw usageError('Give --session or --model, not both: the agent of a kept conversation has its own model.');
      const question = await readQuestion(words, io);
      const { client } = await connect(flags, io);
      const talk = talkTo(client, flags);
      if (question === undefined) return await converse(talk, io);
      const turn = await answerOnce(talk, question, flags, io);
      if (turn.wasStopped) setExit(exitCode.interrupted);
    });
}

/** Completions, with all that was said in each request; or turns of a conversation that the daemon keeps. */
function talkTo(client: Client, { agent, model = `agent/${agent ?? 'default'}`, session }: ChatFlags): Conversation {
  if (session === undefined) return { model, ask: (messages, options) => runTurn(client, { model, messages: [...messages] }, options) };
  const address = { sessionKey: session, ...(agent === undefined ? {} : { agentId: agent }) };
  return { model, isKept: true, ask: (messages, options) => runKeptTurn(client, { message: messages.at(-1)?.content ?? '', ...address }, options) };
}

/** Undefined when a person sits at the terminal and gave no text. */
async function readQuestion(words: readonly string[], io: Io): Promise<string | undefined> {
  if (words.length === 0 && io.stdin.isTTY === true) return undefined;
  // Standard input is read only when asked for: a pipe that nobody closes would hang a call with text.
  const needsInput = words.length === 0 || words.includes('-');
  const input = needsInput ? (await text(io.stdin)).trim() : '';
  const question = words.length === 0 ? input : words.map((word) => (word === '-' ? `\n\n${input}` : word)).join(' ');
  if (question.trim() === '') throw usageError('There is nothing to ask: the text is empty.');
  return question.trim();
}

async function answerOnce({ ask, model }: Conversation, question: string, flags: ChatFlags, io: Io): Promise<Turn> {
  const isJson = flags.output === 'json';
  const controller = new AbortController();
  const release = io.onInterrupt(() => controller.abort());
  const onText = (piece: string) => void (isJson || io.stdout.write(piece));
  const turn = await ask([{ role: 'user', content: question }], { signal: controller.signal, onText }).finally(release);
  if (isJson)
    printLine(io.stdout, JSON.stringify({ model, content: turn.content, finishReason: turn.finishReason ?? null, usage: turn.usage ?? null }));
  else io.stdout.write('\n');
  noteFinish(turn, io);
  return turn;
}
