import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { migrations } from './registry.ts';

const numberOf = (id: string): number => Number(id.slice(0, 3));

test('notifications that an earlier version held are held by the quiet hours of the outbox', () => {
  using db = new DatabaseSync(':memory:');
  const main = migrations.filter(({ database = 'main' }) => database === 'main').toSorted((a, b) => numberOf(a.id) - numberOf(b.id));
  const run = (from: number, until: number) => {
    for (const { id, up } of main) if (numberOf(id) >= from && numberOf(id) < until) for (const sql of up) db.exec(sql);
  };
  run(0, 300);
  const part = (opKey: string, state: string) =>
    db.exec(`INSERT INTO outbound_message (id, op_key, part, parts, digest, instance, channel_type, conversation_id, conversation_kind, text, state, attempts,
      not_before_ms, expires_at_ms, agent_id, principal_id, created_at_ms)
      VALUES ('ob_${opKey}', '${opKey}', 1, 1, '', 'net', 'irc', 'ada', 'direct', 'x', '${state}', 0, 2, 3, 'default', 'p', 1)`);
  const notification = (id: string, state: string) =>
    db.exec(`INSERT INTO channel_notification (id, agent_id, principal_id, instance, channel_type, conversation_id, digest, priority, op_key, entry_id, state, created_at_ms)
      VALUES ('${id}', 'default', 'p', 'net', 'irc', 'ada', '', 'normal', 'notification:${id}', 'ob_1', '${state}', 1)`);
  for (const [id, state] of Object.entries({ night: 'held', day: 'open' })) {
    notification(id, state);
    part(`notification:${id}`, state === 'held' ? 'held' : 'pending');
  }
  // It waits for an earlier part.
  part('answer:1', 'held');
  run(300, 1_000);
  expect(db.prepare('SELECT op_key, state, error_kind, unsolicited FROM outbound_message ORDER BY op_key').all()).toMatchObject([
    { op_key: 'answer:1', state: 'held', error_kind: null, unsolicited: null },
    { op_key: 'notification:day', state: 'pending', unsolicited: null },
    { op_key: 'notification:night', state: 'held', error_kind: 'quiet_hours', unsolicited: 'notification' },
  ]);
  expect(db.prepare('SELECT state FROM channel_notification').all()).toMatchObject([{ state: 'open' }, { state: 'open' }]);
});
