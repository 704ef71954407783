import type { Clock } from '../../kernel/clock.ts';
import { drained } from '../drained.ts';
import type { HttpCall } from '../http-call.ts';

/** How long a reader may read nothing of its stream before it counts as gone. */
const stallMs = 30_000;
const taken = /^(?:accept|content-type|last-event-id|mcp-.+)$/;

/** Returns the request as the protocol sees it: without the body, which was already read, and without the secret. Aborted with the call. */
export function toWebRequest(call: HttpCall): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(call.incoming.headers)) if (typeof value === 'string' && taken.test(name)) headers.set(name, value);
  return new Request('http://localhost/mcp', { method: call.incoming.method ?? 'POST', headers, signal: call.signal });
}

interface SendDeps {
  readonly clock: Clock;
  /** True for a stream that ends with the responses to its request; false for one that only carries notifications. */
  readonly endsItself: boolean;
}

/** Sends the protocol's response; resolves when it is complete or the client is gone. */
export async function sendWebResponse(call: HttpCall, response: Response, { clock, endsItself }: SendDeps): Promise<void> {
  const { outgoing } = call;
  if (outgoing.destroyed || outgoing.writableEnded) {
    await response.body?.cancel();
    return;
  }
  // The protocol does not control the connection.
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
  // The protocol has no final event for a stream: whatever it waits for ends with it.
  call.endStream = () => {
    // The calls of a request are aborted with it, and their responses end it.
    if (endsItself) return;
    leave();
    outgoing.end();
  };
  call.writeHead(status);
  outgoing.flushHeaders();
  for (;;) {
    const { done, value } = await reader.read();
    if (done || outgoing.destroyed || outgoing.writableEnded) break;
    if (!outgoing.write(value)) await drained(call, clock, stallMs);
  }
  if (!outgoing.destroyed) outgoing.end();
}
