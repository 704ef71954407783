import { parentPort, workerData } from 'node:worker_threads';
import { Emulator } from './emulator.ts';
import type { FromScreen, ToScreen } from './screen-thread.ts';
import type { TerminalSize } from './pseudo-terminal.ts';

/** Emulates one screen: some sequences take the emulator very long, and an expression of a model may never end. */
const size: TerminalSize = workerData;
const send = (message: FromScreen) => parentPort?.postMessage(message);
const emulator = new Emulator(size, (text) => send({ kind: 'reply', text }));

async function answer(message: ToScreen): Promise<FromScreen> {
  const { id } = message;
  switch (message.kind) {
    case 'output':
      await emulator.write(message.bytes);
      return { kind: 'done', id };
    case 'resize':
      emulator.resize(message.size);
      return { kind: 'done', id };
    case 'mark':
      return { kind: 'mark', id, isApplication: emulator.mark() };
    case 'match':
      return { kind: 'match', id, matches: emulator.matches(message.source) };
    case 'state':
      return { kind: 'state', id, state: emulator.state(message.history) };
    case 'rows':
      return { kind: 'rows', id, ...emulator.rows() };
  }
}

/** Requests are answered in their order, after the output before them. */
let last = Promise.resolve();
parentPort?.on('message', (message: ToScreen) => {
  last = last.then(async () => send(await answer(message)));
});
