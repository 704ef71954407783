import { createInterface } from 'node:readline';
import { describeFailure } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { plainText, printableText } from '../render/plain.ts';
import { noteFinish, type Turn, type TurnOptions } from './turn.ts';

/** The messages so far, oldest first. */
export type Messages = readonly { readonly role: 'user' | 'assistant'; readonly content: string }[];

export interface Conversation {
  readonly ask: (messages: Messages, options: TurnOptions) => Promise<Turn>;
  /** The model or agent that answers. */
  readonly model: string;
  /** Key of the conversation that the server keeps; absent when it keeps none. */
  readonly session?: () => string;
  /** Starts another kept conversation and returns its key. */
  readonly renew?: () => string;
  /** Marks the last answer of a kept conversation. */
  readonly mark?: (rating: 'good' | 'bad', note: string | undefined) => Promise<void>;
}

/** Prints model output; on a terminal it must not move the cursor or change the reading direction. */
export function shownText(text: string, io: Io): string {
  return io.stdout.isTTY === true ? printableText(text) : text;
}

/**
 * Runs the interactive loop. `/v1` keeps no conversation, so all messages are kept here and sent each time (a kept
 * conversation takes the last one only); a failed turn leaves no trace. The reader stays open during an answer: in raw mode
 * only the reader receives Ctrl-C, and lines typed ahead are queued.
 */
export async function converse({ ask, model, session, renew, mark }: Conversation, io: Io): Promise<void> {
  const help = `/new ${session === undefined ? 'clears the conversation' : 'starts another conversation'}, ${mark === undefined ? '' : '/good or /bad [note] marks the last answer, '}/exit quits, Ctrl-C stops an answer.`;
  const reader = createInterface({ input: io.stdin, output: io.stdout, prompt: '> ', terminal: io.stdin.isTTY === true && io.stdout.isTTY === true });
  let running: AbortController | undefined;
  const interrupt = () => (running === undefined ? reader.close() : running.abort());
  reader.on('SIGINT', interrupt);
  const release = io.onInterrupt(interrupt);
  let messages: Messages = [];

  async function answer(line: string): Promise<void> {
    running = new AbortController();
    messages = await takeTurn(ask, [...messages, { role: 'user', content: line }], running.signal, io);
    running = undefined;
  }

  printLine(io.stderr, `Chatting with ${model}${session === undefined ? ', nothing is kept' : ` in ${plainText(session())}`}. ${help}`);
  reader.prompt();
  try {
    for await (const text of reader) {
      const line = text.trim();
      if (line === '/exit' || line === '/quit') break;
      if (line === '/new') {
        messages = [];
        const key = renew?.();
        printLine(io.stderr, key === undefined ? 'New conversation.' : `New conversation: ${key}. \`gatehouse chat --continue\` continues it.`);
      } else if (mark !== undefined && marking.test(line)) await markAnswer(mark, line, io);
      else if (line.startsWith('/')) printLine(io.stderr, help);
      else if (line !== '') await answer(line);
      reader.prompt();
    }
  } finally {
    release();
    reader.close();
  }
}

const marking = /^\/(good|bad)(?:\s+(.*))?$/s;

async function markAnswer(mark: NonNullable<Conversation['mark']>, line: string, io: Io): Promise<void> {
  const [, rating, note] = marking.exec(line) ?? [];
  try {
    await mark(rating === 'good' ? 'good' : 'bad', note);
    printLine(io.stderr, `Marked as ${rating}.`);
  } catch (error) {
    printLine(io.stderr, `error: ${describeFailure(error).message}`);
  }
}

async function takeTurn(ask: Conversation['ask'], messages: Messages, signal: AbortSignal, io: Io): Promise<Messages> {
  try {
    const turn = await ask(messages, { signal, onText: (piece) => void io.stdout.write(shownText(piece, io)) });
    io.stdout.write('\n');
    noteFinish(turn, io);
    return turn.content === '' ? messages.slice(0, -1) : [...messages, { role: 'assistant', content: turn.content }];
  } catch (error) {
    const { message, hint } = describeFailure(error);
    printLine(io.stderr, `error: ${message}`);
    if (hint !== undefined) printLine(io.stderr, `hint: ${hint}`);
    return messages.slice(0, -1);
  }
}
