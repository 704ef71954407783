import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';
import { TraceFlags } from '@opentelemetry/api';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Log } from '../../../../kernel/log.ts';
import { sleep } from '../../../../kernel/timers.ts';
import type { TracesConfig } from '../config.ts';
import { CollectorClient } from './collector-client.ts';
import { DropReport } from './drop-report.ts';
import { otlpRequest } from './otlp-json.ts';

const flushMs = 1_000;
/** How long a stop waits for the collector. */
const lastChanceMs = 2_000;
const maxBatch = 512;
/** Pending spans, in addition to the batch in flight; further ones are dropped. */
const maxWaiting = 2_048;

export interface OtlpExporterDeps {
  readonly config: Pick<TracesConfig, 'endpoint' | 'headers'>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Sends spans by OTLP over HTTP, as JSON: each second or as soon as a batch is full, one request at a time. A batch that the
 * collector refuses for now is sent once more after the pause that it requests; all dropped spans are counted in a warning.
 */
export class OtlpExporter implements SpanProcessor {
  readonly #clock: Clock;
  readonly #collector: CollectorClient;
  readonly #drops: DropReport;
  readonly #waiting: ReadableSpan[] = [];
  /** Aborted when the exporter ends: no pause is waited for. */
  readonly #ending = new AbortController();
  /** Aborted when the collector had its last chance. */
  readonly #stop = new AbortController();
  #draining: Promise<void> | undefined;
  #ended: Promise<void> | undefined;
  #cancelFlush: (() => void) | undefined;

  constructor({ config, clock, log }: OtlpExporterDeps) {
    this.#clock = clock;
    this.#collector = new CollectorClient(config, clock, this.#stop.signal);
    this.#drops = new DropReport({ clock, log, collector: this.#collector.host });
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if (this.#ending.signal.aborted || (span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0) return;
    if (this.#waiting.length >= maxWaiting) return this.#drops.add(1, 'the queue is full');
    this.#waiting.push(span);
    this.#schedule();
  }

  async forceFlush(): Promise<void> {
    while (this.#waiting.length > 0) {
      this.#start();
      await this.#draining;
    }
  }

  /** Sends pending spans; waits at most two seconds for a collector that does not answer. */
  shutdown(): Promise<void> {
    return (this.#ended ??= this.#end());
  }

  #schedule(): void {
    if (this.#draining !== undefined) return;
    if (this.#waiting.length >= maxBatch) this.#start();
    else if (this.#waiting.length > 0) this.#cancelFlush ??= this.#clock.after(flushMs, () => this.#start());
  }

  #start(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    this.#draining ??= this.#drain().finally(() => {
      this.#draining = undefined;
      if (!this.#ending.signal.aborted) this.#schedule();
    });
  }

  async #drain(): Promise<void> {
    do {
      const [first, ...rest] = this.#waiting.splice(0, maxBatch);
      if (first !== undefined) await this.#send([first, ...rest]);
    } while (this.#waiting.length >= maxBatch);
  }

  async #send(spans: readonly [ReadableSpan, ...ReadableSpan[]]): Promise<void> {
    const body = JSON.stringify(otlpRequest(spans));
    for (let again = true; ; again = false) {
      const outcome = await this.#collector.post(body);
      if ('rejected' in outcome) {
        if (outcome.rejected > 0) this.#drops.add(outcome.rejected, 'rejected');
        return;
      }
      if (again && outcome.retryAfterMs !== undefined) await sleep(this.#clock, outcome.retryAfterMs, this.#ending.signal);
      if (!again || outcome.retryAfterMs === undefined || this.#ending.signal.aborted) return this.#drops.add(spans.length, outcome.reason);
    }
  }

  async #end(): Promise<void> {
    this.#ending.abort();
    const cancel = this.#clock.after(lastChanceMs, () => this.#stop.abort());
    await this.#draining;
    await this.forceFlush();
    cancel();
    this.#drops[Symbol.dispose]();
    await this.#collector.close();
  }
}
