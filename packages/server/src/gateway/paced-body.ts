import { AppError } from '../kernel/app-error.ts';
import type { Clock } from '../kernel/clock.ts';
import { lateBody, refuseEncoded, tooLarge } from './body.ts';
import type { HttpCall } from './http-call.ts';

/** In each such time this much must come, or the client holds a place that others need. */
const paceMs = 8_000;
const minBytes = 64 * 1024;

/**
 * The raw body in the pieces in which it comes, for handlers that do not need the whole of it. The next piece is only
 * asked for when the one before was dealt with. Fails with `payload_too_large` beyond `limit`, `timeout` when less than
 * 8 KiB a second come, `cancelled` when the client leaves.
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
    // While we are the slow ones the client is not to blame.
    late = waiting !== undefined && came < minBytes;
    if (late) return wake();
    came = 0;
    cancelPace = clock.after(paceMs, checkPace);
  }
  function wake(): void {
    waiting?.();
    waiting = undefined;
  }
  // The stream's own iterator would destroy the request when its reader stops early, and a refusal is still owed.
  const events = ['readable', 'end', 'error', 'close'] as const;
  for (const event of events) incoming.on(event, wake);
  let size = 0;
  try {
    for (;;) {
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
