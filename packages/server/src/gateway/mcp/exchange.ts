import type { Clock } from '../../kernel/clock.ts';
import type { HttpCall } from '../http-call.ts';

/** How long a reader may take nothing of its stream before it counts as gone. */
const stallMs = 30_000;
const taken = /^(?:accept|content-type|last-event-id|mcp-.+)$/;

/** The request as the protocol sees it: without the body, which was read before, and without the secret. Aborted with the call. */
export function toWebRequest(call: HttpCall): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(call.incoming.headers)) if (typeof value === 'string' && taken.test(name)) headers.set(name, value);
  return new Request('http://localhost/mcp', { method: call.incoming.method ?? 'POST', headers, signal: call.signal });
}

interface SendDeps {
  readonly clock: Clock;
  /** True of a stream that ends with the answers to its request; false of one that waits for news. */
  readonly endsItself: boolean;
}

/** Sends what the protocol answers; resolves when it is complete or the client is gone. */
export async function sendWebResponse(call: HttpCall, response: Response, { clock, endsItself }: SendDeps): Promise<void> {
  const { outgoing } = call;
  if (outgoing.destroyed || outgoing.writableEnded) {
    await response.body?.cancel();
    return;
  }
  // The connection is not the protocol's business.
  for (const [name, value] of response.headers) if (name !== 'connection') call.setHeader(name, value);
  const { body } = response;
  if (body === null) {
    call.writeHead(response.status);
    outgoing.end();
  } else if (response.headers.get('content-type')?.startsWith('text/event-stream') === true)
    await sendStream(call, response.status, body, { clock, endsItself });
  else {
    const text = await response.text();
    call.setHeader('content-length', String(Buffer.byteLength(text)));
    call.writeHead(response.status);
    outgoing.end(text);
  }
}

async function sendStream(call: HttpCall, status: number, body: ReadableStream<Uint8Array>, { clock, endsItself }: SendDeps): Promise<void> {
  const { outgoing } = call;
  const reader = body.getReader();
  const leave = (): void => void reader.cancel().catch(() => {});
  outgoing.once('close', leave);
  call.streams = true;
  call.endsItself = endsItself;
  // The protocol has no last words for a stream: what it waits for is ended with it.
  call.endStream = () => {
    // The calls of a request are aborted with it, and their answers end it.
    if (endsItself) return;
    leave();
    outgoing.end();
  };
  call.writeHead(status);
  outgoing.flushHeaders();
  for (;;) {
    const { done, value } = await reader.read();
    if (done || outgoing.destroyed || outgoing.writableEnded) break;
    if (!outgoing.write(value)) await drained(call, clock);
  }
  if (!outgoing.destroyed) outgoing.end();
}

function drained(call: HttpCall, clock: Clock): Promise<void> {
  const { outgoing } = call;
  return new Promise((resolve) => {
    const cancel = clock.after(stallMs, () => call.cut());
    const done = (): void => {
      cancel();
      outgoing.off('drain', done).off('close', done);
      resolve();
    };
    outgoing.on('drain', done).on('close', done);
  });
}
