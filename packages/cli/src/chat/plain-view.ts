import { createInterface } from 'node:readline';
import { type Io, printLine } from '../io.ts';
import { shownText } from './shown-text.ts';
import { type AnswerView, type ChatView, type Choice, MessageQueue } from './view.ts';

/**
 * A chat in plain lines, for screen readers, simple terminals and programs: what was printed never changes. The reader stays
 * open during an answer: in raw mode only the reader receives Ctrl-C, and lines typed ahead are queued.
 */
export function createPlainView(io: Io): ChatView {
  const reader = createInterface({ input: io.stdin, output: io.stdout, prompt: '> ', terminal: io.stdin.isTTY === true && io.stdout.isTTY === true });
  const queue = new MessageQueue();
  let asked: ((line: string | undefined) => void) | undefined;
  let shownActivity: string | undefined;

  const interrupt = () => {
    if (!view.onStop()) reader.close();
  };
  reader.on('SIGINT', interrupt);
  const release = io.onInterrupt(interrupt);
  reader.on('line', (line) => {
    if (asked !== undefined) asked(line.trim());
    else if (!view.onMessage(line)) queue.push(line);
  });
  reader.on('close', () => {
    asked?.(undefined);
    queue.end();
  });

  function ask(prompt: string, signal: AbortSignal): Promise<string | undefined> {
    printLine(io.stderr, prompt);
    return new Promise((resolve) => {
      const finish = (line: string | undefined) => {
        asked = undefined;
        signal.removeEventListener('abort', cancel);
        resolve(line);
      };
      const cancel = () => finish(undefined);
      if (signal.aborted) return cancel();
      signal.addEventListener('abort', cancel, { once: true });
      asked = finish;
    });
  }

  const view: ChatView = {
    onStop: () => false,
    onMessage: () => false,
    complete: () => [],
    get waiting() {
      return queue.size;
    },
    messages: () => queue.read(() => reader.prompt()),
    note: (text) => printLine(io.stderr, text),
    answer: () => createPlainAnswer(io),
    activity(text) {
      // Once for each thing that happens, not for each second of it.
      if (text !== undefined && text !== shownActivity && text !== 'thinking') printLine(io.stderr, text);
      shownActivity = text;
    },
    thinking: () => undefined,
    async choose({ lines, options }: Choice, signal) {
      for (const line of lines) printLine(io.stderr, line);
      const menu = options.map(({ key, label }) => `${key} = ${label}`).join(', ');
      for (;;) {
        const answer = await ask(`${menu}:`, signal);
        if (answer === undefined) return undefined;
        const chosen = options.find(({ key, label }) => answer.toLowerCase() === key || answer.toLowerCase() === label);
        if (chosen !== undefined) return chosen.key;
      }
    },
    restore: () => undefined,
    [Symbol.dispose]() {
      release();
      reader.close();
    },
  };
  return view;
}

function createPlainAnswer(io: Io): AnswerView {
  let endsLine = true;
  return {
    add(text) {
      io.stdout.write(shownText(text, io));
      if (text !== '') endsLine = text.endsWith('\n');
    },
    pause() {
      if (!endsLine) io.stdout.write('\n');
      endsLine = true;
    },
    end: () => void io.stdout.write('\n'),
  };
}
