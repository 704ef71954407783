import { toFragment } from '../../kernel/json-fragment.ts';
import { ModelError, type ModelRequest, type ModelResult, type ModelSink, type ModelUsage } from '../model.ts';
import { AnswerStream, streamedError } from '../wire/answer-stream.ts';
import { estimateUsage } from '../wire/usage.ts';
import { Chunk, contentText, ToolCalls, toFinish, toUsage } from './answer.ts';

/** Reads one streamed chat completion. */
export class ChatStream extends AnswerStream {
  readonly #toolCalls = new ToolCalls();
  protected begun = false;
  #finish: string | undefined;
  #usage: ModelUsage | undefined;
  #id: string | undefined;

  constructor(request: ModelRequest, sink: ModelSink, fastStreams: boolean) {
    super({ request, sink, textKey: '"content"', pureText, fastStreams });
  }

  protected get toolBytes(): number {
    return this.#toolCalls.bytes;
  }

  protected get stopped(): boolean {
    return this.#finish !== undefined;
  }

  protected isWhole(data: string): boolean {
    return data === '[DONE]' || isJson(data);
  }

  protected take(data: string): string | undefined {
    if (data === '[DONE]') {
      this.done = true;
      return undefined;
    }
    const value = parse(data);
    const chunk = Chunk().safeParse(value);
    if (!chunk.success)
      throw new ModelError('bad_response', `a stream frame is not a chat completion chunk (${chunk.error.issues[0]?.path.join('.') ?? ''})`);
    if (chunk.data.error !== undefined && chunk.data.error !== null) throw streamedError(value);
    this.begun = true;
    const text = this.#keep(chunk.data);
    return isPure(chunk.data) ? text : undefined;
  }

  #keep(chunk: Chunk): string {
    if (typeof chunk.id === 'string' && chunk.id !== '') this.#id ??= chunk.id;
    const usage = chunk.usage ?? chunk.x_groq?.usage;
    if (usage !== null && usage !== undefined) this.#usage = toUsage(usage);
    const choice = chunk.choices?.find((candidate) => (candidate.index ?? 0) === 0);
    if (choice === undefined) return '';
    const text = contentText(choice.delta?.content);
    const reasoning = reasoningIn(choice.delta);
    if (reasoning !== '') this.text.sink.thinking?.fragment(toFragment(reasoning));
    this.text.plain(text);
    for (const fragment of choice.delta?.tool_calls ?? []) this.#toolCalls.add(fragment);
    if (typeof choice.finish_reason === 'string' && choice.finish_reason !== '') this.#finish = choice.finish_reason;
    return text;
  }

  protected result(): ModelResult {
    const text = this.text.value();
    const toolCalls = this.#toolCalls.list(this.#id ?? '');
    return {
      text,
      toolCalls,
      finish: toFinish(this.#finish, toolCalls),
      usage: this.#usage === undefined ? estimateUsage(this.request, text, toolCalls) : this.believe(this.#usage),
      ...(this.#id === undefined ? {} : { responseId: this.#id }),
    };
  }
}

/** True when the chunk carries nothing but its text: `ChatStream` would only pass the text on. */
function isPure(chunk: Chunk): boolean {
  const choice = chunk.choices?.[0];
  const delta = choice?.delta;
  if (chunk.choices?.length !== 1 || delta === null || delta === undefined || (choice?.index ?? 0) !== 0) return false;
  if (choice?.finish_reason || chunk.usage || chunk.x_groq?.usage || typeof delta.content !== 'string') return false;
  return (!delta.tool_calls || delta.tool_calls.length === 0) && reasoningIn(delta) === '';
}

/** Returns the reasoning of a chunk; vendors use one of two names. */
function reasoningIn(delta: Readonly<Record<string, unknown>> | null | undefined): string {
  const text = delta?.['reasoning_content'] ?? delta?.['reasoning'];
  return typeof text === 'string' ? text : '';
}

function pureText(data: string): string | undefined {
  const chunk = Chunk().safeParse(parse(data));
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
