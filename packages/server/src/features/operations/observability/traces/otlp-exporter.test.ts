import { setImmediate } from 'node:timers/promises';
import { createStepClock, type StepClock } from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Log, silentLog } from '../../../../kernel/log.ts';
import { ObservabilityConfig } from '../config.ts';
import { startCollector } from './testing/collector.ts';
import { openTraces } from './traces.ts';

let collector: Awaited<ReturnType<typeof startCollector>>;
let clock: StepClock;
let traces: ReturnType<typeof openTraces>;
let warnings: Readonly<Record<string, unknown>>[];
beforeEach(async () => {
  collector = await startCollector();
  clock = createStepClock();
  warnings = [];
  const log: Log = { ...silentLog, warn: (fields) => warnings.push(fields) };
  const config = {
    endpoint: `${collector.endpoint}?tenant=one`,
    headers: { 'X-Key': 'secret-of-the-collector', 'Content-Type': 'text/plain' },
    sampleRatio: 1,
  };
  traces = openTraces(config, { version: '1.0.0', clock, log });
});
afterEach(async () => {
  await traces[Symbol.asyncDispose]();
  await collector[Symbol.asyncDispose]();
});

let made = 0;
async function span(count = 1): Promise<void> {
  const about = { method: 'GET', traceparent: undefined, status: () => 200 };
  for (let left = count; left > 0; left -= 1) {
    made += 1;
    await traces.transports.request({ ...about, route: `/${made}`, traceId: made.toString(16).padStart(32, '0') }, () => undefined);
  }
}

const asked = (times: number) => expect.poll(() => collector.requests.length, { interval: 2 }).toBe(times);

/** Steps the clock until `check` holds; pending I/O arrives between two steps. */
async function stepUntil(check: () => boolean): Promise<void> {
  for (let left = 2_000; left > 0 && !check(); left -= 1) {
    clock.advance(200);
    for (let turns = 10; turns > 0; turns -= 1) await setImmediate();
  }
  expect(check()).toBe(true);
}

describe('sending', () => {
  it('batches for a second, keeps the query of the address, and sets the content type', async () => {
    await span(3);
    clock.advance(999);
    expect(collector.requests).toEqual([]);
    clock.advance(1);
    await asked(1);
    expect(collector.spans()).toHaveLength(3);
    expect(collector.requests[0]).toMatchObject({
      path: '/v1/traces?tenant=one',
      headers: { 'content-type': 'application/json', 'x-key': 'secret-of-the-collector' },
    });
  });

  it('sends a full batch at once, and never two requests at a time', async () => {
    await span(1_200);
    await asked(2);
    await stepUntil(() => collector.requests.length === 3);
    expect(collector.exports().map((one) => one.scopeSpans[0]?.spans.length)).toEqual([512, 512, 176]);
    expect(collector.mostOpen()).toBe(1);
    expect(warnings).toEqual([]);
  });

  it('sends pending spans on close, in more than one batch', async () => {
    await span(600);
    await traces[Symbol.asyncDispose]();
    expect(collector.spans()).toHaveLength(600);
    await span();
    expect(collector.requests).toHaveLength(2);
  });
});

