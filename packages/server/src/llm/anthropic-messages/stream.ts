import { ModelError, type ModelRequest, type ModelResult, type ModelSink } from '../model.ts';
import { withPartial } from '../wire/partial.ts';
import { SinkText } from '../wire/sink-text.ts';
import { parseFrame, SseReader } from '../wire/sse-reader.ts';
import { type FrameHandler, TextFrames } from '../wire/text-frames.ts';
import type { StreamReader } from '../wire/upstream.ts';
import { estimateUsage } from '../wire/usage.ts';
import { complaintOf, kindOfStreamError, readComplaint } from '../wire/wire-error.ts';
import { StreamEvent, toFinish, toUsage, type WireUsage } from './answer.ts';

/** Reads one streamed message. Text leaves the moment its read is through; tool calls, stop reason and usage are kept for the result. */
export class MessageStream implements StreamReader<ModelResult> {
  readonly #request: ModelRequest;
  readonly #text: SinkText;
  readonly #reader = new SseReader();
  readonly #frames = new TextFrames('"text"', pureText);
  /** By content block, in order of appearance. */
  readonly #tools = new Map<number, { id: string; name: string; arguments: string }>();
  #id: string | undefined;
  #stop: string | undefined;
  #usage: WireUsage = {};
  #done = false;
  readonly #handler: FrameHandler = { literal: (inside) => this.#text.escaped(inside), frame: (frame) => this.#frame(frame) };

  constructor(request: ModelRequest, sink: ModelSink) {
    this.#request = request;
    this.#text = new SinkText(sink);
  }

  push(chunk: Buffer): void {
    this.#reader.push(chunk);
  }

  advance(): boolean {
    this.#frames.read(this.#reader.take(), this.#handler);
    return this.#text.flush();
  }

  drained(): Promise<void> {
    return this.#text.sink.drained();
  }

  get finished(): boolean {
    return this.#done;
  }

  end(): ModelResult {
    if (!this.#done) this.#last(this.#reader.rest());
    this.#text.flush();
    if (!this.#done && this.#stop === undefined) throw new ModelError('bad_response', 'the stream ended before the answer was complete');
    return this.#result(true);
  }

  failed(error: ModelError): ModelError {
    if (this.#id === undefined) return error;
    this.#text.flush();
    return withPartial(error, this.#result(false));
  }

  #last(rest: string) {
    const text = rest.trim();
    if (text.startsWith('{')) {
      const complaint = readComplaint(text);
      throw new ModelError(kindOfStreamError(complaint), complaint.message === '' ? 'a JSON body in place of a stream' : complaint.message);
    }
    if (text !== '' && parseEvent(parseFrame(text).data ?? '') !== undefined) this.#frame(text);
  }

  #frame(frame: string) {
    if (this.#done) return;
    const { data } = parseFrame(frame);
    if (data === undefined || data === '') return;
    const event = parseEvent(data);
    if (event === undefined) throw new ModelError('bad_response', 'a stream frame is not an event of the messages API');
    if (event.type === 'error') {
      const complaint = complaintOf(event);
      throw new ModelError(kindOfStreamError(complaint), complaint.message === '' ? 'the stream carried an error' : complaint.message);
    }
    this.#take(event);
    const text = event.delta?.text;
    if (isText(event) && typeof text === 'string') this.#frames.learn(frame, text);
  }

  #take(event: StreamEvent) {
    const { delta, content_block: block } = event;
    const index = event.index ?? 0;
    if (event.message) this.#id = event.message.id;
    this.#count(event.message?.usage);
    this.#count(event.usage);
    if (event.type === 'content_block_start' && block?.type === 'tool_use')
      this.#tools.set(index, { id: block.id ?? '', name: block.name ?? '', arguments: '' });
    if (event.type === 'content_block_start' && block?.type === 'text') this.#text.plain(block.text ?? '');
    if (isText(event)) this.#text.plain(delta?.text ?? '');
    const tool = delta?.type === 'input_json_delta' ? this.#tools.get(index) : undefined;
    if (tool !== undefined) tool.arguments += delta?.partial_json ?? '';
    if (typeof delta?.stop_reason === 'string') this.#stop = delta.stop_reason;
    if (event.type === 'message_stop') this.#done = true;
  }

  /** Counts are cumulative: a later one replaces an earlier one, one that is absent does not. */
  #count(usage: WireUsage | null | undefined) {
    if (usage) this.#usage = { ...this.#usage, ...Object.fromEntries(Object.entries(usage).filter(([, tokens]) => typeof tokens === 'number')) };
  }

  #result(complete: boolean): ModelResult {
    const text = this.#text.value();
    const toolCalls = [...this.#tools.values()].map((call) => ({ ...call, arguments: call.arguments === '' ? '{}' : call.arguments }));
    // A broken stream has told the input; its output count is the first token only.
    const reported = toUsage(this.#usage);
    const estimate = complete && reported.input > 0 ? reported : estimateUsage(this.#request, text, toolCalls);
    const usage = complete || reported.input === 0 ? estimate : { ...reported, output: Math.max(reported.output, estimate.output), estimated: true };
    return { text, toolCalls, finish: toFinish(this.#stop), usage, ...(this.#id === undefined ? {} : { responseId: this.#id }) };
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
    return StreamEvent.parse(JSON.parse(data));
  } catch {
    return undefined;
  }
}
