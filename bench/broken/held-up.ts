import { type IncomingMessage, Server } from 'node:http';
import { isMainThread } from 'node:worker_threads';

// A broken build for the harness to catch: turns of callers wait WAIT_MS while other work runs, KEEP_KB of each are never freed,
// and ten times a second the event loop is blocked for BLOCK_MS. Loaded with --import before the daemon.
const given = (name: string): number => Number(process.env[name]);
const [waitMs, keepKb, blockMs] = [given('WAIT_MS'), given('KEEP_KB'), given('BLOCK_MS')];
const kept: Buffer[] = [];
const emit = Server.prototype.emit;
Server.prototype.emit = function late(this: Server, event: string | symbol, ...args: unknown[]): boolean {
  const [request] = args as [IncomingMessage];
  if (event !== 'request' || request.url !== '/api/chat') return Reflect.apply(emit, this, [event, ...args]);
  kept.push(Buffer.alloc(keepKb * 1024, 1));
  setTimeout(() => Reflect.apply(emit, this, [event, ...args]), waitMs);
  return true;
} as typeof emit;
if (isMainThread)
  setInterval(() => {
    for (const end = performance.now() + blockMs; performance.now() < end;);
  }, 100).unref();
