import { effortOf, type ResponseObject, type ResponseOutputItem, type ResponseRequest } from '@gatehouse/contract';
import type { TurnOutcome } from '../../../features/conversations/turns/api.ts';
import type { AppError } from '../../../kernel/app-error.ts';
import type { ToolCall } from '../../../llm/model.ts';
import { failureOf, isEarlyEnd } from '../v1-failure.ts';
import { type createCallNames, functionsOf } from './namespaces.ts';

type CallNames = ReturnType<typeof createCallNames>;
type Status = ResponseOutputItem['status'];

/** Returns the id of an item; it contains the response's id, so that a reference to the item finds where it is stored. */
export function itemId(prefix: 'msg' | 'fc', responseId: string, index: number): string {
  return `${prefix}${responseId.slice('resp'.length)}_${index}`;
}

/** Returns the response that an item of this id would belong to; undefined for ids of other servers. */
export function responseOfItem(id: string): string | undefined {
  const uuid = /^(?:msg|fc)_([0-9a-f-]{36})_\d+$/.exec(id)?.[1];
  return uuid === undefined ? undefined : `resp_${uuid}`;
}

export function messageItem(responseId: string, status: Status, text?: string): ResponseOutputItem {
  return { type: 'message', id: itemId('msg', responseId, 0), status, role: 'assistant', content: text === undefined ? [] : [textPart(text)] };
}

export function textPart(text: string): { type: 'output_text'; text: string; annotations: never[]; logprobs: never[] } {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

export function callItem(responseId: string, index: number, status: Status, call: ToolCall, names: CallNames): ResponseOutputItem {
  return { type: 'function_call', id: itemId('fc', responseId, index), status, call_id: call.id, ...names(call.name), arguments: call.arguments };
}

/** Returns the response at the start of the turn, with the effective values of everything that the request omitted. */
export function openResponse(id: string, createdAt: number, request: ResponseRequest): ResponseObject {
  return {
    id,
    object: 'response',
    created_at: createdAt,
    completed_at: null,
    status: 'in_progress',
    incomplete_details: null,
    error: null,
    model: request.model,
    previous_response_id: request.previous_response_id ?? null,
    instructions: request.instructions ?? null,
    output: [],
    tools: functionsOf(request).map((tool) => ({
      type: 'function',
      name: tool.name,
      description: tool.description ?? null,
      parameters: tool.parameters ?? null,
      strict: tool.strict ?? null,
    })),
    tool_choice: request.tool_choice ?? 'auto',
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    max_tool_calls: request.max_tool_calls ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    temperature: request.temperature ?? 1,
    top_p: request.top_p ?? 1,
    presence_penalty: request.presence_penalty ?? 0,
    frequency_penalty: request.frequency_penalty ?? 0,
    top_logprobs: 0,
    text: { format: formatOf(request), verbosity: request.text?.verbosity ?? 'medium' },
    reasoning: {
      effort: request.reasoning?.effort == null ? null : effortOf(request.reasoning.effort),
      summary: request.reasoning?.summary ?? request.reasoning?.generate_summary ?? null,
    },
    truncation: request.truncation ?? 'disabled',
    store: request.store ?? true,
    background: false,
    service_tier: 'default',
    metadata: request.metadata ?? {},
    user: request.user ?? null,
    safety_identifier: request.safety_identifier ?? null,
    prompt_cache_key: request.prompt_cache_key ?? null,
    usage: null,
  };
}

function formatOf({ text }: ResponseRequest): ResponseObject['text']['format'] {
  const format = text?.format ?? { type: 'text' as const };
  if (format.type !== 'json_schema') return format;
  return { ...format, description: format.description ?? null, strict: format.strict ?? false };
}

/** Returns the response at the end of its turn, `nowMs`; `names` is what the client calls its functions. */
export function closedResponse(open: ResponseObject, outcome: TurnOutcome, nowMs: number, names: CallNames): ResponseObject {
  const failure = isEarlyEnd(outcome) ? undefined : failureOf(outcome, 'input');
  const reason = incompleteReason(outcome);
  const status = failure !== undefined ? 'failed' : reason === undefined ? 'completed' : 'incomplete';
  const calls = outcome.clientCalls ?? [];
  const texts =
    outcome.text === '' && calls.length > 0 ? [] : [messageItem(open.id, status === 'completed' ? 'completed' : 'incomplete', outcome.text)];
  return {
    ...open,
    status,
    completed_at: status === 'completed' ? Math.floor(nowMs / 1000) : null,
    incomplete_details: status === 'incomplete' ? { reason: reason ?? outcome.finishReason } : null,
    error: failure === undefined ? null : errorOf(failure),
    store: open.store && status !== 'failed',
    output: [...texts, ...calls.map((call, index) => callItem(open.id, texts.length + index, 'completed', call, names))],
    ...(outcome.leftOut !== undefined && { gatehouse: { left_out_messages: outcome.leftOut } }),
    usage: usageOf(outcome),
  };
}

export function usageOf({ tokensUsed, cachedInput }: TurnOutcome): NonNullable<ResponseObject['usage']> {
  return {
    input_tokens: tokensUsed.input,
    input_tokens_details: { cached_tokens: cachedInput },
    output_tokens: tokensUsed.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: tokensUsed.total,
  };
}

/** The turn counts the provider's length limit as its step limit (decisions §3). */
function incompleteReason({ finishReason }: TurnOutcome): string | undefined {
  if (finishReason === 'stop' || finishReason === 'command') return undefined;
  return finishReason === 'max_steps' || finishReason === 'output_starved' ? 'max_output_tokens' : finishReason;
}

/** Returns the error of a response that failed after it had started. */
export function errorOf(error: AppError): NonNullable<ResponseObject['error']> {
  const codes: Partial<Record<AppError['code'], string>> = { rate_limited: 'rate_limit_exceeded', invalid_params: 'invalid_prompt' };
  return { code: error.details.reason ?? codes[error.code] ?? 'server_error', message: error.message };
}
