import { Socket } from 'node:net';

// A broken build for the harness to catch: every write to a socket costs WRITE_US of CPU more. Loaded with --import before a server.
const busyMs = Number(process.env['WRITE_US']) / 1000;
const write = Socket.prototype.write;
Socket.prototype.write = function slowed(this: Socket, ...args: unknown[]): boolean {
  for (const end = performance.now() + busyMs; performance.now() < end;);
  return Reflect.apply(write, this, args);
};
