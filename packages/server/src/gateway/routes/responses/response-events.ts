import type { JsonFragment } from '../../../kernel/json-fragment.ts';
import type { ResponseObject, ResponseOutputItem, ResponseStreamEvent } from '@gatehouse/contract';
import { itemId, messageItem, textPart } from './response-items.ts';

type Unnumbered<Event> = Event extends unknown ? Omit<Event, 'sequence_number'> : never;

/** Formats the events of one response, in order, and numbers them. */
export class ResponseEvents {
  readonly #open: ResponseObject;
  readonly #beforeText: string;
  #sequence = 0;

  constructor(open: ResponseObject) {
    this.#open = open;
    const type = 'response.output_text.delta';
    this.#beforeText = `event: ${type}\ndata: {"type":"${type}","item_id":"${itemId('msg', open.id, 0)}","output_index":0,"content_index":0,"logprobs":[],"delta":"`;
  }

  begin(): string {
    return this.#event({ type: 'response.created', response: this.#open }) + this.#event({ type: 'response.in_progress', response: this.#open });
  }

  beginText(): string {
    return (
      this.#event({ type: 'response.output_item.added', output_index: 0, item: messageItem(this.#open.id, 'in_progress') }) +
      this.#event({ type: 'response.content_part.added', ...this.#part, part: textPart('') })
    );
  }

  text(fragment: JsonFragment): string {
    return `${this.#beforeText}${fragment}","sequence_number":${this.#sequence++}}\n\n`;
  }

  /** Formats the end of one output item; a call, which comes whole, also starts here. */
  item(index: number, item: ResponseOutputItem): string {
    const done = () => this.#event({ type: 'response.output_item.done', output_index: index, item });
    if (item.type === 'message') {
      const part = item.content[0] ?? textPart('');
      return (
        this.#event({ type: 'response.output_text.done', ...this.#part, text: part.text, logprobs: [] }) +
        this.#event({ type: 'response.content_part.done', ...this.#part, part }) +
        done()
      );
    }
    const place = { item_id: item.id, output_index: index };
    return (
      this.#event({ type: 'response.output_item.added', output_index: index, item: { ...item, status: 'in_progress', arguments: '' } }) +
      this.#event({ type: 'response.function_call_arguments.delta', ...place, delta: item.arguments }) +
      this.#event({ type: 'response.function_call_arguments.done', ...place, name: item.name, arguments: item.arguments }) +
      done()
    );
  }

  end(response: ResponseObject & { readonly status: 'completed' | 'incomplete' | 'failed' }): string {
    return `${this.#event({ type: `response.${response.status}`, response })}data: [DONE]\n\n`;
  }

  get #part() {
    return { item_id: itemId('msg', this.#open.id, 0), output_index: 0, content_index: 0 as const };
  }

  #event(event: Unnumbered<ResponseStreamEvent>): string {
    return `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number: this.#sequence++ })}\n\n`;
  }
}
