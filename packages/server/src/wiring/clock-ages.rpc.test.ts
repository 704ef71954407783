import { createHmac } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, type StepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const yearsMs = 1095 * dayMs;
const startMs = Date.UTC(2026, 8, 21, 12);
const secret = 'a-shared-secret-of-more-than-32-characters';
let homeDir: string;
beforeEach(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-clock-'));
});
afterEach(() => rm(homeDir, { recursive: true, force: true }));

async function startAt(atMs: number) {
  const clock = createStepClock(atMs);
  const server = await startTestServer({
    clock,
    homeDir,
    provider: { answer: () => ({ text: 'Done.' }) },
    config: {
      media: { retentionDays: 30 },
      scheduler: { cron: { builtIn: { memoryLifecycle: { enabled: false } } } },
      agents: { default: { model: 'mock/mock-fast', memory: { limits: { maxAgeDays: 90 } } } },
      webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}', match: { path: 'hook' } }], token: secret },
    },
  });
  return { ...server, clock, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

/** Long enough for deletions shortly after a start. */
async function pass(clock: StepClock): Promise<void> {
  for (const end of [61_000, 310_000]) {
    clock.advance(end);
    await new Promise((done) => setTimeout(done, 20));
  }
}

const ask = async (server: TestServer, path: string, init: RequestInit = {}) => {
  const response = await fetch(server.url + path, { ...init, headers: { authorization: `Bearer ${server.token}`, ...init.headers } });
  return { status: response.status, text: await response.text() };
};
const post = (body: object, headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  body: JSON.stringify(body),
  headers: { 'content-type': 'application/json', ...headers },
});
const chat = (server: TestServer) => ask(server, '/api/chat', post({ message: 'Pay the bill' }, { 'idempotency-key': 'same-key-0000-0000-0001' }));
const deliver = (server: TestServer) => {
  const body = { text: 'Ship it' };
  const signature = createHmac('sha256', secret).update(JSON.stringify(body)).digest('hex');
  return ask(server, '/hooks/hook', post(body, { 'x-webhook-signature': signature, 'x-github-delivery': 'delivery-1' }));
};

test('a start with the clock years ahead deletes nothing by age, and repeats stay repeats', async () => {
  let media = '';
  {
    await using before = await startAt(startMs);
    expect((await chat(before)).status).toBe(200);
    expect((await deliver(before)).status).toBe(200);
    await expect.poll(() => before.provider.requests.length).toBe(2);
    ({ mediaId: media } = JSON.parse(
      (await ask(before, '/media', { method: 'POST', body: 'a file', headers: { 'content-type': 'text/plain' } })).text,
    ));
    await before.client.call('memory.store', { content: 'The key lies under the mat' });
    before.bus.emit('system:error', { source: 'test', message: 'remembered', timestamp: 1 });
  }
  for (const atMs of [startMs + yearsMs, startMs + 3 * hourMs]) {
    await using server = await startAt(atMs);
    await pass(server.clock);
    await server.client.call('memory.lifecycle', {});
    const isWrong = atMs > startMs + dayMs;
    expect.soft(server.server.warnings.some((text) => text.includes('days later than expected'))).toBe(isWrong);
    expect.soft((await ask(server, '/health')).text.includes('"clock"')).toBe(isWrong);
    expect.soft((await chat(server)).status).toBe(200);
    expect.soft(server.provider.requests, 'the request with its key').toEqual([]);
    expect.soft((await deliver(server)).status).toBe(200);
    await pass(server.clock);
    expect.soft(server.provider.requests, 'the delivery').toEqual([]);
    expect.soft((await ask(server, `/media/${media}`)).status, 'media').toBe(200);
    expect.soft((await ask(server, '/api/activity?limit=500')).text, 'events').toContain('remembered');
    expect.soft((await server.client.call('memory.search', { query: 'key under the mat' })).results).toHaveLength(1);
  }
});
