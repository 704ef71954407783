import type { AppError } from '../../../kernel/app-error.ts';
import { failStream } from '../../fail-stream.ts';
import type { HttpCall } from '../../http-call.ts';
import { SseWriter } from '../../sse-writer.ts';
import { errorOf } from './response-items.ts';
import type { Answering, ResponseDeps } from './create-response.ts';
import { ResponseEvents } from './response-events.ts';
import { playResponse } from './play-response.ts';

/** Streams one response. The status is sent with the first text or the first keep-alive; from then on a failure is an event. */
export async function streamResponse(deps: Pick<ResponseDeps, 'clock' | 'log' | 'keepAliveMs'>, call: HttpCall, answering: Answering): Promise<void> {
  const { open } = answering;
  const writer = new SseWriter(call, {
    clock: deps.clock,
    errorText,
    ...(deps.keepAliveMs !== undefined && { keepAliveMs: deps.keepAliveMs }),
  });
  const events = new ResponseEvents(open);
  let begun = false;

  function errorText(error: AppError): string {
    const begin = begun ? '' : events.begin();
    return begin + events.end({ ...open, status: 'failed', store: false, error: errorOf(error) });
  }

  await playResponse(answering, events, {
    push(text) {
      begun = true;
      writer.push(text);
    },
    flush: () => writer.flush(),
    drained: () => writer.drained(),
    fail: (failure, produced) => failStream(call, writer, failure, { produced, log: deps.log }),
    end: () => writer.end(),
  });
}
