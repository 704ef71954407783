import type { Client } from 'undici';
import * as z from 'zod';
import type { Clock } from '../../../../kernel/clock.ts';
import { parseJson } from '../../../../kernel/json.ts';
import { retryAfterOf } from '../../../../llm/wire/wire-error.ts';
import type { TracesConfig } from '../config.ts';

/** Deadline of one request, from its first byte to the end of the answer. */
const requestMs = 5_000;
const maxAnswerBytes = 65_536;
/** Statuses for which the protocol has a client retry. */
const retryStatuses = new Set([429, 502, 503, 504]);
const retryMs = 1_000;
/** A collector may ask for a pause this long; spans of a longer one would be stale. */
const maxPauseMs = 300_000;

const Answer = z.object({ partialSuccess: z.object({ rejectedSpans: z.coerce.number().int().min(0).default(0) }).optional() });

/** How a request ended: with the number of spans that were not accepted, or why none was and when to try again. */
export type Outcome = { readonly rejected: number } | { readonly reason: string; readonly retryAfterMs?: number };

/** Sends requests to the collector that the operator names. */
export class CollectorClient {
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #clock: Clock;
  readonly #stop: AbortSignal;
  #client: Client | undefined;

  /** `stop` ends requests that are open. */
  constructor({ endpoint, headers }: Pick<TracesConfig, 'endpoint' | 'headers'>, clock: Clock, stop: AbortSignal) {
    this.#url = new URL(endpoint);
    this.#headers = {
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
      'content-type': 'application/json',
      'user-agent': 'gatehouse',
    };
    this.#clock = clock;
    this.#stop = stop;
  }

  get host(): string {
    return this.#url.host;
  }

  /** Never rejects, and never quotes the collector: its answer may contain what it was sent. */
  async post(body: string): Promise<Outcome> {
    const late = new AbortController();
    const cancel = this.#clock.after(requestMs, () => late.abort());
    try {
      const client = await this.#open();
      const response = await client.request({
        method: 'POST',
        path: this.#url.pathname + this.#url.search,
        headers: this.#headers,
        body,
        signal: AbortSignal.any([this.#stop, late.signal]),
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      const { statusCode: status } = response;
      if (status >= 200 && status < 300) return { rejected: rejectedBy(await startOf(response.body)) };
      await response.body.dump({ limit: maxAnswerBytes });
      const reason = `status ${status}`;
      if (!retryStatuses.has(status)) return { reason };
      return { reason, retryAfterMs: Math.min(maxPauseMs, retryAfterOf(response.headers, this.#clock.now()) ?? retryMs) };
    } catch (error) {
      if (late.signal.aborted || this.#stop.aborted) return { reason: 'timeout' };
      return { reason: error instanceof Error && 'code' in error ? String(error.code) : 'no answer', retryAfterMs: retryMs };
    } finally {
      cancel();
    }
  }

  async close(): Promise<void> {
    await this.#client?.destroy();
  }

  async #open(): Promise<Client> {
    return (this.#client ??= new (await import('../../../../kernel/undici.ts')).Client(this.#url.origin, { allowH2: false }));
  }
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
