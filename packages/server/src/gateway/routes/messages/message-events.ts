import { type JsonFragment, toFragment } from '../../../kernel/json-fragment.ts';
import type { AnswerBlock, MessageObject, MessageStreamEvent } from '@gatehouse/contract';
import type { TurnOutcome } from '../../../features/conversations/turns/api.ts';
import type { ThinkingBlock, ToolCall } from '../../../llm/model.ts';
import { callBlock, stopOf, usageOf } from './message-object.ts';

/** Formats the events of one streamed message, in order. At most one content block is open at a time. */
export class MessageEvents {
  readonly #open: MessageObject;
  #begun = false;
  #index = 0;
  #block: 'text' | 'thinking' | undefined;
  /** Text before and after a fragment of the open block. */
  #around: readonly [string, string] = ['', ''];

  constructor(open: MessageObject) {
    this.#open = open;
  }

  ping(): string {
    return this.#begin() + event({ type: 'ping' });
  }

  text(fragment: JsonFragment): string {
    return this.#fragment('text', fragment);
  }

  thinking(fragment: JsonFragment): string {
    return this.#fragment('thinking', fragment);
  }

  /** Formats a complete reasoning block: its text was streamed before, unless it came whole. */
  endThinking(block: ThinkingBlock): string {
    if (block.type === 'redacted_thinking') return this.#whole(block, []);
    const text = this.#block === 'thinking' ? '' : this.thinking(toFragment(block.thinking));
    const signature: MessageStreamEvent = {
      type: 'content_block_delta',
      index: this.#index,
      delta: { type: 'signature_delta', signature: block.signature },
    };
    return text + (block.signature === '' ? '' : event(signature)) + this.#close();
  }

  end(outcome: TurnOutcome): string {
    const calls = (outcome.clientCalls ?? []).map((call) => this.#call(call)).join('');
    return (
      this.#begin() +
      calls +
      this.#close() +
      event({ type: 'message_delta', delta: stopOf(outcome), usage: usageOf(outcome) }) +
      event({ type: 'message_stop' })
    );
  }

  #call(call: ToolCall): string {
    const block = callBlock(call);
    return this.#whole({ ...block, input: {} }, [{ type: 'input_json_delta', partial_json: JSON.stringify(block.input) }]);
  }

  #begin(): string {
    if (this.#begun) return '';
    this.#begun = true;
    return event({ type: 'message_start', message: this.#open });
  }

  #fragment(type: 'text' | 'thinking', fragment: JsonFragment): string {
    const begin = this.#block === type ? '' : this.#openBlock(type);
    return begin + this.#around[0] + fragment + this.#around[1];
  }

  #openBlock(type: 'text' | 'thinking'): string {
    const before = this.#begin() + this.#close();
    const index = this.#index;
    this.#block = type;
    this.#around = [
      `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${type}_delta","${type}":"`,
      '"}}\n\n',
    ];
    const block: AnswerBlock = type === 'text' ? { type, text: '', citations: null } : { type, thinking: '', signature: '' };
    return before + event({ type: 'content_block_start', index, content_block: block });
  }

  #whole(block: AnswerBlock, deltas: readonly Extract<MessageStreamEvent, { type: 'content_block_delta' }>['delta'][]): string {
    const before = this.#begin() + this.#close();
    const index = this.#index++;
    return (
      before +
      event({ type: 'content_block_start', index, content_block: block }) +
      deltas.map((delta) => event({ type: 'content_block_delta', index, delta })).join('') +
      event({ type: 'content_block_stop', index })
    );
  }

  #close(): string {
    if (this.#block === undefined) return '';
    this.#block = undefined;
    return event({ type: 'content_block_stop', index: this.#index++ });
  }
}

function event(data: MessageStreamEvent): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}
