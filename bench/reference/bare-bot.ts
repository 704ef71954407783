import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

// A bot in thirty lines: polls, stores one synced row for each message, answers, polls again.
interface Update {
  readonly update_id: number;
  readonly message?: { readonly from: { readonly id: number }; readonly chat: { readonly id: number }; readonly text: string };
}

const root = process.env['BOT_API'] ?? '';
const folder = mkdtempSync(join(tmpdir(), 'bench-bot-'));
process.on('SIGTERM', () => {
  rmSync(folder, { recursive: true, force: true });
  process.exit();
});
const db = new DatabaseSync(join(folder, 'bot.db'));
db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
db.exec('CREATE TABLE message (id INTEGER PRIMARY KEY, sender INTEGER NOT NULL, text TEXT NOT NULL, at_ms INTEGER NOT NULL)');
const insert = db.prepare('INSERT OR IGNORE INTO message (id, sender, text, at_ms) VALUES (?, ?, ?, ?)');

async function call(method: string, payload: object): Promise<unknown> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${root}/${method}`, { method: 'POST', headers, body: JSON.stringify(payload) });
  return ((await response.json()) as { readonly result: unknown }).result;
}

createServer((_request, response) => response.end('ok')).listen(Number(process.env['PORT']), '127.0.0.1');
for (let offset = 0; ;) {
  const updates = (await call('getUpdates', { offset, timeout: 50 })) as readonly Update[];
  for (const { update_id: id, message } of updates) {
    offset = id + 1;
    if (message === undefined) continue;
    insert.run(id, message.from.id, message.text, Date.now());
    await call('sendMessage', { chat_id: message.chat.id, text: `Agent default heard ${message.text}.` });
  }
}
