import { Server } from 'node:http';

// A broken build for the harness to catch: every request costs SLOW_MS of CPU more. Loaded with --import before a server.
const busyMs = Number(process.env['SLOW_MS']);
const emit = Server.prototype.emit;
Server.prototype.emit = function slowed(this: Server, event: string | symbol, ...args: unknown[]): boolean {
  if (event === 'request') {
    const before = process.threadCpuUsage();
    for (let used = 0; used < busyMs * 1_000;) {
      const { user, system } = process.threadCpuUsage(before);
      used = user + system;
    }
  }
  return Reflect.apply(emit, this, [event, ...args]);
} as typeof emit;
