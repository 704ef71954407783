import { createInterface } from 'node:readline';
import { describeFailure } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { plainText, printableText } from '../render/plain.ts';
import { noteFinish, type Turn, type TurnOptions } from './turn.ts';

/** What was said so far, oldest first. */
export type Messages = readonly { readonly role: 'user' | 'assistant'; readonly content: string }[];

export interface Conversation {
  readonly ask: (messages: Messages, options: TurnOptions) => Promise<Turn>;
  /** Who answers. */
  readonly model: string;
  /** The conversation that the server keeps; absent where it keeps none. */
  readonly session?: () => string;
  /** Starts another conversation that the server keeps and returns its key. */
  readonly renew?: () => string;
}

/** What a model wrote: on a terminal nothing of it may move the cursor or turn the reading direction. */
export function shownText(text: string, io: Io): string {
  return io.stdout.isTTY === true ? printableText(text) : text;
}

/**
 * The interactive loop. `/v1` keeps no conversation, so the messages are kept here and sent whole each time (one that
 * the server keeps takes the last of them); a turn that failed leaves no trace in them. The reader stays open while an answer is written: in raw mode Ctrl-C reaches
 * only it, and lines typed ahead wait their turn.
 */
export async function converse({ ask, model, session, renew }: Conversation, io: Io): Promise<void> {
  const help = `/new ${session === undefined ? 'forgets the conversation' : 'starts another conversation'}, /exit ends, Ctrl-C stops an answer.`;
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

  printLine(io.stderr, `Talking to ${model}${session === undefined ? ', nothing is kept' : ` in ${plainText(session())}`}. ${help}`);
  reader.prompt();
  try {
    for await (const text of reader) {
      const line = text.trim();
      if (line === '/exit' || line === '/quit') break;
      if (line === '/new') {
        messages = [];
        const key = renew?.();
        printLine(io.stderr, key === undefined ? 'A new conversation.' : `A new conversation: ${key}. \`gatehouse chat --continue\` continues it.`);
      } else if (line.startsWith('/')) printLine(io.stderr, help);
      else if (line !== '') await answer(line);
      reader.prompt();
    }
  } finally {
    release();
    reader.close();
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
