import { type JsonFragment, toFragment } from '../../../kernel/json-fragment.ts';
import type { TurnOutcome } from '../../../features/conversations/turns/api.ts';
import { failureOf } from '../v1-failure.ts';
import type { Answering } from './create-response.ts';
import type { ResponseEvents } from './response-events.ts';

/** Destination of a response's events; `fail` ends it, with `produced` true once a part of it was pushed. */
export interface ResponseOutlet {
  push(text: string): void;
  flush(): boolean;
  drained(): Promise<void>;
  fail(failure: unknown, produced: boolean): void;
  end(): void;
}

/** Runs a response and sends its events as they occur. */
export async function playResponse(answering: Answering, events: ResponseEvents, out: ResponseOutlet): Promise<void> {
  let produced = false;
  const text = (fragment: JsonFragment): void => {
    if (!produced) out.push(events.begin() + events.beginText());
    produced = true;
    out.push(events.text(fragment));
  };
  let result: { readonly outcome: TurnOutcome; readonly response: Awaited<ReturnType<Answering['run']>>['response'] };
  try {
    result = await answering.run({ text, flush: () => out.flush(), drained: () => out.drained() });
  } catch (error) {
    out.fail(error, produced);
    return;
  }
  const { outcome, response } = result;
  const failure = failureOf(outcome, 'input');
  if (failure !== undefined && !produced) {
    out.fail(failure, produced);
    return;
  }
  const [first] = response.output;
  if (first?.type === 'message' && !produced) {
    // Text that no model streamed, or an empty answer.
    if (outcome.text === '') out.push(events.begin() + events.beginText());
    else text(toFragment(outcome.text));
  } else if (!produced) out.push(events.begin());
  for (const [index, item] of response.output.entries()) out.push(events.item(index, item));
  const { status } = response;
  if (status !== 'in_progress') out.push(events.end({ ...response, status }));
  out.end();
}
