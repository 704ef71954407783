import { randomUUID } from 'node:crypto';
import { sql } from '@gatehouse/testkit';

/** Queues an event for an agent, as a webhook or a job does in its own transaction. */
export async function queueSystemEvent(
  homeDir: string,
  event: { readonly agentId: string; readonly text: string; readonly atMs: number; readonly urgentReason?: string },
): Promise<void> {
  await sql(
    homeDir,
    `INSERT INTO heartbeat_event (op_key, agent_id, text, source, urgent_reason, repeats, created_at_ms) VALUES (?, ?, ?, 'cron', ?, 1, ?)`,
    randomUUID(),
    event.agentId,
    event.text,
    event.urgentReason ?? null,
    event.atMs,
  );
}
