import { type Span, SpanKind } from '@opentelemetry/api';
import type { ModelResult } from '../../../../llm/model.ts';
import type { Attempt, Models } from '../../../../llm/models.ts';
import { conversationOf, kindOf, markFailed, type Spans } from './spans.ts';

/** Writes one span per attempt of a model call, from its own times. */
export function traceAttempts(spans: Spans, inner: Models['generate']): Models['generate'] {
  return async (call, sink) => {
    const parent = spans.current();
    const attempts: Attempt[] = [];
    const observed = {
      ...call,
      onAttempt(attempt: Attempt): void {
        attempts.push(attempt);
        call.onAttempt(attempt);
      },
    };
    const write = (result: ModelResult | undefined, error: unknown): void => {
      for (const [index, attempt] of attempts.entries()) {
        const last = index === attempts.length - 1;
        const span: Span = spans.begin({
          name: `chat ${attempt.model.modelId}`,
          kind: SpanKind.CLIENT,
          startTime: attempt.startedAtMs,
          attributes: { ...attributesOf(attempt, call), ...conversationOf(parent) },
          parent,
        });
        if (last && result !== undefined) span.setAttribute('gen_ai.response.finish_reasons', [result.finish]);
        markFailed(span, attempt.outcome === 'ok' ? undefined : last ? kindOf(error) : 'error');
        span.end(attempt.startedAtMs + attempt.latencyMs);
      }
    };
    try {
      const answer = await inner(observed, sink);
      write(answer.result, undefined);
      return answer;
    } catch (error) {
      write(undefined, error);
      throw error;
    }
  };
}

function attributesOf({ model, usage, responseId }: Attempt, call: Parameters<Models['generate']>[0]) {
  const { temperature, maxTokens } = call.request;
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': model.provider,
    'gen_ai.request.model': model.modelId,
    'gen_ai.agent.id': call.agentId,
    'gen_ai.usage.input_tokens': usage.input,
    'gen_ai.usage.output_tokens': usage.output,
    'gen_ai.usage.cache_read.input_tokens': usage.cacheRead,
    ...(temperature !== undefined && { 'gen_ai.request.temperature': temperature }),
    ...(maxTokens !== undefined && { 'gen_ai.request.max_tokens': maxTokens }),
    ...(responseId !== undefined && { 'gen_ai.response.id': responseId }),
  };
}
