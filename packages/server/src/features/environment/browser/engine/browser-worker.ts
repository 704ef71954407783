import { parentPort, workerData } from 'node:worker_threads';
import { chromium } from 'playwright-core';
import { AppError } from '../../../../kernel/app-error.ts';
import { Driver } from './driver.ts';
import { sentenceOf } from './page-time.ts';
import type { DriverOptions, FromThread, RequestName, ToThread } from './protocol.ts';

/** Drives one browser: what pages send is parsed here, where it holds up nobody else. */
const options: DriverOptions = workerData;
const post = (message: FromThread) => parentPort?.postMessage(message);

const connectMs = 20_000;

interface Transport {
  send(message: object): void;
  close(): void;
  onmessage?: (message: object) => void;
  onclose?: (reason?: string) => void;
}

const transport: Transport = {
  send: (message) => post({ kind: 'send', text: JSON.stringify(message) }),
  close: () => {},
};

/**
 * Messages are separated by NUL characters. Each is delivered in a separate task, as Playwright does it itself: what continues after one
 * must be done before the next, or a page that just opened is missed.
 */
let parts: Buffer[] = [];
function receive(bytes: Uint8Array): void {
  let rest = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = rest.indexOf(0); at >= 0; at = rest.indexOf(0)) {
    parts.push(rest.subarray(0, at));
    const text = Buffer.concat(parts).toString('utf8');
    parts = [];
    rest = rest.subarray(at + 1);
    setImmediate(() => transport.onmessage?.(JSON.parse(text)));
  }
  if (rest.length > 0) parts.push(rest);
  post({ kind: 'read', bytes: bytes.byteLength });
}

const started = chromium
  .connectOverCDP(transport, { isLocal: true, artifactsDir: options.artifactsDir, timeout: connectMs })
  .then((browser) => Driver.start(browser, options, post));
started.then(
  ({ chromeVersion }) => post({ kind: 'ready', chromeVersion }),
  (error: unknown) => post({ kind: 'failed', message: sentenceOf(error) }),
);

async function answer(id: number, name: RequestName, args: never): Promise<void> {
  try {
    const driver = await started;
    post({ kind: 'answer', id, result: await driver[name](args) });
  } catch (error) {
    const known = error instanceof AppError ? error : new AppError('unavailable', sentenceOf(error));
    const { param } = known.details;
    post({ kind: 'error', id, code: known.code, message: known.message, ...(param !== undefined && { param }) });
  }
}

parentPort?.on('message', (message: ToThread) => {
  if (message.kind === 'bytes') receive(message.bytes);
  else if (message.kind === 'gone') transport.onclose?.('the browser is gone');
  else if (message.kind === 'ask') void answer(message.id, message.name, message.args as never);
});
