import { AsyncLocalStorage } from 'node:async_hooks';
import type { Context, Span, SpanOptions } from '@opentelemetry/api';
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { ParentBasedSampler, RandomIdGenerator, TraceIdRatioBasedSampler, TracerProvider } from '@opentelemetry/sdk-trace';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Handlers } from '../../../../kernel/handlers.ts';
import type { Log } from '../../../../kernel/log.ts';
import { ModelError, type ModelResult } from '../../../../llm/model.ts';
import type { Attempt, Models } from '../../../../llm/models.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import type { RunTurn } from '../../../../runtime/turn.ts';
import type { TransportTracer } from '../api.ts';
import type { TracesConfig } from '../config.ts';
import { createOtlpExporter } from './otlp-exporter.ts';

/** Context of the current work. */
interface Place {
  readonly context: Context;
  readonly conversationRef?: string;
}

const w3cParent = /^00-([0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})$/;

export interface TracesDeps {
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Spans by the semantic conventions of OpenTelemetry for HTTP, RPC and GenAI, sent to the collector of the operator.
 * They say what ran, for how long and what it used; they never contain text of prompts, answers, arguments or results.
 * This module is loaded only when traces are configured: otherwise nothing is wrapped and there is no cost.
 */
export function openTraces(config: TracesConfig, { version, clock, log }: TracesDeps) {
  const place = new AsyncLocalStorage<Place>();
  const random = new RandomIdGenerator();
  /** Id for the next span without a parent: traces use the ids of log, events and rows. */
  let nextTraceId: string | undefined;
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'gatehouse', 'service.version': version }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(config.sampleRatio) }),
    idGenerator: { generateTraceId: () => nextTraceId ?? random.generateTraceId(), generateSpanId: () => random.generateSpanId() },
    spanProcessors: [createOtlpExporter({ config, clock, log })],
  });
  const tracer = provider.getTracer('gatehouse', version);

  function begin(name: string, options: SpanOptions, parent: Context, traceId?: string): Span {
    nextTraceId = traceId;
    const span = tracer.startSpan(name, options, parent);
    nextTraceId = undefined;
    return span;
  }

  /** Runs `work` inside `span`, and ends it; `fault` returns what is wrong with a result, undefined when nothing is. */
  async function within<T>(span: Span, parent: Place | undefined, work: () => T | Promise<T>, close: (result: T) => string | undefined): Promise<T> {
    const here: Place = { ...parent, context: trace.setSpan(parent?.context ?? ROOT_CONTEXT, span) };
    try {
      const result = await place.run(here, work);
      fail(span, close(result));
      return result;
    } catch (error) {
      fail(span, kindOf(error));
      throw error;
    } finally {
      span.end();
    }
  }

  const transports: TransportTracer = {
    request({ route, method, traceId, traceparent, status }, run) {
      const options = { kind: SpanKind.SERVER, attributes: { 'http.request.method': method, 'http.route': route } };
      const span = begin(`${method} ${route}`, options, remoteParent(traceparent), traceId);
      return within(span, undefined, run, () => {
        const code = status();
        span.setAttribute('http.response.status_code', code);
        return code >= 500 ? String(code) : undefined;
      });
    },
  };

  /** One span per method, below that of its request; over a WebSocket it is the first of its trace. */
  function handlers<H extends Partial<Handlers>>(all: H): H {
    const traced = Object.entries(all).map(([method, handler]) => [
      method,
      (params: never, call: CallContext) => {
        const parent = place.getStore();
        const options = { kind: SpanKind.SERVER, attributes: { 'rpc.system': 'jsonrpc', 'rpc.method': method } };
        const span = begin(method, options, parent?.context ?? ROOT_CONTEXT, call.traceId);
        return within(
          span,
          parent,
          () => (handler as (params: never, call: CallContext) => Promise<unknown>)(params, call),
          () => undefined,
        );
      },
    ]);
    // The same names with functions of the same types: a mapped object loses that on its way through entries.
    return Object.fromEntries(traced) as H;
  }

  const runTurn =
    (run: RunTurn): RunTurn =>
    (input, sink) => {
      const parent = place.getStore();
      const attributes = {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.id': input.agentId,
        'gatehouse.turn.id': input.turnId,
        'gatehouse.turn.origin': input.origin,
        ...conversation(parent),
      };
      const span = begin(`invoke_agent ${input.agentId}`, { attributes }, parent?.context ?? ROOT_CONTEXT, input.traceId);
      return within(
        span,
        parent,
        () => run(input, sink),
        (result) => {
          const used = result.calls.reduce((sum, call) => ({ input: sum.input + call.usage.input, output: sum.output + call.usage.output }), {
            input: 0,
            output: 0,
          });
          span.setAttributes({
            'gen_ai.response.finish_reasons': [result.finishReason],
            'gen_ai.usage.input_tokens': used.input,
            'gen_ai.usage.output_tokens': used.output,
          });
          return result.failure?.kind;
        },
      );
    };

  /** One span per attempt, from its own times. */
  const generate =
    (inner: Models['generate']): Models['generate'] =>
    async (call, sink) => {
      const parent = place.getStore();
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
          const options = {
            kind: SpanKind.CLIENT,
            startTime: attempt.startedAtMs,
            attributes: { ...ofAttempt(attempt, call), ...conversation(parent) },
          };
          const span = begin(`chat ${attempt.model.modelId}`, options, parent?.context ?? ROOT_CONTEXT);
          if (last && result !== undefined) span.setAttribute('gen_ai.response.finish_reasons', [result.finish]);
          fail(span, attempt.outcome === 'ok' ? undefined : last ? kindOf(error) : 'error');
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

  function tool(one: Tool): Tool {
    return {
      ...one,
      run(args, context) {
        const parent = place.getStore();
        const attributes = {
          'gen_ai.operation.name': 'execute_tool',
          'gen_ai.tool.name': one.name,
          'gen_ai.tool.type': 'function',
          'gen_ai.agent.id': context.agentId,
          ...conversation(parent),
        };
        const span = begin(`execute_tool ${one.name}`, { attributes }, parent?.context ?? ROOT_CONTEXT, context.traceId);
        return within(
          span,
          parent,
          () => one.run(args, context),
          (result) => (result.isError === true ? 'tool_error' : undefined),
        );
      },
    };
  }

  return {
    transports,
    handlers,
    runTurn,
    generate,
    tool,
    /** Assigns turns that run inside to this conversation. */
    inConversation<T>(conversationRef: string, run: () => Promise<T>): Promise<T> {
      return place.run({ context: place.getStore()?.context ?? ROOT_CONTEXT, conversationRef }, run);
    },
    /** Sends pending spans; waits at most two seconds for a collector that does not answer. */
    [Symbol.asyncDispose]: () => provider.shutdown(),
  };
}

function remoteParent(traceparent: string | undefined): Context {
  const [, traceId, spanId, flags] = w3cParent.exec(traceparent ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined || /^0{32}$/.test(traceId)) return ROOT_CONTEXT;
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}

function conversation(place: Place | undefined): { 'gen_ai.conversation.id'?: string } {
  return place?.conversationRef === undefined ? {} : { 'gen_ai.conversation.id': place.conversationRef };
}

function ofAttempt({ model, usage, responseId }: Attempt, call: Parameters<Models['generate']>[0]) {
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

/** Marks a span as failed; never with the text of an error, which may contain what a person wrote. */
function fail(span: Span, kind: string | undefined): void {
  if (kind === undefined) return;
  span.setAttribute('error.type', kind);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

function kindOf(error: unknown): string {
  if (error instanceof ModelError) return error.kind;
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return 'internal';
}
