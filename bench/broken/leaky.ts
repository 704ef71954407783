import { Server } from 'node:http';

// A broken build for the harness to catch: LEAK_KB of every request are never freed. Loaded with --import before a server.
const kept: Buffer[] = [];
const emit = Server.prototype.emit;
Server.prototype.emit = function leaking(this: Server, event: string | symbol, ...args: unknown[]): boolean {
  if (event === 'request') kept.push(Buffer.alloc(Number(process.env['LEAK_KB']) * 1024, 1));
  return Reflect.apply(emit, this, [event, ...args]);
} as typeof emit;
