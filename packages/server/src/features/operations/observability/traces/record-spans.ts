import { trace, ROOT_CONTEXT, SpanKind, type Span } from '@opentelemetry/api';
import type { TraceRecord, TraceStep } from '@gatehouse/contract';
import { conversationOf, markFailed, type Spans, type SpanScope } from './spans.ts';

type Ended = TraceRecord & { readonly endedAtMs: number };

/** Writes the spans of work that has ended, from its record: those of a turn below the request that it answers. */
export function writeSpans(spans: Spans, record: Ended): void {
  const parent = spans.current();
  const own = record.kind === 'turn' ? writeTurn(spans, record, parent) : parent;
  const scopes = new Map<number, SpanScope | undefined>();
  for (const step of record.steps) {
    // A step that writes no span passes its parent on to those below it.
    const above = step.parent === undefined ? own : scopes.get(step.parent);
    scopes.set(step.id, writeStep(spans, record, step, above));
  }
}

function writeTurn(spans: Spans, record: Ended, parent: SpanScope | undefined): SpanScope {
  const span = spans.begin({
    name: `invoke_agent ${record.agentId}`,
    startTime: record.startedAtMs,
    parent,
    traceId: record.traceId,
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.id': record.agentId,
      'gatehouse.turn.id': record.id,
      'gatehouse.turn.origin': record.origin,
      'gen_ai.usage.input_tokens': record.tokens.in,
      'gen_ai.usage.output_tokens': record.tokens.out,
      ...(record.endReason !== null && { 'gen_ai.response.finish_reasons': [record.endReason] }),
      ...conversationOf(parent),
    },
  });
  markFailed(span, record.error?.kind);
  return ended(span, record.endedAtMs, parent);
}

function writeStep(spans: Spans, record: Ended, step: TraceStep, parent: SpanScope | undefined): SpanScope | undefined {
  if (step.kind !== 'attempt' && step.kind !== 'tool') return parent;
  const startTime = record.startedAtMs + step.at;
  const start = { startTime, parent, traceId: record.traceId };
  const about = { ...(record.agentId !== undefined && { 'gen_ai.agent.id': record.agentId }), ...conversationOf(parent) };
  const span =
    step.kind === 'tool'
      ? spans.begin({
          ...start,
          name: `execute_tool ${step.name}`,
          attributes: { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': step.name, 'gen_ai.tool.type': 'function', ...about },
        })
      : spans.begin({ ...start, ...attemptOf(record, step), attributes: { ...attemptOf(record, step).attributes, ...about } });
  if (step.outcome !== 'ok' && step.outcome !== 'background') markFailed(span, step.error?.kind ?? step.outcome);
  return ended(span, startTime + (step.ms ?? 0), parent);
}

function attemptOf({ steps }: TraceRecord, { name, tokens, facts, parent, outcome }: TraceStep) {
  const slash = name.indexOf('/');
  const model = name.slice(slash + 1);
  const call = steps.find(({ id }) => id === parent)?.facts;
  const sent = {
    'gen_ai.request.temperature': call?.['temperature'],
    'gen_ai.request.max_tokens': call?.['maxTokens'],
    'gen_ai.response.id': facts?.['responseId'],
  };
  return {
    name: `chat ${model}`,
    kind: SpanKind.CLIENT,
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': name.slice(0, slash),
      'gen_ai.request.model': model,
      'gen_ai.usage.input_tokens': tokens?.in ?? 0,
      'gen_ai.usage.output_tokens': tokens?.out ?? 0,
      'gen_ai.usage.cache_read.input_tokens': tokens?.cached ?? 0,
      ...Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== undefined)),
      ...(outcome === 'ok' && call?.['finish'] !== undefined && { 'gen_ai.response.finish_reasons': [String(call['finish'])] }),
    },
  };
}

function ended(span: Span, atMs: number, parent: SpanScope | undefined): SpanScope {
  span.end(atMs);
  return { ...parent, context: trace.setSpan(parent?.context ?? ROOT_CONTEXT, span) };
}
