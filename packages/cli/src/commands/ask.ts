import { randomBytes } from 'node:crypto';
import { basename, resolve } from 'node:path';
import type { Client } from '@gatehouse/client';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { KeptConversation } from '../chat/conversation.ts';
import { followConversations } from '../chat/live.ts';
import { shownText } from '../chat/shown-text.ts';
import { noteFinish, type Turn } from '../chat/turn.ts';
import { connect } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { CliError, usageError } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { openFile } from './open-file.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { readQuestion } from './read-question.ts';

type AskFlags = CommonFlags & {
  readonly agent?: string;
  readonly session?: string;
  readonly files?: readonly string[];
  readonly timeout?: number;
};

/** Limit of the daemon. */
const maxFiles = 5;
/** 24 days: a timer of more runs at once. */
const maxTimerMs = 2 ** 31 - 1;

/** `gatehouse ask`: one question and its answer, for scripts. */
export function addAskCommand(program: Command, io: Io, setExit: SetExit): void {
  withConnection(program.command('ask [text...]'))
    .summary('ask one question, for scripts')
    .description(
      'Asks one question in a new conversation and prints the answer. Without TEXT, standard input is the question; `-` in TEXT stands for standard input.\nExits with 0 for a complete answer, 5 for one that ended early, 1 for a failure; `gatehouse --help` lists all exit codes. With --json, prints one object: answer, finishReason, usage, agentId, sessionKey, conversationRef, traceId.',
    )
    .option('--agent <id>', 'agent to ask (default: default)')
    .option('--session <key>', 'continue a conversation, by session key such as ada:desk or by reference (cv_…)')
    .option('--files <file...>', `files that belong to the question, at most ${maxFiles}; write them after the question`)
    .addOption(
      new Option('--timeout <seconds>', 'stop the turn when it has not ended by then').argParser((text) => {
        const seconds = Number(text);
        if (!(seconds > 0)) throw new InvalidArgumentError('Expected a number greater than 0.');
        return seconds;
      }),
    )
    .action(async (words: string[], flags: AskFlags) => {
      const { files = [] } = flags;
      if (files.length > maxFiles) throw usageError(`--files: at most ${maxFiles} files.`);
      const question = await readQuestion(words, io);
      if (question === undefined) throw usageError('The question is missing.', '`gatehouse chat` asks for messages.');
      const { client } = await connect(flags, io);
      const attachments = await Promise.all(files.map((file) => upload(client, file, io)));
      const turn = await ask(client, { question, attachments, flags }, io);
      if (turn.wasStopped) setExit(exitCode.interrupted);
      else if (turn.finishReason !== 'stop' && turn.finishReason !== 'command') setExit(exitCode.incomplete);
    });
}

interface Question {
  readonly question: string;
  readonly attachments: readonly { readonly mediaId: string }[];
  readonly flags: AskFlags;
}

async function ask(client: Client, { question, attachments, flags }: Question, io: Io): Promise<Turn> {
  const { agent, session, timeout, output } = flags;
  const isJson = output === 'json';
  const name = session ?? `ask:${randomBytes(9).toString('base64url').toLowerCase().replaceAll('_', '-')}`;
  const conversation = new KeptConversation(client, { agentId: agent, name }, io);
  if (session !== undefined) await conversation.open();
  const controller = new AbortController();
  const following = new AbortController();
  const release = io.onInterrupt(() => controller.abort());
  let isLate = false;
  const timer = timeout === undefined ? undefined : setTimeout(() => ((isLate = true), controller.abort()), Math.min(timeout * 1000, maxTimerMs));
  await noteApprovals(client, conversation, io, following.signal);
  let turn: Turn;
  try {
    const onText = (piece: string) => void (isJson || io.stdout.write(shownText(piece, io)));
    turn = await conversation.ask(question, { signal: controller.signal, onText, attachments });
  } finally {
    release();
    clearTimeout(timer);
    following.abort();
  }
  if (isLate) throw new CliError(`No complete answer within ${timeout} s.`, { code: 'timeout' });
  if (isJson) printLine(io.stdout, JSON.stringify(resultOf(turn, conversation)));
  else io.stdout.write('\n');
  noteFinish(turn, io);
  return turn;
}

function resultOf({ content, finishReason, usage, traceId, conversationRef }: Turn, { agentId, name }: KeptConversation): object {
  return {
    answer: content,
    finishReason: finishReason ?? null,
    usage: usage ?? null,
    agentId,
    sessionKey: name.startsWith('cv_') ? null : name,
    conversationRef: conversationRef ?? null,
    traceId: traceId ?? null,
  };
}

/** Says on standard error that a call waits for a person: nobody would know why the answer does not come. */
async function noteApprovals(client: Client, conversation: KeptConversation, io: Io, signal: AbortSignal): Promise<void> {
  const ready = Promise.withResolvers<void>();
  void followConversations(
    client,
    {
      watched: () => [conversation.watched],
      onReady: ready.resolve,
      onConnection: () => ready.resolve(),
      onEvent({ kind, payload }) {
        if (kind !== 'approval:requested') return;
        printLine(io.stderr, `waiting for an approval: ${plainText(payload.action)}; \`gatehouse approvals approve ${payload.requestId}\` allows it`);
      },
    },
    signal,
  );
  await ready.promise;
}

async function upload(client: Client, file: string, io: Io): Promise<{ readonly mediaId: string }> {
  const path = resolve(io.workingDir, file);
  const { mediaId } = await client.upload(await openFile(path), { fileName: basename(path) });
  return { mediaId };
}
