import type { Context } from '@opentelemetry/api';
import { ROOT_CONTEXT, SpanKind, trace, TraceFlags } from '@opentelemetry/api';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Handlers } from '../../../../kernel/handlers.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { TransportTracer } from '../api.ts';
import type { TracesConfig } from '../config.ts';
import type { EndedRecord } from '../../traces/api.ts';
import { writeSpans } from './record-spans.ts';
import { Spans } from './spans.ts';

const w3cParent = /^00-([0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})$/;

export interface TracesDeps {
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Spans by the semantic conventions of OpenTelemetry for HTTP, RPC and GenAI, sent to the collector of the operator.
 * They say what ran, for how long and what it used; they never contain text of prompts, answers, arguments or results.
 * Those of turns come from the same records as `obs.trace.get`. Loaded only when traces are configured: otherwise there is no cost.
 */
export function openTraces(config: TracesConfig, deps: TracesDeps) {
  const spans = new Spans({ ...deps, config, sampleRatio: config.sampleRatio });
  const transports: TransportTracer = { request: (about, run) => traceRequest(spans, about, run) };
  return {
    transports,
    handlers: <H extends Partial<Handlers>>(all: H): H => traceHandlers(spans, all),
    /** Writes the spans of a turn, or of other work, that has ended. */
    write: (record: EndedRecord): void => writeSpans(spans, record),
    /** Assigns turns that run inside to this conversation. */
    inConversation: <T>(conversationRef: string, run: () => Promise<T>): Promise<T> => spans.inConversation(conversationRef, run),
    [Symbol.asyncDispose]: () => spans[Symbol.asyncDispose](),
  };
}

function traceRequest<T>(spans: Spans, about: Parameters<TransportTracer['request']>[0], run: () => T | Promise<T>): Promise<T> {
  const { route, method, traceId, traceparent, status } = about;
  const attributes = { 'http.request.method': method, 'http.route': route };
  const parent = { context: remoteParent(traceparent) };
  const remote = trace.getSpanContext(parent.context);
  if (remote !== undefined) spans.obey(remote.traceId, (remote.traceFlags & TraceFlags.SAMPLED) !== 0);
  return spans.run({ name: `${method} ${route}`, kind: SpanKind.SERVER, attributes, parent, traceId }, run, (_result, span) => {
    const code = status();
    span.setAttribute('http.response.status_code', code);
    return code >= 500 ? String(code) : undefined;
  });
}

/** One span per method, below that of its request; over a WebSocket it is the first of its trace. */
function traceHandlers<H extends Partial<Handlers>>(spans: Spans, all: H): H {
  const traced = Object.entries(all).map(([method, handler]) => [
    method,
    (params: never, call: CallContext) => {
      const attributes = { 'rpc.system': 'jsonrpc', 'rpc.method': method };
      const start = { name: method, kind: SpanKind.SERVER, attributes, parent: spans.current(), traceId: call.traceId };
      return spans.run(start, () => (handler as (params: never, call: CallContext) => Promise<unknown>)(params, call));
    },
  ]);
  // The same names with functions of the same types: a mapped object loses that on its way through entries.
  return Object.fromEntries(traced) as H;
}

function remoteParent(traceparent: string | undefined): Context {
  const [, traceId, spanId, flags] = w3cParent.exec(traceparent ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined || /^0{32}$/.test(traceId)) return ROOT_CONTEXT;
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}
