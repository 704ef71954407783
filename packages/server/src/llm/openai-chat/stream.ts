import { ModelError, type ModelRequest, type ModelResult, type ModelSink, type ModelUsage } from '../model.ts';
import { parseFrame, SseReader } from '../wire/sse-reader.ts';
import { withPartial } from '../wire/partial.ts';
import { SinkText } from '../wire/sink-text.ts';
import { type FrameHandler, TextFrames } from '../wire/text-frames.ts';
import type { StreamReader } from '../wire/upstream.ts';
import { estimateUsage } from '../wire/usage.ts';
import { complaintOf, kindOfStreamError, readComplaint } from '../wire/wire-error.ts';
import { Chunk, contentText, ToolCalls, toFinish, toUsage } from './answer.ts';

/** Reads one streamed chat completion. Text leaves the moment its read is through; tool calls, finish and usage are kept for the result. */
export class ChatStream implements StreamReader<ModelResult> {
  readonly #request: ModelRequest;
  readonly #text: SinkText;
  readonly #reader = new SseReader();
  readonly #frames = new TextFrames('"content"', pureText);
  readonly #toolCalls = new ToolCalls();
  #begun = false;
  #finish: string | undefined;
  #usage: ModelUsage | undefined;
  #id: string | undefined;
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
    if (!this.#done && this.#finish === undefined) throw new ModelError('bad_response', 'the stream ended before the answer was complete');
    return this.#result();
  }

  failed(error: ModelError): ModelError {
    if (!this.#begun) return error;
    this.#text.flush();
    return withPartial(error, this.#result());
  }

  /** The end of the body: a last frame may lack its empty line, and a refusal may come as a bare JSON body. */
  #last(rest: string) {
    const text = rest.trim();
    if (text === '') return;
    if (text.startsWith('{')) {
      const complaint = readComplaint(text);
      throw new ModelError(kindOfStreamError(complaint), complaint.message === '' ? 'a JSON body in place of a stream' : complaint.message);
    }
    const data = parseFrame(text).data;
    if (data !== undefined && (data === '[DONE]' || isJson(data))) this.#frame(text);
  }

  #frame(frame: string) {
    if (this.#done) return;
    const { data } = parseFrame(frame);
    if (data === undefined || data === '') return;
    if (data === '[DONE]') {
      this.#done = true;
      return;
    }
    const value = parse(data);
    const chunk = Chunk.safeParse(value);
    if (!chunk.success)
      throw new ModelError('bad_response', `a stream frame is not a chat completion chunk (${chunk.error.issues[0]?.path.join('.') ?? ''})`);
    if (chunk.data.error !== undefined && chunk.data.error !== null) {
      const complaint = complaintOf(value);
      throw new ModelError(kindOfStreamError(complaint), complaint.message === '' ? 'the stream carried an error' : complaint.message);
    }
    this.#begun = true;
    const text = this.#take(chunk.data);
    if (text !== '' && isPure(chunk.data)) this.#frames.learn(frame, text);
  }

  #take(chunk: Chunk): string {
    if (typeof chunk.id === 'string' && chunk.id !== '') this.#id ??= chunk.id;
    const usage = chunk.usage ?? chunk.x_groq?.usage;
    if (usage !== null && usage !== undefined) this.#usage = toUsage(usage);
    const choice = chunk.choices?.find((candidate) => (candidate.index ?? 0) === 0);
    if (choice === undefined) return '';
    const text = contentText(choice.delta?.content);
    this.#text.plain(text);
    for (const piece of choice.delta?.tool_calls ?? []) this.#toolCalls.add(piece);
    if (typeof choice.finish_reason === 'string' && choice.finish_reason !== '') this.#finish = choice.finish_reason;
    return text;
  }

  #result(): ModelResult {
    const text = this.#text.value();
    const toolCalls = this.#toolCalls.list(this.#id ?? '');
    return {
      text,
      toolCalls,
      finish: toFinish(this.#finish, toolCalls),
      usage: this.#usage ?? estimateUsage(this.#request, text, toolCalls),
      ...(this.#id === undefined ? {} : { responseId: this.#id }),
    };
  }
}

/** True when the chunk says nothing but its text: what `ChatStream` would do for it is to hand the text on. */
function isPure(chunk: Chunk): boolean {
  const choice = chunk.choices?.[0];
  const delta = choice?.delta;
  if (chunk.choices?.length !== 1 || delta === null || delta === undefined || (choice?.index ?? 0) !== 0) return false;
  if (choice?.finish_reason || chunk.usage || chunk.x_groq?.usage || typeof delta.content !== 'string') return false;
  return !delta.tool_calls || delta.tool_calls.length === 0;
}

function pureText(data: string): string | undefined {
  const chunk = Chunk.safeParse(parse(data));
  if (!chunk.success || chunk.data.error || !isPure(chunk.data)) return undefined;
  return contentText(chunk.data.choices?.[0]?.delta?.content);
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    throw new ModelError('bad_response', 'a stream frame is not JSON');
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
