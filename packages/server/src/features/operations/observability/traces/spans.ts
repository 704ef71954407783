import { AsyncLocalStorage } from 'node:async_hooks';
import type { Context, Span, SpanOptions } from '@opentelemetry/api';
import { ROOT_CONTEXT, SpanStatusCode, trace, TraceFlags, type Tracer } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { ParentBasedSampler, RandomIdGenerator, SamplingDecision, TraceIdRatioBasedSampler, TracerProvider } from '@opentelemetry/sdk-trace';
import { ModelError } from '../../../../llm/model.ts';
import { OtlpExporter, type OtlpExporterDeps } from './otlp-exporter.ts';

const sampled = SamplingDecision.RECORD_AND_SAMPLED;
/** Traces whose callers decided about them, of which the newest are known. */
const maxDecided = 1_000;

/** Position of the current work in its trace. */
export interface SpanScope {
  readonly context: Context;
  readonly conversationRef?: string;
}

export interface SpansDeps extends OtlpExporterDeps {
  readonly version: string;
  /** Share of the traces that are kept. */
  readonly sampleRatio: number;
}

export interface SpanStart extends SpanOptions {
  readonly name: string;
  readonly parent: SpanScope | undefined;
  /** The trace of a span without a parent; log, events and rows carry the same id. */
  readonly traceId?: string;
  /** That of a span made of a record; random otherwise. */
  readonly spanId?: string;
}

/** Begins and ends spans, and knows the one that the current work belongs to. */
export class Spans implements AsyncDisposable {
  readonly #scope = new AsyncLocalStorage<SpanScope>();
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;
  /** Id for the next span without a parent. */
  #nextTraceId: string | undefined;
  #nextSpanId: string | undefined;
  readonly #ratio: TraceIdRatioBasedSampler;
  readonly #decided = new Map<string, boolean>();

  constructor({ version, sampleRatio, ...exporter }: SpansDeps) {
    const random = new RandomIdGenerator();
    this.#ratio = new TraceIdRatioBasedSampler(sampleRatio);
    this.#provider = new TracerProvider({
      resource: resourceFromAttributes({ 'service.name': 'gatehouse', 'service.version': version }),
      sampler: new ParentBasedSampler({
        root: {
          shouldSample: (_, traceId) => ({ decision: this.#isKept(traceId) ? sampled : SamplingDecision.NOT_RECORD }),
          toString: () => 'gatehouse',
        },
      }),
      idGenerator: {
        generateTraceId: () => this.#nextTraceId ?? random.generateTraceId(),
        generateSpanId: () => this.#nextSpanId ?? random.generateSpanId(),
      },
      spanProcessors: [new OtlpExporter(exporter)],
    });
    this.#tracer = this.#provider.getTracer('gatehouse', version);
  }

  current(): SpanScope | undefined {
    return this.#scope.getStore();
  }

  begin({ name, parent, traceId, spanId, ...options }: SpanStart): Span {
    this.#nextTraceId = traceId;
    this.#nextSpanId = spanId;
    const span = this.#tracer.startSpan(name, options, parent?.context ?? ROOT_CONTEXT);
    this.#nextTraceId = undefined;
    this.#nextSpanId = undefined;
    return span;
  }

  /** Returns the position below a span that was sent earlier, or will be. */
  below(traceId: string, spanId: string): SpanScope {
    const traceFlags = this.#isKept(traceId) ? TraceFlags.SAMPLED : TraceFlags.NONE;
    return { context: trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags }) };
  }

  /** Stores the decision of a caller, for spans of the trace that are written later. */
  obey(traceId: string, isKept: boolean): void {
    this.#decided.delete(traceId);
    this.#decided.set(traceId, isKept);
    const [oldest] = this.#decided.keys();
    if (this.#decided.size > maxDecided && oldest !== undefined) this.#decided.delete(oldest);
  }

  #isKept(traceId: string): boolean {
    return this.#decided.get(traceId) ?? this.#ratio.shouldSample(ROOT_CONTEXT, traceId).decision === sampled;
  }

  /** Runs `work` inside a span, and ends it; `faultOf` returns what is wrong with a result, undefined when nothing is. */
  async run<T>(start: SpanStart, work: () => T | Promise<T>, faultOf: (result: T, span: Span) => string | undefined = () => undefined): Promise<T> {
    const span = this.begin(start);
    const scope: SpanScope = { ...start.parent, context: trace.setSpan(start.parent?.context ?? ROOT_CONTEXT, span) };
    try {
      const result = await this.#scope.run(scope, work);
      markFailed(span, faultOf(result, span));
      return result;
    } catch (error) {
      markFailed(span, kindOf(error));
      throw error;
    } finally {
      span.end();
    }
  }

  /** Runs `work` as part of a conversation. */
  inConversation<T>(conversationRef: string, work: () => Promise<T>): Promise<T> {
    return this.#scope.run({ context: this.current()?.context ?? ROOT_CONTEXT, conversationRef }, work);
  }

  /** Sends pending spans; waits at most two seconds for a collector that does not answer. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#provider.shutdown();
  }
}

export function conversationOf(scope: SpanScope | undefined): { 'gen_ai.conversation.id'?: string } {
  return scope?.conversationRef === undefined ? {} : { 'gen_ai.conversation.id': scope.conversationRef };
}

/** Marks a span as failed; never with the text of an error, which may contain what a person wrote. */
export function markFailed(span: Span, kind: string | undefined): void {
  if (kind === undefined) return;
  span.setAttribute('error.type', kind);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** Names an error without its text. */
export function kindOf(error: unknown): string {
  if (error instanceof ModelError) return error.kind;
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  return 'internal';
}
