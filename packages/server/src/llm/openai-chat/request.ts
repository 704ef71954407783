import type { ModelMessage, ModelPart, ModelRequest } from '../model.ts';
import type { Vendor } from '../vendors.ts';
import { toolCallId } from '../wire/tool-call-id.ts';
import { putOptions } from './options.ts';

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
