import { createHash, timingSafeEqual } from 'node:crypto';
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ChatBody } from './wire.ts';

/** What F does beyond R: token check, rate limit, two stored rows in one transaction, one log line. */
export interface Work {
  /** False: not authorised. */
  before(request: IncomingMessage): boolean;
  after(id: string, body: ChatBody, text: string, startedMs: number): void;
}

export function fullWork(): Work {
  const folder = mkdtempSync(join(tmpdir(), 'bench-full-'));
  const db = new DatabaseSync(join(folder, 'a.db'));
  db.exec(`PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
    CREATE TABLE msg(id INTEGER PRIMARY KEY, conv TEXT NOT NULL, role TEXT NOT NULL, ts INTEGER NOT NULL, body TEXT NOT NULL);
    CREATE INDEX msg_conv ON msg(conv, ts)`);
  const insert = db.prepare('INSERT INTO msg(conv, role, ts, body) VALUES (?, ?, ?, ?)');
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const wanted = createHash('sha256').update('bench-token').digest();
  const hits = new Map<string, { since: number; count: number }>();
  const log = createWriteStream(join(folder, 'log.ndjson'));
  process.on('SIGTERM', () => {
    rmSync(folder, { recursive: true, force: true });
    process.exit(0);
  });
  return {
    before(request) {
      const token = request.headers.authorization?.slice(7) ?? '';
      if (!timingSafeEqual(createHash('sha256').update(token).digest(), wanted)) return false;
      const key = request.socket.remoteAddress ?? '';
      const window = hits.get(key);
      if (!window || window.since < Date.now() - 60_000) hits.set(key, { since: Date.now(), count: 1 });
      else window.count += 1;
      return true;
    },
    after(id, body, text, startedMs) {
      begin.run();
      insert.run(id, 'user', startedMs, body.messages.at(-1)?.content ?? '');
      insert.run(id, 'assistant', Date.now(), text);
      commit.run();
      log.write(`${JSON.stringify({ level: 'info', time: Date.now(), msg: 'completion', id, model: body.model, ms: Date.now() - startedMs })}\n`);
    },
  };
}
