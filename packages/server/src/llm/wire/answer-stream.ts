import { ModelError, type ModelRequest, type ModelResult, type ModelSink, type ModelUsage } from '../model.ts';
import { answerBytes, believable, streamBytes, tooLong } from './answer-bound.ts';
import { withPartial } from './partial.ts';
import { SinkText } from './sink-text.ts';
import { parseFrame, SseReader } from './sse-reader.ts';
import { type FrameHandler, TextFrames } from './text-frames.ts';
import type { StreamReader } from './upstream.ts';
import { complaintOf, readComplaint, streamErrorOf } from './wire-error.ts';

export interface AnswerStreamOptions {
  readonly request: ModelRequest;
  readonly sink: ModelSink;
  /** The key before the text in a text frame, quotes included; see `TextFrames`. */
  readonly textKey: string;
  /** Whether frames that only repeat an earlier one around their text are passed on unparsed. */
  readonly fastStreams: boolean;
  /** Returns the text of a frame's data that carries nothing else; undefined for other frames. */
  readonly pureText: (data: string) => string | undefined;
}

/** Reads a streamed answer of any wire: text is passed on at the end of its read, the rest is kept for the result. */
export abstract class AnswerStream implements StreamReader<ModelResult> {
  protected readonly text: SinkText;
  protected readonly request: ModelRequest;
  /** Set by the frame after which nothing relevant can follow. */
  protected done = false;
  readonly #maxBytes: number;
  readonly #maxWireBytes: number;
  #onWire = 0;
  readonly #reader = new SseReader();
  readonly #frames: TextFrames;
  readonly #learns: boolean;
  readonly #handler: FrameHandler = { literal: (inside) => this.text.escaped(inside), frame: (frame) => this.#frame(frame) };

  constructor({ request, sink, textKey, pureText, fastStreams }: AnswerStreamOptions) {
    this.request = request;
    this.#maxBytes = answerBytes(request);
    this.#maxWireBytes = streamBytes(request);
    this.text = new SinkText(sink);
    this.#frames = new TextFrames(textKey, pureText);
    this.#learns = fastStreams;
  }

  push(chunk: Buffer): void {
    this.#onWire += chunk.length;
    if (this.#onWire > this.#maxWireBytes) throw tooLong(this.#maxWireBytes);
    this.#reader.push(chunk);
  }

  advance(): boolean {
    this.#frames.read(this.#reader.take(), this.#handler);
    if (this.text.size + this.toolBytes > this.#maxBytes) throw tooLong(this.#maxBytes);
    return this.text.flush();
  }

  drained(): Promise<void> {
    return this.text.sink.drained();
  }

  get finished(): boolean {
    return this.done;
  }

  end(): ModelResult {
    if (!this.done) this.#last(this.#reader.rest().trim());
    this.text.flush();
    if (!this.done && !this.stopped) throw new ModelError('bad_response', 'the stream ended before the answer was complete');
    return this.result(true);
  }

  failed(error: ModelError): ModelError {
    if (!this.begun) return error;
    this.text.flush();
    return withPartial(error, this.result(false));
  }

  /** Bytes of tool calls so far. */
  protected abstract readonly toolBytes: number;
  /** True when the model has said why it stopped, although the stream may not have announced its end. */
  protected abstract readonly stopped: boolean;
  /** True when a part of the answer has arrived. */
  protected abstract readonly begun: boolean;
  /** Takes the data of one frame; returns its text when it carries nothing else. */
  protected abstract take(data: string): string | undefined;
  /** Whether text after the last empty line is a whole frame. */
  protected abstract isWhole(data: string): boolean;
  /** The answer; `complete` is false when the stream was cut off. */
  protected abstract result(complete: boolean): ModelResult;

  /** Returns the usage that the provider reported, limited to plausible numbers. */
  protected believe(usage: ModelUsage): ModelUsage {
    return believable(usage, this.request, this.text.size + this.toolBytes);
  }

  /** Handles the end of the body: a last frame may lack its empty line, and a refusal may arrive as a bare JSON body. */
  #last(text: string) {
    if (text === '') return;
    if (text.startsWith('{')) {
      throw streamErrorOf(readComplaint(text), 'a JSON body instead of a stream');
    }
    const { data } = parseFrame(text);
    if (data !== undefined && this.isWhole(data)) this.#frame(text);
  }

  #frame(frame: string) {
    if (this.done) return;
    const { data } = parseFrame(frame);
    if (data === undefined || data === '') return;
    const text = this.take(data);
    if (this.#learns && text !== undefined && text !== '') this.#frames.learn(frame, text);
  }
}

/** Returns the error that a frame of the stream carried. */
export function streamedError(value: unknown): ModelError {
  return streamErrorOf(complaintOf(value), 'the stream carried an error');
}
