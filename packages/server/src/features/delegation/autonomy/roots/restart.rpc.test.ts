import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { answerBy, call } from '../../subagents/run/testing/delegation-model.ts';

test('what a request spent survives a restart of the daemon and is counted once', async () => {
  const homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-test-'));
  try {
    const config = { agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' as const } } } };
    const spent: (readonly number[])[] = [];
    for (const isFirst of [true, false, false]) {
      await using server = await startTestServer({ homeDir, config });
      const over = server.heard('session:sub_agent_lifecycle_ended');
      answerBy(server.provider, ({ question, results }) => {
        if (question.includes('# Task')) return { text: 'Done.' };
        return question.includes('Go') && results.length === 0 ? call('sessions_spawn', { task: 'x' }) : { text: 'Asked.' };
      });
      if (isFirst) {
        await server.client.call('agent.execute', { message: 'Go.' });
        await expect.poll(() => over.length).toBe(1);
      } else {
        const { totals } = await server.client.call('usage.report', { groupBy: ['agent'] });
        const { runs } = await server.client.call('run.list', {});
        spent.push([totals.inputTokens + totals.outputTokens, ...runs.map(({ tokens }) => tokens)]);
      }
    }
    const [all] = spent[0] ?? [];
    expect(all).toBeGreaterThan(0);
    expect(spent).toEqual([
      [all, all],
      [all, all],
    ]);
  } finally {
    await rm(homeDir, { recursive: true, force: true });
  }
});
