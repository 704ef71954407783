import { hash } from 'node:crypto';
import { type Attributes, trace, ROOT_CONTEXT, SpanKind, type Span } from '@opentelemetry/api';
import type { TraceRecord, TraceStep } from '@gatehouse/contract';
import { conversationOf, markFailed, type Spans, type SpanScope } from './spans.ts';

type Ended = TraceRecord & { readonly endedAtMs: number };

/**
 * Writes the spans of work that has ended, from its record: those of a turn below the request that it answers. Their ids follow from the id of
 * the record, so that a record that is exported again adds nothing.
 */
export function writeSpans(spans: Spans, record: Ended): void {
  const own = record.kind === 'turn' ? writeTurn(spans, record, spans.current()) : writeWork(spans, record);
  const scopes = new Map<number, SpanScope | undefined>();
  for (const step of record.steps) {
    // A step that writes no span passes its parent on to those below it.
    const above = step.parent === undefined ? own : scopes.get(step.parent);
    scopes.set(step.id, writeStep(spans, record, step, above));
  }
}

/** Returns the id of the span of a record, or of one of its steps. */
function spanIdOf(recordId: string, step?: number): string {
  return hash('sha256', step === undefined ? recordId : `${recordId}#${step}`).slice(0, 16);
}

/** Writes the span of a delivery, of speech or pictures, or of a terminal session; other work has none. */
function writeWork(spans: Spans, record: Ended): SpanScope | undefined {
  const about = record.kind === 'delivery' ? deliveryOf(record) : record.kind === 'media' ? mediaOf(record) : terminalOf(record);
  const parent = parentOf(spans, record);
  if (about === undefined) return parent;
  const { id, traceId, agentId, parentId, conversationRef, startedAtMs, endedAtMs, endReason } = record;
  const given = {
    'gen_ai.agent.id': agentId,
    'gen_ai.conversation.id': conversationRef,
    'gatehouse.turn.id': parentId,
    'gatehouse.end_reason': endReason ?? undefined,
  };
  const span = spans.begin({
    ...about,
    startTime: startedAtMs,
    parent,
    traceId,
    spanId: spanIdOf(id),
    attributes: { 'gatehouse.record.id': id, ...withoutGaps(given), ...withoutGaps(about.attributes) },
  });
  if (record.outcome === 'failed') markFailed(span, record.error?.kind ?? record.endReason ?? 'failed');
  return ended(span, Math.max(startedAtMs, endedAtMs), parent);
}

/** The span of the turn that caused the work, where it has the same trace; otherwise the request that it is part of. */
function parentOf(spans: Spans, { kind, traceId, parentId }: Ended): SpanScope | undefined {
  // Deliveries run later, each in a separate trace.
  if (parentId !== undefined && kind !== 'delivery') return spans.below(traceId, spanIdOf(parentId));
  const current = spans.current();
  const isPart = current !== undefined && trace.getSpanContext(current.context)?.traceId === traceId;
  return isPart ? current : undefined;
}

type About = { readonly name: string; readonly kind: SpanKind; readonly attributes: Attributes };

function deliveryOf({ channelType = 'unknown', channelId, origin, refs }: Ended): About {
  const isIncoming = origin === 'webhook';
  return {
    name: `${isIncoming ? 'process' : 'send'} ${channelType}`,
    kind: isIncoming ? SpanKind.CONSUMER : SpanKind.PRODUCER,
    attributes: {
      'messaging.system': channelType,
      'messaging.operation.type': isIncoming ? 'process' : 'send',
      'messaging.destination.name': channelId,
      'gatehouse.delivery.id': refs['deliveryId'],
    },
  };
}

function mediaOf({ model, facts }: Ended): About {
  const operation = String(facts['operation'] ?? 'media');
  const provider = facts['provider'];
  const name = typeof provider === 'string' && model?.startsWith(`${provider}/`) === true ? model.slice(provider.length + 1) : model;
  return {
    name: name === null ? operation : `${operation} ${name}`,
    kind: SpanKind.CLIENT,
    attributes: { 'gen_ai.operation.name': operation, 'gen_ai.provider.name': provider, 'gen_ai.request.model': name ?? undefined },
  };
}

/** A task of the tool `terminal` that ran in the background, or a session that was ended for lack of use. */
function terminalOf({ kind, facts, refs }: Ended): About | undefined {
  if (kind !== 'background' || facts['tool'] !== 'terminal') return undefined;
  return {
    name: 'terminal',
    kind: SpanKind.INTERNAL,
    attributes: { 'gatehouse.terminal.id': refs['terminalId'], 'gatehouse.task.id': refs['taskId'], 'gatehouse.event': facts['event'] },
  };
}

const withoutGaps = (attributes: Attributes): Attributes => Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));

function writeTurn(spans: Spans, record: Ended, parent: SpanScope | undefined): SpanScope {
  const span = spans.begin({
    name: `invoke_agent ${record.agentId}`,
    startTime: record.startedAtMs,
    parent,
    traceId: record.traceId,
    spanId: spanIdOf(record.id),
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
  const start = { startTime, parent, traceId: record.traceId, spanId: spanIdOf(record.id, step.id) };
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

function attemptOf({ kind, steps }: TraceRecord, { name, tokens, facts, parent, outcome }: TraceStep) {
  const slash = name.indexOf('/');
  const model = name.slice(slash + 1);
  const operation = kind === 'embedding' ? 'embeddings' : 'chat';
  const call = steps.find(({ id }) => id === parent)?.facts;
  const sent = {
    'gen_ai.request.temperature': call?.['temperature'],
    'gen_ai.request.max_tokens': call?.['maxTokens'],
    'gen_ai.response.id': facts?.['responseId'],
  };
  return {
    name: `${operation} ${model}`,
    kind: SpanKind.CLIENT,
    attributes: {
      'gen_ai.operation.name': operation,
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
