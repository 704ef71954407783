import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { indexMessages } from '../../packages/server/src/features/conversations/sessions/search/index-store.ts';
import { systemClock } from '../../packages/server/src/kernel/clock.ts';
import { openDb } from '../../packages/server/src/kernel/db/sqlite/open-db.ts';
import { silentLog } from '../../packages/server/src/kernel/log.ts';

/** Some twenty words that no other message has in this order. */
export function sentence(conversation: number, n: number): string {
  const words = ['river', 'gateway', 'ledger', 'harbour', 'winter', 'violin', 'copper', 'meadow', 'signal', 'lantern', 'orchard', 'granite'];
  const pick = (k: number): string => words[(conversation * 7 + n * 5 + k * k) % words.length] ?? '';
  return `${Array.from({ length: 18 }, (_, k) => pick(k)).join(' ')} c${conversation} n${n}`;
}

/** Extends the conversation of each key, which has its first turn, to `length` messages. The daemon must be stopped. */
export function lengthen(dataDir: string, keys: readonly string[], length: number): void {
  const db = new DatabaseSync(join(dataDir, 'gatehouse.db'));
  try {
    db.exec('PRAGMA synchronous = OFF; BEGIN');
    const find = db.prepare('SELECT id, last_seq, updated_at_ms FROM conversation WHERE session_key = ?');
    const insert = db.prepare('INSERT INTO message (conversation_id, seq, turn_id, role, content, created_at_ms) VALUES (?, ?, ?, ?, ?, ?)');
    const grow = db.prepare('UPDATE conversation SET last_seq = ?, message_count = ? WHERE id = ?');
    for (const key of keys) {
      const row = find.get(key);
      if (row === undefined) throw new Error(`there is no conversation ${key}`);
      const id = Number(row['id']);
      for (let seq = Number(row['last_seq']) + 1; seq <= length; seq += 1)
        insert.run(id, seq, `tn_fill_${id}_${(seq + 1) >> 1}`, seq % 2 === 1 ? 'user' : 'assistant', sentence(id, seq), Number(row['updated_at_ms']));
      grow.run(length, length, id);
    }
    db.exec('COMMIT');
  } finally {
    db.close();
  }
}

/** Many conversations of the token that `product` has, all in the full-text index. Returns their references. The daemon must be stopped. */
export async function fillConversations(
  dataDir: string,
  size: { readonly conversations: number; readonly messages: number; readonly agentId: string },
): Promise<readonly string[]> {
  const refs = Array.from({ length: size.conversations }, (_, n) => `cv_${createHash('sha256').update(`bench ${n}`).digest('base64url')}`);
  const db = new DatabaseSync(join(dataDir, 'gatehouse.db'));
  try {
    db.exec('PRAGMA synchronous = OFF; BEGIN');
    const conversation = db.prepare(
      `INSERT INTO conversation (id, ref, tenant_id, agent_id, principal_id, kind, session_key, last_seq, message_count, turn_count, step_count,
        tool_call_count, input_tokens, output_tokens, cost_nano, created_at_ms, updated_at_ms, title)
       VALUES (?, ?, 'default', ?, 'token:bench', 'dm', ?, ?, ?, ?, 0, 0, 0, 0, 0, ?, ?, ?)`,
    );
    const message = db.prepare('INSERT INTO message (conversation_id, seq, turn_id, role, content, created_at_ms) VALUES (?, ?, ?, ?, ?, ?)');
    for (const [n, ref] of refs.entries()) {
      const atMs = 1_780_000_000_000 + n * 1_000;
      const { messages } = size;
      conversation.run(n + 1, ref, size.agentId, `bench-${n}:fill`, messages, messages, messages >> 1, atMs, atMs, sentence(n, 1).slice(0, 80));
      for (let seq = 1; seq <= messages; seq += 1)
        message.run(n + 1, seq, `tn_${n}_${seq}`, seq % 2 === 1 ? 'user' : 'assistant', sentence(n, seq), atMs);
    }
    db.exec('COMMIT');
  } finally {
    db.close();
  }
  await using storage = await openDb({ dataDir, clock: systemClock, log: silentLog });
  while ((await storage.write(indexMessages, { maxRows: 20_000, maxBytes: 64 * 1024 * 1024 })).more);
  return refs;
}
