import { sql } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { longMessage, sentBy, startSmallWindow } from '../testing/small-window.ts';

/** Adds messages to a conversation directly in the database. */
async function addHistory(homeDir: string, ref: string, count: number, length: number): Promise<void> {
  const [found] = await sql(homeDir, 'SELECT id, last_seq FROM conversation WHERE ref = ?', ref);
  const [id, last] = [Number(found?.['id']), Number(found?.['last_seq'])];
  const batch = 100;
  for (let from = 1; from <= count; from += batch) {
    const values = Array.from({ length: Math.min(batch, count - from + 1) }, (_, offset) => {
      const index = from + offset;
      const text = longMessage(index).repeat(10).slice(0, length);
      return [id, last + index, `tn_${Math.ceil(index / 2)}`, index % 2 === 1 ? 'user' : 'assistant', text, 1_790_000_000_000 + index];
    });
    const rows = values.map(() => '(?, ?, ?, ?, ?, ?)').join(', ');
    await sql(homeDir, `INSERT INTO message (conversation_id, seq, turn_id, role, content, created_at_ms) VALUES ${rows}`, ...values.flat());
  }
  await sql(homeDir, `UPDATE conversation SET last_seq = last_seq + ${count}, message_count = message_count + ${count} WHERE id = ?`, id);
}

test('a window of 8000 tokens works with 5 MB of history, and a question finds a fact from the first message', async () => {
  await using small = await startSmallWindow();
  const { server, watch } = small;
  const { turns } = watch((_, count) => ({ text: `Notes number ${count}.` }));
  const fact = 'The combination of the wall safe behind the mirror is 7-41-98.';
  const { conversationRef } = await server.client.call('agent.execute', { message: fact, sessionKey: 'reach:desk' });
  await addHistory(server.homeDir, conversationRef, 5000, 1050);
  const held = server.client.call('session.history', { conversationRef });
  expect((await held).total).toBe(5002);

  for (let index = 0; index < 6; index += 1) {
    const [long, other] = await Promise.all([
      server.client.call('agent.execute', { message: `Go on, part ${index}`, conversationRef }),
      server.client.call('agent.execute', { message: 'A short one', sessionKey: `other-${index}:desk` }),
    ]);
    expect([long.finishReason, other.finishReason]).toEqual(['stop', 'stop']);
  }
  // The messages are indexed within moments.
  await expect
    .poll(
      async () => {
        const reply = await server.client.call('agent.execute', { message: 'What was the combination of the safe?', conversationRef });
        expect(reply.finishReason).toBe('stop');
        return sentBy(turns.at(-1)!).at(-1)?.content ?? '';
      },
      { timeout: 20_000, interval: 500 },
    )
    .toContain('7-41-98');
  const question = sentBy(turns.at(-1)!).at(-1)?.content ?? '';
  expect(question).toMatch(
    /^\[Excerpts from earlier messages.*<<<UNTRUSTED-TEXT .*#1 .* user: .*7-41-98.*<<<END-UNTRUSTED-TEXT .*What was the combination of the safe\?$/s,
  );
  // Excerpts are not stored: the question is stored as it was asked.
  const { total } = await server.client.call('session.history', { conversationRef, limit: 1 });
  const { messages } = await server.client.call('session.history', { conversationRef, offset: total - 2, limit: 2 });
  expect(messages[0]?.content).toBe('What was the combination of the safe?');
  // No request exceeds the window.
  for (const request of turns) expect(JSON.stringify(sentBy(request)).length).toBeLessThan(40_000);
}, 60_000);

test('while a long history is caught up, notes are condensed as they are added, so that few coexist', async () => {
  await using small = await startSmallWindow();
  const { server, watch } = small;
  watch((_, count) => ({ text: `Notes number ${count}.` }));
  const { conversationRef } = await server.client.call('agent.execute', { message: 'Hello', sessionKey: 'backlog:desk' });
  await addHistory(server.homeDir, conversationRef, 800, 1050);
  const made = async () => (await server.client.call('context.tree', { conversationRef })).nodes.filter(({ model }) => model !== 'truncation');
  let leaves = 0;
  while (leaves < 40) {
    await server.client.call('agent.execute', { message: 'Go on', conversationRef });
    const before = leaves;
    await expect.poll(async () => (leaves = (await made()).filter(({ kind }) => kind === 'leaf').length)).toBeGreaterThan(before);
    // At most five of each depth, and the leaves of one turn.
    expect((await made()).filter(({ parentIds }) => parentIds.length === 0).length).toBeLessThan(24);
  }
}, 30_000);

test('reset messages are no longer found', async () => {
  await using small = await startSmallWindow();
  const { server, watch } = small;
  const { turns } = watch(() => ({ text: 'Notes.' }));
  const say = (message: string) => server.client.call('agent.execute', { message, sessionKey: 'reset:desk' });
  const { conversationRef } = await say('The password of the vault is heliotrope.');
  await server.client.call('session.reset', { conversationRef });
  for (let index = 0; index < 20; index += 1) await say(longMessage(index));
  await server.client.call('session.compact', { conversationRef });
  await expect
    .poll(
      async () => {
        await say('Which list has item3x4 of the list?');
        return sentBy(turns.at(-1)!).at(-1)?.content ?? '';
      },
      { interval: 500 },
    )
    .toContain('Excerpts from earlier messages');
  await say('What is the password of the vault?');
  expect(JSON.stringify(sentBy(turns.at(-1)!))).not.toContain('heliotrope');
});
