import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';
import { TraceFlags } from '@opentelemetry/api';
import type { Client } from 'undici';
import * as z from 'zod';
import type { Clock } from '../../../../kernel/clock.ts';
import { parseJson } from '../../../../kernel/json.ts';
import type { Log } from '../../../../kernel/log.ts';
import { retryAfterOf } from '../../../../llm/wire/wire-error.ts';
import type { TracesConfig } from '../config.ts';
import { otlpRequest } from './otlp-json.ts';

const flushMs = 1_000;
/** Deadline of one request, from its first byte to the end of the answer. */
const requestMs = 5_000;
/** How long a stop waits for the collector. */
const lastChanceMs = 2_000;
const maxBatch = 512;
/** Pending spans, in addition to the batch in flight; further ones are dropped. */
const maxWaiting = 2_048;
const maxAnswerBytes = 65_536;
/** Statuses for which the protocol has a client retry. */
const retryStatuses = new Set([429, 502, 503, 504]);
const retryMs = 1_000;
/** A collector may ask for a pause this long; spans of a longer one would be stale. */
const maxPauseMs = 300_000;
const warnEveryMs = 60_000;

const Answer = z.object({ partialSuccess: z.object({ rejectedSpans: z.coerce.number().int().min(0).default(0) }).optional() });

export interface OtlpExporterDeps {
  readonly config: Pick<TracesConfig, 'endpoint' | 'headers'>;
  readonly clock: Clock;
  readonly log: Log;
}

type Outcome = { readonly rejected: number } | { readonly reason: string; readonly retryAfterMs?: number };

/**
 * Sends spans by OTLP over HTTP, as JSON: each second or as soon as a batch is full, one request at a time. A batch that the
 * collector refuses for now is sent once more after the pause that it requests; all dropped spans are counted in a warning.
 */
export function createOtlpExporter({ config, clock, log }: OtlpExporterDeps): SpanProcessor {
  const url = new URL(config.endpoint);
  const headers = {
    ...Object.fromEntries(Object.entries(config.headers).map(([name, value]) => [name.toLowerCase(), value])),
    'content-type': 'application/json',
    'user-agent': 'gatehouse',
  };
  const stop = new AbortController();
  let client: Client | undefined;
  const waiting: ReadableSpan[] = [];
  let draining: Promise<void> | undefined;
  let ending: Promise<void> | undefined;
  let cancelFlush: (() => void) | undefined;
  let endPause: (() => void) | undefined;
  let cancelWarning: (() => void) | undefined;
  let dropped = 0;
  let lastReason = '';

  function drop(spans: number, reason: string): void {
    dropped += spans;
    lastReason = reason;
    if (cancelWarning === undefined) warn();
  }

  /** Warns at most once a minute: a collector that is down is down for every batch. */
  function warn(): void {
    cancelWarning = undefined;
    if (dropped === 0) return;
    log.warn({ dropped, reason: lastReason, collector: url.host }, 'Dropped spans: the trace collector does not accept them');
    dropped = 0;
    if (ending === undefined) cancelWarning = clock.after(warnEveryMs, warn);
  }

  function schedule(): void {
    if (draining !== undefined) return;
    if (waiting.length >= maxBatch) start();
    else if (waiting.length > 0) cancelFlush ??= clock.after(flushMs, start);
  }

  function start(): void {
    cancelFlush?.();
    cancelFlush = undefined;
    draining ??= drain().finally(() => {
      draining = undefined;
      if (ending === undefined) schedule();
    });
  }

  async function drain(): Promise<void> {
    do {
      const [first, ...rest] = waiting.splice(0, maxBatch);
      if (first !== undefined) await send([first, ...rest]);
    } while (waiting.length >= maxBatch);
  }

  async function send(spans: readonly [ReadableSpan, ...ReadableSpan[]]): Promise<void> {
    const body = JSON.stringify(otlpRequest(spans));
    for (let again = true; ; again = false) {
      const outcome = await post(body);
      if ('rejected' in outcome) {
        if (outcome.rejected > 0) drop(outcome.rejected, 'rejected');
        return;
      }
      if (again && outcome.retryAfterMs !== undefined) await pause(outcome.retryAfterMs);
      if (!again || outcome.retryAfterMs === undefined || ending !== undefined) return drop(spans.length, outcome.reason);
    }
  }

  /** Ends early when the exporter does. */
  async function pause(ms: number): Promise<void> {
    if (ending !== undefined) return;
    const over = Promise.withResolvers<void>();
    const cancel = clock.after(ms, over.resolve);
    endPause = over.resolve;
    await over.promise;
    cancel();
    endPause = undefined;
  }

  /** Never rejects, and never quotes the collector: its answer may contain what it was sent. */
  async function post(body: string): Promise<Outcome> {
    const late = new AbortController();
    const cancel = clock.after(requestMs, () => late.abort());
    try {
      const opened = (client ??= new (await import('../../../../kernel/undici.ts')).Client(url.origin, { allowH2: false }));
      const response = await opened.request({
        method: 'POST',
        path: url.pathname + url.search,
        headers,
        body,
        signal: AbortSignal.any([stop.signal, late.signal]),
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      const { statusCode: status } = response;
      if (status >= 200 && status < 300) return { rejected: rejectedBy(await startOf(response.body)) };
      await response.body.dump({ limit: maxAnswerBytes });
      const reason = `status ${status}`;
      if (!retryStatuses.has(status)) return { reason };
      return { reason, retryAfterMs: Math.min(maxPauseMs, retryAfterOf(response.headers, clock.now()) ?? retryMs) };
    } catch (error) {
      if (late.signal.aborted || stop.signal.aborted) return { reason: 'timeout' };
      return { reason: error instanceof Error && 'code' in error ? String(error.code) : 'no answer', retryAfterMs: retryMs };
    } finally {
      cancel();
    }
  }

  async function flush(): Promise<void> {
    while (waiting.length > 0) {
      start();
      await draining;
    }
  }

  async function end(): Promise<void> {
    endPause?.();
    const cancel = clock.after(lastChanceMs, () => stop.abort());
    await draining;
    await flush();
    cancel();
    cancelWarning?.();
    warn();
    await client?.destroy();
  }

  return {
    onStart() {},
    onEnd(span) {
      if (ending !== undefined || (span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0) return;
      if (waiting.length >= maxWaiting) return drop(1, 'the queue is full');
      waiting.push(span);
      schedule();
    },
    forceFlush: flush,
    /** Sends pending spans; waits at most two seconds for a collector that does not answer. */
    shutdown: () => (ending ??= end()),
  };
}

async function startOf(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxAnswerBytes) break;
  }
  return Buffer.concat(chunks).toString();
}

/** Returns the spans that the collector rejected, although it accepted the request. */
function rejectedBy(text: string): number {
  try {
    return Answer.parse(parseJson(text)).partialSuccess?.rejectedSpans ?? 0;
  } catch {
    // Some collectors answer with an empty or nonstandard body.
    return 0;
  }
}
