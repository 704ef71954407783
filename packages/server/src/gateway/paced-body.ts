import { AppError } from '../kernel/app-error.ts';
import type { Clock } from '../kernel/clock.ts';
import { lateBody, refuseEncoded, tooLarge } from './body.ts';
import type { HttpCall } from './http-call.ts';

/** This much must arrive per period, or the client holds a slot that others need. */
const paceMs = 8_000;
const minBytes = 64 * 1024;

/**
 * Yields the raw body in chunks as they arrive, for handlers that do not need all of it at once. Requests the next chunk only
 * after the previous one was processed. Fails with `payload_too_large` beyond `limit`, `timeout` when less than
 * 8 KiB a second arrive, `cancelled` when the client disconnects.
 */
export async function* pacedBody(call: HttpCall, { limit, clock }: { readonly limit: number; readonly clock: Clock }): AsyncGenerator<Buffer> {
  const { incoming } = call;
  refuseEncoded(call);
  if (call.expectsContinue) {
    call.outgoing.writeContinue();
    call.expectsContinue = false;
  }
  call.readsBody = true;
  let waiting: (() => void) | undefined;
  let came = 0;
  let late = false;
  let cancelPace = clock.after(paceMs, checkPace);
  function checkPace(): void {
    // While the server is the slow side the client is not to blame.
    late = waiting !== undefined && came < minBytes;
    if (late) return wake();
    came = 0;
    cancelPace = clock.after(paceMs, checkPace);
  }
  function wake(): void {
    waiting?.();
    waiting = undefined;
  }
  // The stream's own iterator would destroy the request when its reader stops early, and a refusal must still be sent.
  const events = ['readable', 'end', 'error', 'close'] as const;
  for (const event of events) incoming.on(event, wake);
  let size = 0;
  try {
    for (;;) {
      if (call.endedBy !== undefined) throw call.endedBy;
      const chunk: Buffer | null = incoming.read();
      if (chunk !== null) {
        came += chunk.length;
        size += chunk.length;
        if (size > limit) throw tooLarge(limit);
        yield chunk;
        continue;
      }
      if (incoming.readableEnded) return;
      if (incoming.destroyed) throw new AppError('cancelled', 'The client left before its request was complete');
      if (late) throw lateBody(call);
      await new Promise<void>((resolve) => {
        waiting = resolve;
      });
    }
  } finally {
    cancelPace();
    for (const event of events) incoming.off(event, wake);
  }
}
