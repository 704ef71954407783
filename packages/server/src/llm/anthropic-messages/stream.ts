import { toFragment } from '../../kernel/json-fragment.ts';
import { ModelError, type ModelRequest, type ModelResult, type ModelSink, type ThinkingBlock } from '../model.ts';
import { AnswerStream, streamedError } from '../wire/answer-stream.ts';
import { toolCallBytes } from '../wire/answer-bound.ts';
import { estimateUsage } from '../wire/usage.ts';
import { StreamEvent, toFinish, toThinking, toUsage, type WireUsage } from './answer.ts';

/** Reads one streamed message. */
export class MessageStream extends AnswerStream {
  /** Tool calls by content block, in order of appearance. */
  readonly #tools = new Map<number, { id: string; name: string; arguments: string }>();
  #toolBytes = 0;
  /** The block being read, and the complete ones. */
  #open: ThinkingBlock | undefined;
  readonly #thinking: ThinkingBlock[] = [];
  #stopSequence: string | undefined;
  #id: string | undefined;
  #stop: string | undefined;
  #usage: WireUsage = {};

  constructor(request: ModelRequest, sink: ModelSink, fastStreams: boolean) {
    super({ request, sink, textKey: '"text"', pureText, fastStreams });
  }

  protected get begun(): boolean {
    return this.#id !== undefined;
  }

  protected get toolBytes(): number {
    return this.#toolBytes;
  }

  protected get stopped(): boolean {
    return this.#stop !== undefined;
  }

  protected isWhole(data: string): boolean {
    return parseEvent(data) !== undefined;
  }

  protected take(data: string): string | undefined {
    const event = parseEvent(data);
    if (event === undefined) throw new ModelError('bad_response', 'a stream frame is not an event of the messages API');
    if (event.type === 'error') throw streamedError(event);
    this.#keep(event);
    return isText(event) ? (event.delta?.text ?? undefined) : undefined;
  }

  #keep(event: StreamEvent) {
    const { delta, content_block: block } = event;
    const index = event.index ?? 0;
    if (event.message) this.#id = event.message.id;
    this.#count(event.message?.usage);
    this.#count(event.usage);
    if (event.type === 'content_block_start' && block?.type === 'tool_use') {
      this.#toolBytes += toolCallBytes + (block.id?.length ?? 0) + (block.name?.length ?? 0);
      this.#tools.set(index, { id: block.id ?? '', name: block.name ?? '', arguments: '' });
    }
    if (event.type === 'content_block_start' && block) this.#open = toThinking(block);
    if (this.#open !== undefined) this.#think(this.#open, event);
    if (event.type === 'content_block_start' && block?.type === 'text') this.text.plain(block.text ?? '');
    if (isText(event)) this.text.plain(delta?.text ?? '');
    const tool = delta?.type === 'input_json_delta' ? this.#tools.get(index) : undefined;
    if (tool !== undefined) {
      tool.arguments += delta?.partial_json ?? '';
      this.#toolBytes += delta?.partial_json?.length ?? 0;
    }
    if (typeof delta?.stop_reason === 'string') this.#stop = delta.stop_reason;
    if (typeof delta?.stop_sequence === 'string') this.#stopSequence = delta.stop_sequence;
    if (event.type === 'message_stop') this.done = true;
  }

  #think(open: ThinkingBlock, { type, delta }: StreamEvent) {
    if (open.type === 'thinking' && delta?.type === 'thinking_delta') {
      const fragment = delta.thinking ?? '';
      this.#toolBytes += fragment.length;
      this.#open = { ...open, thinking: open.thinking + fragment };
      if (fragment !== '') this.text.sink.thinking?.fragment(toFragment(fragment));
    }
    if (open.type === 'thinking' && delta?.type === 'signature_delta') this.#open = { ...open, signature: open.signature + (delta.signature ?? '') };
    if (type !== 'content_block_stop') return;
    this.#open = undefined;
    this.#thinking.push(open);
    this.text.sink.thinking?.block(open);
  }

  /** Counts are cumulative: a later one replaces an earlier one, a missing one does not. */
  #count(usage: WireUsage | null | undefined) {
    if (usage) this.#usage = { ...this.#usage, ...Object.fromEntries(Object.entries(usage).filter(([, tokens]) => typeof tokens === 'number')) };
  }

  protected result(complete: boolean): ModelResult {
    const text = this.text.value();
    const toolCalls = [...this.#tools.values()].map((call) => ({ ...call, arguments: call.arguments === '' ? '{}' : call.arguments }));
    // A broken stream has reported the input; its output count is the first token only.
    const reported = this.believe(toUsage(this.#usage));
    const estimate = complete && reported.input > 0 ? reported : estimateUsage(this.request, text, toolCalls);
    const usage = complete || reported.input === 0 ? estimate : { ...reported, output: Math.max(reported.output, estimate.output), estimated: true };
    return {
      text,
      toolCalls,
      finish: toFinish(this.#stop),
      usage,
      ...(this.#id === undefined ? {} : { responseId: this.#id }),
      ...(this.#thinking.length > 0 && { thinking: this.#thinking }),
      ...(this.#stopSequence !== undefined && { stopSequence: this.#stopSequence }),
    };
  }
}

function isText(event: StreamEvent): boolean {
  return event.type === 'content_block_delta' && event.delta?.type === 'text_delta';
}

function pureText(data: string): string | undefined {
  const event = parseEvent(data);
  return event !== undefined && isText(event) ? (event.delta?.text ?? undefined) : undefined;
}

function parseEvent(data: string): StreamEvent | undefined {
  try {
    return StreamEvent().parse(JSON.parse(data));
  } catch {
    return undefined;
  }
}
