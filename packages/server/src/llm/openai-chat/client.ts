import { toFragment } from '../../kernel/json-fragment.ts';
import { type ModelClient, ModelError, type ModelRequest, type ModelResult, type ModelSink, type ModelMessage, type ModelPart } from '../model.ts';
import type { Vendor } from '../vendors.ts';
import type { AnswerReader, Upstream } from '../wire/upstream.ts';
import { believable, bodyBytes } from '../wire/answer-bound.ts';
import { estimateUsage } from '../wire/usage.ts';
import { readWholeAnswer } from '../wire/whole-answer.ts';
import { contentText, ToolCalls, toFinish, toUsage, Whole } from './answer.ts';
import { ChatStream } from './stream.ts';
import { toolCallId } from '../wire/tool-call-id.ts';
import { putOptions } from './options.ts';

/** Creates a client of the OpenAI-style chat completions wire, which nearly every vendor and local server supports. */
export function createChatClient(upstream: Upstream, vendor: Vendor, fastStreams = true): ModelClient {
  let streamOptions = vendor.streamOptions;
  async function generate(request: ModelRequest, sink?: ModelSink, key?: number): Promise<ModelResult> {
    const call = { path: '/chat/completions', timeoutMs: request.timeoutMs, signal: request.signal };
    const send = () =>
      upstream.post(
        { ...call, body: chatBody(request, vendor, { stream: sink !== undefined, streamOptions }) },
        answerReader(request, sink, fastStreams),
        key,
      );
    try {
      return await send();
    } catch (error) {
      // A server that refuses the field has done nothing yet; it is asked without the field from now on.
      const refused =
        streamOptions &&
        sink !== undefined &&
        error instanceof ModelError &&
        error.kind === 'bad_request' &&
        /stream_options|include_usage|include_obfuscation/.test(error.message);
      if (!refused) throw error;
      streamOptions = false;
      return await send();
    }
  }
  return { generate, [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose]() };
}

function answerReader(request: ModelRequest, sink: ModelSink | undefined, fastStreams: boolean): AnswerReader<ModelResult> {
  return {
    maxBodyBytes: bodyBytes(request),
    stream: sink === undefined ? undefined : new ChatStream(request, sink, fastStreams),
    whole(body) {
      const result = wholeAnswer(request, body);
      if (sink !== undefined && result.text !== '') {
        sink.text(toFragment(result.text));
        sink.flush();
      }
      return result;
    },
    unanswered: () => estimateUsage(request, '', []),
  };
}

function wholeAnswer(request: ModelRequest, body: Buffer): ModelResult {
  const { choices, usage, id } = readWholeAnswer(Whole(), body, 'chat completion');
  const choice = choices[0];
  const text = contentText(choice?.message.content);
  const calls = new ToolCalls();
  choice?.message.tool_calls?.forEach((fragment, index) => calls.add({ ...fragment, index }));
  const toolCalls = calls.list(id ?? '');
  return {
    text,
    toolCalls,
    finish: toFinish(choice?.finish_reason, toolCalls),
    usage: usage === null || usage === undefined ? estimateUsage(request, text, toolCalls) : believable(toUsage(usage), request, body.length),
    ...(typeof id === 'string' && id !== '' ? { responseId: id } : {}),
  };
}

/** Returns the JSON body of one chat completion, in the vendor's dialect. */
export function chatBody(request: ModelRequest, vendor: Vendor, options: { readonly stream: boolean; readonly streamOptions: boolean }): string {
  const { model, temperature, maxTokens } = request;
  const body: Record<string, unknown> = { model: model.modelId, messages: wireMessages(request, vendor), stream: options.stream };
  if (temperature !== undefined && !(temperature === 1 && vendor.fixedTemperature?.test(model.modelId) === true)) body['temperature'] = temperature;
  if (maxTokens !== undefined) body[vendor.maxTokensField] = maxTokens;
  if (options.stream && options.streamOptions)
    body['stream_options'] = vendor.obfuscation === true ? { include_usage: true, include_obfuscation: false } : { include_usage: true };
  if (request.tools.length > 0 && sendsTools(request, vendor))
    body['tools'] = request.tools.map(({ name, description, parameters, strict }) => ({
      type: 'function',
      function: { name, description, parameters, ...(strict === true && { strict }) },
    }));
  if (request.options !== undefined) putOptions(body, request, vendor);
  return JSON.stringify(body);
}

/** Whether to send tools: where calls cannot be forbidden, tools that must not be called are omitted. */
function sendsTools({ options }: ModelRequest, { limits = [] }: Vendor): boolean {
  return !limits.includes('tools') && !(options?.toolChoice === 'none' && limits.includes('toolChoice'));
}

function wireMessages(request: ModelRequest, vendor: Vendor) {
  const messages: unknown[] = [];
  const system = request.system.filter((part) => part !== '').join('\n\n');
  // Half of a surrogate pair is not valid text: many providers refuse the whole request for it.
  if (system !== '') messages.push({ role: 'system', content: system.toWellFormed() });
  for (const message of request.messages) {
    if (message.role === 'user') messages.push({ role: 'user', content: userContent(message, vendor) });
    else if (message.role === 'tool')
      messages.push({ role: 'tool', tool_call_id: toolCallId(message.toolCallId, vendor.toolCallId), content: message.content.toWellFormed() });
    else if (message.toolCalls === undefined || message.toolCalls.length === 0)
      messages.push({ role: 'assistant', content: message.content.toWellFormed(), ...reasoningOf(message, vendor) });
    else {
      messages.push({
        role: 'assistant',
        content: message.content === '' ? null : message.content.toWellFormed(),
        ...reasoningOf(message, vendor),
        tool_calls: message.toolCalls.map((call) => ({
          id: toolCallId(call.id, vendor.toolCallId),
          type: 'function',
          function: { name: call.name, arguments: call.arguments.toWellFormed() },
        })),
      });
    }
  }
  return messages;
}

type Of<Role> = Extract<ModelMessage, { role: Role }>;

function userContent({ content, parts, cacheMark }: Of<'user'>, vendor: Vendor): unknown {
  if (cacheMark !== true || vendor.cacheControl !== true) return parts?.map(wirePart) ?? content.toWellFormed();
  const blocks = (parts ?? [{ type: 'text' as const, text: content }]).map(wirePart);
  return blocks.map((block, index) => (index === blocks.length - 1 ? { ...block, cache_control: { type: 'ephemeral' } } : block));
}

function reasoningOf({ reasoning }: Of<'assistant'>, { reasoningField }: Vendor): Record<string, string> {
  return reasoning === undefined || reasoningField === undefined ? {} : { [reasoningField]: reasoning.toWellFormed() };
}

function wirePart(part: ModelPart): Record<string, unknown> {
  if (part.type === 'text') return { type: 'text', text: part.text.toWellFormed() };
  if (part.type === 'image') return { type: 'image_url', image_url: { url: part.url, ...(part.detail !== undefined && { detail: part.detail }) } };
  return { type: 'file', file: { filename: part.name.toWellFormed(), file_data: part.url } };
}
