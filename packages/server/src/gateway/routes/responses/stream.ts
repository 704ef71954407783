import type { AppError } from '../../../kernel/app-error.ts';
import type { TurnSink } from '../../../runtime/turn.ts';
import { failStream } from '../../fail-stream.ts';
import type { HttpCall } from '../../http-call.ts';
import { SseWriter } from '../../sse-writer.ts';
import { failureOf } from '../v1-failure.ts';
import { errorOf } from './body.ts';
import type { Answering, ResponseDeps } from './create.ts';
import { ResponseEvents } from './events.ts';

/** Streams one response. The status is chosen at the first text or the first keep-alive; from then on a failure is an event. */
export async function streamResponse(deps: Pick<ResponseDeps, 'clock' | 'log' | 'keepAliveMs'>, call: HttpCall, answering: Answering): Promise<void> {
  const { open } = answering;
  const writer = new SseWriter(call, {
    clock: deps.clock,
    errorText,
    ...(deps.keepAliveMs !== undefined && { keepAliveMs: deps.keepAliveMs }),
  });
  const events = new ResponseEvents(open);
  let produced = false;
  const sink: TurnSink = {
    text(fragment) {
      if (!produced) writer.push(events.begin() + events.beginText());
      produced = true;
      writer.push(events.text(fragment));
    },
    flush: () => writer.flush(),
    drained: () => writer.drained(),
  };

  function errorText(error: AppError): string {
    const begin = produced ? '' : events.begin();
    return begin + events.end({ ...open, status: 'failed', store: false, error: errorOf(error) });
  }

  const fail = (failure: unknown): void => failStream(call, writer, failure, { produced, log: deps.log });

  let result: Awaited<ReturnType<Answering['run']>>;
  try {
    result = await answering.run(sink);
  } catch (error) {
    fail(error);
    return;
  }
  const { outcome, response } = result;
  const failure = failureOf(outcome, 'input');
  if (failure !== undefined && !produced) {
    fail(failure);
    return;
  }
  const [first] = response.output;
  if (first?.type === 'message' && !produced) {
    // Answers that no model streamed, and those without a word.
    if (outcome.text === '') writer.push(events.begin() + events.beginText());
    else sink.text(JSON.stringify(outcome.text).slice(1, -1));
  } else if (!produced) writer.push(events.begin());
  for (const [index, item] of response.output.entries()) writer.push(events.item(index, item));
  const { status } = response;
  if (status !== 'in_progress') writer.push(events.end({ ...response, status }));
  writer.end();
}
