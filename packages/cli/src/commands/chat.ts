import type { Client } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { usageError } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { type Conversation, defaultSession, KeptConversation, StatelessConversation, terminalKeys } from '../chat/conversation.ts';
import { shownText } from '../chat/shown-text.ts';
import { noteFinish, type Turn } from '../chat/turn.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';
import { readQuestion } from './read-question.ts';
import { sessionTable } from './sessions-text.ts';

type ChatFlags = CommonFlags & {
  readonly agent?: string;
  readonly model?: string;
  readonly session?: string;
  readonly continue?: true;
  readonly list?: true;
  readonly stateless?: true;
  readonly plain?: true;
};

/** Page limit of the daemon. */
const maxListed = 200;

/** `gatehouse chat`: a conversation in the terminal, or one question and its answer. */
export function addChatCommand(program: Command, io: Io, setExit: SetExit): void {
  withConnection(program.command('chat [text...]'))
    .summary('chat with an agent')
    .description(
      'Chats with an agent in a conversation that the daemon keeps; the next `gatehouse chat` continues it. With TEXT, or piped standard input, answers one question; `-` in TEXT stands for standard input.\nEsc or Ctrl-C stops the current answer, Ctrl-C twice exits, /help shows commands and keys.',
    )
    .option('--agent <id>', 'agent to chat with (default: default)')
    .option('--session <key>', 'use this conversation, by session key such as ada:desk or by reference (cv_…)')
    .option('--continue', 'continue the terminal conversation that was used last')
    .option('--list', 'list the terminal conversations with this agent')
    .option('--stateless', 'keep nothing: each question resends the history, and tools that change something are refused')
    .option('--model <name>', 'override the model of the default agent, as provider/model or model; keeps nothing')
    .option('--plain', 'print plain lines only, for screen readers: nothing is redrawn, Markdown stays as it is')
    .action(async (words: string[], flags: ChatFlags) => {
      if (flags.agent !== undefined && flags.model !== undefined)
        throw usageError('--agent and --model are mutually exclusive: an agent has its own model.');
      if (flags.session !== undefined && flags.model !== undefined)
        throw usageError('--session and --model are mutually exclusive: the agent of a kept conversation has its own model.');
      const targets = ['session', 'continue', 'list', 'stateless'] as const;
      const given = targets.filter((name) => flags[name] !== undefined);
      if (given.length > 1) throw usageError(`${given.map((name) => `--${name}`).join(' and ')} are mutually exclusive.`);
      if (flags.list === true) return await listConversations(flags, io);
      const question = await readQuestion(words, io);
      const { client } = await connect(flags, io);
      const conversation = await openConversation(client, flags, io);
      if (question === undefined) return await chat(client, conversation, flags, io);
      const turn = await answerOnce(conversation, question, flags, io);
      if (turn.wasStopped) setExit(exitCode.interrupted);
    });
}

/** Returns how to send turns: in a conversation that the daemon keeps, or as stateless completions with the full history. */
async function openConversation(client: Client, flags: ChatFlags, io: Io): Promise<Conversation> {
  const { agent, model = `agent/${agent ?? 'default'}`, stateless } = flags;
  if (stateless === true || flags.model !== undefined) return new StatelessConversation(client, model);
  const name = flags.continue === true ? await newestConversation(client, flags) : (flags.session ?? defaultSession);
  const conversation = new KeptConversation(client, { agentId: agent, name }, io);
  // A short reference is looked up.
  if (name.startsWith('cv_')) await conversation.open();
  return conversation;
}

async function chat(client: Client, conversation: Conversation, { plain, continue: recalls }: ChatFlags, io: Io): Promise<void> {
  // Only a chat loads the parser of Markdown and the screen.
  const [{ converse }, { createPlainView }, { rawInputOf, ScreenView }, { openHistory }] = await Promise.all([
    import('../chat/converse.ts'),
    import('../chat/plain-view.ts'),
    import('../chat/screen-view.ts'),
    import('../chat/history.ts'),
  ]);
  const input = plain === true ? undefined : rawInputOf(io);
  const view = input === undefined ? createPlainView(io) : new ScreenView(io, input, openHistory(io));
  await converse({ client, conversation, view, io, isRich: input !== undefined, recalls: recalls === true });
}

/** Lists own conversations, newest first: an admin would also see those of other users. */
async function conversationsOf(client: Client, { agent }: ChatFlags): Promise<Result<'session.list'>> {
  const listed = await client.call('session.list', { kind: 'dm', limit: maxListed, agentId: agent });
  const sessions = listed.sessions.filter(({ sessionKey }) => sessionKey.startsWith(terminalKeys));
  return { ...listed, sessions, total: sessions.length };
}

async function listConversations(flags: ChatFlags, io: Io): Promise<void> {
  const { client } = await connect(flags, io);
  const listed = await conversationsOf(client, flags);
  print(io, flags, listed, sessionTable);
}

async function newestConversation(client: Client, flags: ChatFlags): Promise<string> {
  const [newest] = (await conversationsOf(client, flags)).sessions;
  if (newest === undefined) throw usageError('No terminal conversation to continue.', '`gatehouse chat` starts one.');
  return newest.conversationRef;
}

async function answerOnce(conversation: Conversation, question: string, flags: ChatFlags, io: Io): Promise<Turn> {
  const isJson = flags.output === 'json';
  const controller = new AbortController();
  const release = io.onInterrupt(() => controller.abort());
  const onText = (piece: string) => void (isJson || io.stdout.write(shownText(piece, io)));
  const turn = await conversation.ask(question, { signal: controller.signal, onText }).finally(release);
  if (isJson)
    printLine(
      io.stdout,
      JSON.stringify({ model: conversation.model, content: turn.content, finishReason: turn.finishReason ?? null, usage: turn.usage ?? null }),
    );
  else io.stdout.write('\n');
  noteFinish(turn, io);
  return turn;
}
