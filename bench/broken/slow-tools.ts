import { Socket } from 'node:net';

// A broken build for the harness to catch: offering tools to a model costs SLOW_MS of CPU more. Loaded with --import before the daemon.
const busyMs = Number(process.env['SLOW_MS']);
const write = Socket.prototype.write;
Socket.prototype.write = function slowed(this: Socket, ...args: unknown[]): boolean {
  const [part] = args;
  const text = typeof part === 'string' ? part : part instanceof Uint8Array ? Buffer.from(part).toString('latin1') : '';
  if (text.includes('"tools":[{')) for (const end = performance.now() + busyMs; performance.now() < end;);
  return Reflect.apply(write, this, args);
};
