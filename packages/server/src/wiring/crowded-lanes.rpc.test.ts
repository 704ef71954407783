import { createStepClock, sql, startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { createObeyingModel, follow, page } from '../features/access/approvals/testing/obeying-model.ts';

test.each([
  ['conversation', 'one', 53],
  ['agent', '{{text}}', 20],
] as const)(
  'work that finds the queue of its %s full waits without using up an attempt, and each item runs once',
  async (kind, sessionKey, count) => {
    const clock = createStepClock();
    const model = createObeyingModel();
    const held = Promise.withResolvers<void>();
    const slow = { ...page, timeoutMs: 3_600_000, run: async () => (await held.promise, { content: 'Slow' }) };
    await using server = await startTestServer({
      clock,
      tools: [slow],
      provider: { answer: ({ body }) => model.answer(body) },
      config: {
        agents: {
          default: { model: 'mock/mock-fast', tools: { profile: 'full' }, originTools: { webhook: ['page'] }, maxConcurrentRuns: 1 },
          other: { model: 'mock/mock-fast' },
        },
        webhooks: {
          mappings: [
            { id: 'hook', messageTemplate: '{{text}}', sessionKey },
            { id: 'other', messageTemplate: '{{text}}', sessionKey: 'two', agentId: 'other' },
          ],
        },
      },
    });
    const hook = (mapping: string, text: string) => server.client.call('webhooks.test', { mapping, payload: { text }, run: true });
    const work = () => sql(server.homeDir, 'select state, max(attempts) as attempts, count(*) as n from work_item group by state');
    const waiting = async () =>
      (await server.client.call('webhooks.deliveries', { limit: 100 })).deliveries.flatMap((delivery) => delivery.waiting?.kind ?? []);

    await hook('hook', follow(['page', {}]));
    await expect.poll(() => model.asks.length).toBe(1);
    clock.advance(10_000);
    await Promise.all(Array.from({ length: count }, (_, n) => hook('hook', `Number ${n}.`)));
    await expect.poll(waiting).toContain(kind);
    // Many rounds of attempts.
    for (let round = 0; round < 6; round += 1) {
      clock.advance(20_000);
      await waiting();
    }
    // Waiting ones hold no slot.
    await hook('other', 'Hello.');
    await expect.poll(() => model.asks.some((text) => text.includes('Hello.'))).toBe(true);
    held.resolve();
    await expect.poll(() => (clock.advance(15_000), work())).toEqual([{ state: 'done', attempts: 1, n: count + 2 }]);
    const numbers = model.asks.flatMap((text) => /Number (\d+)\./.exec(text)?.[1] ?? []).map(Number);
    expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, n) => n));
  },
);
