import { toAppError } from '../kernel/app-error.ts';
import type { Log } from '../kernel/log.ts';
import type { HttpCall } from './http-call.ts';
import { logFailure, sendError } from './reply.ts';
import type { SseWriter } from './sse-writer.ts';

/** Ends a streamed answer with a failure: as a status while nothing is on its way (`produced`: text waits for its write), as the stream's last words from then on. */
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
