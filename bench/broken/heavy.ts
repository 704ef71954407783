import { Server } from 'node:http';

// A broken build for the harness to catch: every connection holds HOLD_KB as long as it lives. Loaded with --import before a server.
const held = new WeakMap<object, Buffer>();
const emit = Server.prototype.emit;
Server.prototype.emit = function heavy(this: Server, event: string | symbol, ...args: unknown[]): boolean {
  const [socket] = args;
  if (event === 'connection' && typeof socket === 'object' && socket !== null)
    held.set(socket, Buffer.alloc(Number(process.env['HOLD_KB']) * 1024, 1));
  return Reflect.apply(emit, this, [event, ...args]);
} as typeof emit;
