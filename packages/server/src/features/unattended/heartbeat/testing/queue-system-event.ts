import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Queues an event for an agent, as a webhook or a job does in its own transaction. */
export function queueSystemEvent(
  homeDir: string,
  event: { readonly agentId: string; readonly text: string; readonly atMs: number; readonly urgentReason?: string },
): void {
  const db = new DatabaseSync(join(homeDir, 'data', 'gatehouse.db'), { timeout: 5_000 });
  db.prepare(
    `INSERT INTO heartbeat_event (op_key, agent_id, text, source, urgent_reason, repeats, created_at_ms) VALUES (?, ?, ?, 'cron', ?, 1, ?)`,
  ).run(randomUUID(), event.agentId, event.text, event.urgentReason ?? null, event.atMs);
  db.close();
}
