import { createInterface } from 'node:readline';
import type { ChatRequest } from '@gatehouse/client';
import { describeFailure } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { noteFinish, type Turn, type TurnOptions } from './turn.ts';

type Messages = ChatRequest['messages'];

export interface Conversation {
  readonly ask: (messages: Messages, options: TurnOptions) => Promise<Turn>;
  readonly model: string;
}

const help = '/new forgets the conversation, /exit ends, Ctrl-C stops an answer.';

/**
 * The interactive loop. `/v1` keeps no conversation, so the messages are kept here and sent whole each time; a turn
 * that failed leaves no trace in them. The reader stays open while an answer is written: in raw mode Ctrl-C reaches
 * only it, and lines typed ahead wait their turn.
 */
export async function converse({ ask, model }: Conversation, io: Io): Promise<void> {
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

  printLine(io.stderr, `Talking to ${model}. ${help}`);
  reader.prompt();
  try {
    for await (const text of reader) {
      const line = text.trim();
      if (line === '/exit' || line === '/quit') break;
      if (line === '/new') messages = [];
      if (line.startsWith('/')) printLine(io.stderr, line === '/new' ? 'A new conversation.' : help);
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
    const turn = await ask(messages, { signal, onText: (piece) => void io.stdout.write(piece) });
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
