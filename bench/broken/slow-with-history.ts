import { IncomingMessage } from 'node:http';

// A broken build for the harness to catch: a turn of a long conversation costs SLOW_MS of CPU more. Loaded with --import before the daemon.
const busyMs = Number(process.env['SLOW_MS']);
const push = IncomingMessage.prototype.push;
IncomingMessage.prototype.push = function slowed(this: IncomingMessage, chunk: unknown, encoding?: BufferEncoding): boolean {
  if (chunk instanceof Uint8Array && Buffer.from(chunk).includes('"sessionKey":"long-'))
    for (const end = performance.now() + busyMs; performance.now() < end;);
  return Reflect.apply(push, this, [chunk, encoding]);
} as typeof push;
