import { type IncomingMessage, Server, type ServerResponse } from 'node:http';

// A broken build for the harness to catch: a webhook costs HOOK_US of CPU more, LATE_US more when LATE_FROM came before it, and is
// answered ANSWER_MS late, as if it waited for its turn. Loaded with --import before the daemon.
const given = (name: string): number => Number(process.env[name] ?? 0);
const hookMs = given('HOOK_US') / 1000;
const lateMs = given('LATE_US') / 1000;
const lateFrom = given('LATE_FROM');
const answerMs = given('ANSWER_MS');
let hooks = 0;
const emit = Server.prototype.emit;
Server.prototype.emit = function slowed(this: Server, event: string | symbol, ...args: unknown[]): boolean {
  const [request, response] = args as [IncomingMessage, ServerResponse];
  if (event !== 'request' || request.url?.startsWith('/hooks/') !== true) return Reflect.apply(emit, this, [event, ...args]);
  hooks += 1;
  for (const end = performance.now() + hookMs + (hooks > lateFrom ? lateMs : 0); performance.now() < end;);
  const { end } = response;
  response.end = ((...last: unknown[]) => {
    setTimeout(() => Reflect.apply(end, response, last), answerMs);
    return response;
  }) as typeof end;
  return Reflect.apply(emit, this, [event, ...args]);
} as typeof emit;
