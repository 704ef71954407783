import { ModelError, type ModelResult, type ModelSink } from '../model.ts';
import { withPartial } from './partial.ts';
import { SinkText } from './sink-text.ts';
import { parseFrame, SseReader } from './sse-reader.ts';
import { type FrameHandler, TextFrames } from './text-frames.ts';
import type { StreamReader } from './upstream.ts';
import { complaintOf, kindOfStreamError, readComplaint } from './wire-error.ts';

export interface AnswerStreamOptions {
  readonly sink: ModelSink;
  /** The key before the text in a text frame, quotes included; see `TextFrames`. */
  readonly textKey: string;
  /** The text of the data of a frame that carries nothing else; undefined for other frames. */
  readonly pureText: (data: string) => string | undefined;
}

/** What reading a streamed answer is on every wire: text leaves the moment its read is through, the rest is kept for the result. */
export abstract class AnswerStream implements StreamReader<ModelResult> {
  protected readonly text: SinkText;
  /** Set by the frame after which nothing that matters can follow. */
  protected done = false;
  readonly #reader = new SseReader();
  readonly #frames: TextFrames;
  readonly #handler: FrameHandler = { literal: (inside) => this.text.escaped(inside), frame: (frame) => this.#frame(frame) };

  constructor({ sink, textKey, pureText }: AnswerStreamOptions) {
    this.text = new SinkText(sink);
    this.#frames = new TextFrames(textKey, pureText);
  }

  push(chunk: Buffer): void {
    this.#reader.push(chunk);
  }

  advance(): boolean {
    this.#frames.read(this.#reader.take(), this.#handler);
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

  /** True when the model has said why it stopped, though the stream may not have said that it ends. */
  protected abstract readonly stopped: boolean;
  /** True when something of the answer arrived. */
  protected abstract readonly begun: boolean;
  /** Takes the data of one frame; returns its text when it carries nothing else. */
  protected abstract take(data: string): string | undefined;
  /** Whether text behind the last empty line is a whole frame. */
  protected abstract isWhole(data: string): boolean;
  /** The answer; `complete` is false when the stream was cut off. */
  protected abstract result(complete: boolean): ModelResult;

  /** The end of the body: a last frame may lack its empty line, and a refusal may come as a bare JSON body. */
  #last(text: string) {
    if (text === '') return;
    if (text.startsWith('{')) {
      const complaint = readComplaint(text);
      throw new ModelError(kindOfStreamError(complaint), complaint.message === '' ? 'a JSON body in place of a stream' : complaint.message);
    }
    const { data } = parseFrame(text);
    if (data !== undefined && this.isWhole(data)) this.#frame(text);
  }

  #frame(frame: string) {
    if (this.done) return;
    const { data } = parseFrame(frame);
    if (data === undefined || data === '') return;
    const text = this.take(data);
    if (text !== undefined && text !== '') this.#frames.learn(frame, text);
  }
}

/** An error that came as a frame of the stream. */
export function streamedError(value: unknown): ModelError {
  const complaint = complaintOf(value);
  return new ModelError(kindOfStreamError(complaint), complaint.message === '' ? 'the stream carried an error' : complaint.message);
}