describe('a collector that refuses', () => {
  it.each([429, 503])('is asked once more after %i, at the time it names', async (status) => {
    collector.queue({ status, headers: { 'retry-after': '7' } });
    await span();
    clock.advance(1_000);
    await asked(1);
    const from = clock.now();
    await stepUntil(() => collector.requests.length === 2);
    expect(clock.now() - from).toBeGreaterThanOrEqual(7_000);
    expect(collector.requests[1]?.body).toBe(collector.requests[0]?.body);
    expect(warnings).toEqual([]);
  });

  it('may answer with a date; a second failure drops the batch, and later spans are sent', async () => {
    collector.queue(
      { status: 503, headers: { 'retry-after': new Date(clock.now() + 21_000).toUTCString() } },
      { status: 503, body: 'busy: secret-word' },
    );
    await span();
    clock.advance(1_000);
    await asked(1);
    const from = clock.now();
    await stepUntil(() => collector.requests.length === 2);
    expect(clock.now() - from).toBeGreaterThanOrEqual(19_000);
    await expect.poll(() => warnings).toEqual([{ dropped: 1, reason: 'status 503', collector: collector.host }]);
    await span();
    await stepUntil(() => collector.requests.length === 3);
    expect(new Set(collector.spans().map((one) => one.name)).size).toBe(2);
  });

  it('is not asked again when it cannot read the request', async () => {
    collector.queue({ status: 400, body: 'no' });
    await span(2);
    clock.advance(1_000);
    await expect.poll(() => warnings).toEqual([{ dropped: 2, reason: 'status 400', collector: collector.host }]);
    clock.advance(59_000);
    expect(collector.requests).toHaveLength(1);
  });

  it('is reported once a minute, with the sum', async () => {
    for (let round = 1; round <= 4; round += 1) {
      collector.queue({ status: 401 });
      await span(2);
      // The next batch is sent when the answer to the last was processed.
      await stepUntil(() => collector.requests.length === round);
    }
    expect(warnings).toHaveLength(1);
    await stepUntil(() => warnings.length === 2);
    expect(warnings).toEqual([
      { dropped: 2, reason: 'status 401', collector: collector.host },
      { dropped: 6, reason: 'status 401', collector: collector.host },
    ]);
  });

  it('may keep only a part', async () => {
    collector.queue({ body: '{"partialSuccess":{"rejectedSpans":"2","errorMessage":"secret-word"}}' });
    await span(5);
    clock.advance(1_000);
    await expect.poll(() => warnings).toEqual([{ dropped: 2, reason: 'rejected', collector: collector.host }]);
  });

  it('may answer success with any body', async () => {
    collector.queue({ body: 'thanks', headers: { 'content-type': 'text/plain' } }, { body: 'x'.repeat(500_000) });
    await span();
    clock.advance(1_000);
    await asked(1);
    await span();
    await stepUntil(() => collector.requests.length === 2);
    await traces[Symbol.asyncDispose]();
    expect(warnings).toEqual([]);
  });
});

describe('a collector that is not there', () => {
  it('costs no more than the limit; excess spans are counted', async () => {
    collector.queue({ silent: true }, { silent: true });
    await span(512);
    await asked(1);
    await span(2_048 + 40);
    expect(warnings).toEqual([{ dropped: 1, reason: 'the queue is full', collector: collector.host }]);
    // It may have kept an accepted request, which is not sent again.
    await stepUntil(() => collector.requests.length === 2);
    clock.advance(60_000);
    expect(warnings[1]).toMatchObject({ dropped: 39 + 512, reason: 'timeout' });
  });

  it('delays the end by two seconds, also during a request', async () => {
    collector.queue({ silent: true });
    await span();
    clock.advance(1_000);
    await asked(1);
    const ended = traces[Symbol.asyncDispose]();
    clock.advance(2_000);
    await ended;
    expect(warnings).toEqual([{ dropped: 1, reason: 'timeout', collector: collector.host }]);
  });

  it('is not waited for in a pause that it asked for', async () => {
    collector.queue({ status: 429, headers: { 'retry-after': '200' } });
    await span();
    clock.advance(1_000);
    await asked(1);
    await span();
    await traces[Symbol.asyncDispose]();
    // The batch in the pause is dropped, the one behind it is tried.
    expect(warnings).toEqual([{ dropped: 1, reason: 'status 429', collector: collector.host }]);
    expect(collector.requests).toHaveLength(2);
  });

  it('is tried again a second later, and found', async () => {
    await collector[Symbol.asyncDispose]();
    await span();
    clock.advance(1_000);
    await stepUntil(() => warnings.length === 1);
    expect(warnings).toEqual([{ dropped: 1, reason: 'ECONNREFUSED', collector: collector.host }]);
  });
});

it('an address with a password is refused: nothing would hide it in the log', () => {
  const read = (endpoint: string) => ObservabilityConfig.safeParse({ traces: { endpoint } });
  expect(read('https://user:word@collector.example/v1/traces').error?.issues).toMatchObject([
    { path: ['traces', 'endpoint'], message: 'expected no user name or password in the address; they belong in headers' },
  ]);
  expect(read('https://collector.example/v1/traces?at=a@b').success).toBe(true);
});
