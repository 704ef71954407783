import * as z from 'zod';
import { once } from '../once.ts';
import { OutputTextPart, ResponseOutputItem } from './v1-responses-items.ts';
import { ResponseObject } from './v1-responses.ts';

const place = once(() => ({ item_id: z.string(), output_index: z.int().min(0), sequence_number: z.int().min(0) }));
const part = once(() => ({ ...place(), content_index: z.literal(0) }));

function snapshot<Type extends string>(type: Type) {
  return z.strictObject({ type: z.literal(type), response: ResponseObject(), sequence_number: z.int().min(0) });
}
function item<Type extends string>(type: Type) {
  return z.strictObject({
    type: z.literal(type),
    output_index: z.int().min(0),
    item: ResponseOutputItem(),
    sequence_number: z.int().min(0),
  });
}

/** Data of one event of a streamed response; `event:` says the same as `type`, and `sequence_number` counts from 0. */
export const ResponseStreamEvent = once(() =>
  z
    .discriminatedUnion('type', [
      snapshot('response.created'),
      snapshot('response.in_progress'),
      item('response.output_item.added'),
      z.strictObject({ type: z.literal('response.content_part.added'), ...part(), part: OutputTextPart() }),
      z.strictObject({ type: z.literal('response.output_text.delta'), ...part(), delta: z.string(), logprobs: z.array(z.never()) }),
      z.strictObject({ type: z.literal('response.output_text.done'), ...part(), text: z.string(), logprobs: z.array(z.never()) }),
      z.strictObject({ type: z.literal('response.content_part.done'), ...part(), part: OutputTextPart() }),
      z.strictObject({ type: z.literal('response.function_call_arguments.delta'), ...place(), delta: z.string() }),
      z.strictObject({ type: z.literal('response.function_call_arguments.done'), ...place(), name: z.string(), arguments: z.string() }),
      item('response.output_item.done'),
      snapshot('response.completed'),
      snapshot('response.incomplete'),
      snapshot('response.failed'),
    ])
    .meta({ id: 'ResponseStreamEvent' }),
);
export type ResponseStreamEvent = z.output<ReturnType<typeof ResponseStreamEvent>>;
