import type { FakeAnswer } from './fake-provider.ts';

/** A stream divided into separate writes: the opening, one buffer per delta, the ending, and the frame of an error instead of it. */
export interface FakeFrames {
  readonly head: Buffer;
  readonly deltas: readonly Buffer[];
  readonly tail: Buffer;
  readonly error: Buffer;
}

const created = 1_760_000_000;
const completionId = 'chatcmpl-mock0000000000000000000000';
const messageId = 'msg_mock000000000000000000';
const scriptedError = { message: 'The provider broke off', type: 'server_error' };

function textDeltas(answer: FakeAnswer): readonly string[] {
  if (answer.text === undefined) return [];
  return typeof answer.text === 'string' ? [answer.text] : answer.text;
}

function bytes(answer: FakeAnswer, text: string) {
  return Buffer.from(answer.crlf === true ? text.replaceAll('\n', '\r\n') : text);
}

function openAiUsage(answer: FakeAnswer) {
  if (answer.usage === null || answer.usage === undefined) return undefined;
  const { input, output, cacheRead } = answer.usage;
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    ...(cacheRead === undefined ? {} : { prompt_tokens_details: { cached_tokens: cacheRead } }),
  };
}

function openAiFinish(answer: FakeAnswer) {
  return answer.finishReason ?? (answer.toolCalls === undefined ? 'stop' : 'tool_calls');
}

export function openAiFrames(model: string, answer: FakeAnswer): FakeFrames {
  const chunk = (choices: readonly unknown[], more: object = {}) =>
    `data: ${JSON.stringify({ id: completionId, object: 'chat.completion.chunk', created, model, system_fingerprint: 'fp_mock', choices, ...more })}\n\n`;
  const delta = (value: unknown, finish: string | null) => chunk([{ index: 0, delta: value, logprobs: null, finish_reason: finish }]);
  const usage = openAiUsage(answer);
  const calls = (answer.toolCalls ?? []).flatMap((call, index) => {
    const half = Math.ceil(call.arguments.length / 2);
    return [
      delta({ tool_calls: [{ index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } }] }, null),
      delta({ tool_calls: [{ index, function: { arguments: call.arguments.slice(0, half) } }] }, null),
      delta({ tool_calls: [{ index, function: { arguments: call.arguments.slice(half) } }] }, null),
    ];
  });
  const tail =
    delta({}, openAiFinish(answer)) + (usage === undefined ? '' : chunk([], { usage })) + (answer.noDone === true ? '' : 'data: [DONE]\n\n');
  return {
    head: bytes(answer, delta({ role: 'assistant', content: '' }, null)),
    deltas: [
      ...(answer.reasoning ?? []).map((reasoning) => delta({ reasoning_content: reasoning }, null)),
      ...textDeltas(answer).map((content) => delta({ content }, null)),
      ...calls,
    ].map((text) => bytes(answer, text)),
    tail: bytes(answer, tail),
    error: bytes(answer, `data: ${JSON.stringify({ error: answer.error ?? scriptedError })}\n\n`),
  };
}

export function openAiWhole(model: string, answer: FakeAnswer): Buffer {
  const toolCalls = answer.toolCalls?.map((call) => ({ id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments } }));
  const message = {
    role: 'assistant',
    content: textDeltas(answer).join(''),
    refusal: null,
    ...(toolCalls === undefined ? {} : { tool_calls: toolCalls }),
  };
  const choices = [{ index: 0, message, logprobs: null, finish_reason: openAiFinish(answer) }];
  return Buffer.from(
    JSON.stringify({
      id: completionId,
      object: 'chat.completion',
      created,
      model,
      choices,
      usage: openAiUsage(answer),
      system_fingerprint: 'fp_mock',
    }),
  );
}

function anthropicUsage(answer: FakeAnswer) {
  const usage = answer.usage ?? { input: 0, output: 0 };
  const cacheRead = usage.cacheRead ?? 0;
  const cacheWrite = usage.cacheWrite ?? 0;
  return {
    input_tokens: usage.input - cacheRead - cacheWrite,
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    output_tokens: usage.output,
  };
}

function anthropicStop(answer: FakeAnswer) {
  if (answer.finishReason !== undefined) return answer.finishReason;
  if (answer.stopSequence !== undefined) return 'stop_sequence';
  return answer.toolCalls === undefined ? 'end_turn' : 'tool_use';
}

export function anthropicFrames(model: string, answer: FakeAnswer): FakeFrames {
  const event = (type: string, value: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...value })}\n\n`;
  const message = {
    id: messageId,
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...anthropicUsage(answer), output_tokens: 1 },
  };
  const { thinking } = answer;
  const textIndex = thinking === undefined ? 0 : 1;
  const thoughts =
    thinking === undefined
      ? ''
      : event('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } }) +
        event('content_block_delta', { index: 0, delta: { type: 'thinking_delta', thinking: thinking.text } }) +
        event('content_block_delta', { index: 0, delta: { type: 'signature_delta', signature: thinking.signature } }) +
        event('content_block_stop', { index: 0 });
  const calls = (answer.toolCalls ?? []).flatMap((call, i) => {
    const index = textIndex + i + 1;
    const half = Math.ceil(call.arguments.length / 2);
    return [
      event('content_block_start', { index, content_block: { type: 'tool_use', id: call.id, name: call.name, input: {} } }),
      event('content_block_delta', { index, delta: { type: 'input_json_delta', partial_json: call.arguments.slice(0, half) } }),
      event('content_block_delta', { index, delta: { type: 'input_json_delta', partial_json: call.arguments.slice(half) } }),
      event('content_block_stop', { index }),
    ];
  });
  const texts = textDeltas(answer).map((text) => event('content_block_delta', { index: textIndex, delta: { type: 'text_delta', text } }));
  const tail =
    event('content_block_stop', { index: textIndex }) +
    event('message_delta', {
      delta: { stop_reason: anthropicStop(answer), stop_sequence: answer.stopSequence ?? null },
      usage: { output_tokens: anthropicUsage(answer).output_tokens },
    }) +
    event('message_stop', {});
  return {
    head: bytes(
      answer,
      event('message_start', { message }) +
        thoughts +
        event('content_block_start', { index: textIndex, content_block: { type: 'text', text: '' } }) +
        event('ping', {}),
    ),
    deltas: [...texts, ...calls].map((text) => bytes(answer, text)),
    tail: bytes(answer, tail),
    error: bytes(answer, event('error', { error: answer.error ?? { type: 'overloaded_error', message: 'Overloaded' } })),
  };
}

export function anthropicWhole(model: string, answer: FakeAnswer): Buffer {
  const text = textDeltas(answer).join('');
  const { thinking } = answer;
  const content = [
    ...(thinking === undefined ? [] : [{ type: 'thinking', thinking: thinking.text, signature: thinking.signature }]),
    ...(text === '' ? [] : [{ type: 'text', text }]),
    ...(answer.toolCalls ?? []).map((call) => ({ type: 'tool_use', id: call.id, name: call.name, input: JSON.parse(call.arguments) })),
  ];
  return Buffer.from(
    JSON.stringify({
      id: messageId,
      type: 'message',
      role: 'assistant',
      model,
      content,
      stop_reason: anthropicStop(answer),
      stop_sequence: answer.stopSequence ?? null,
      usage: anthropicUsage(answer),
    }),
  );
}
