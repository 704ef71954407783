import { toAppError } from '../kernel/app-error.ts';
import type { Log } from '../kernel/log.ts';
import type { HttpCall } from './http-call.ts';
import { logFailure, sendError } from './reply.ts';
import type { SseWriter } from './sse-writer.ts';

/** Ends a streamed response with a failure: as a status while nothing was sent (`produced`: text waits to be written), then as the final event. */
export function failStream(
  call: HttpCall,
  writer: SseWriter,
  failure: unknown,
  { produced, log }: { readonly produced: boolean; readonly log: Log },
): void {
  if (!writer.started && !produced) {
    writer.cancel();
    sendError(call, failure, log);
    return;
  }
  const error = toAppError(failure);
  logFailure(call, error, log);
  writer.fail(error);
}
