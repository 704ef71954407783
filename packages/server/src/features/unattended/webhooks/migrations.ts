import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const webhookMigrations: readonly Migration[] = [
  {
    id: '031-webhooks',
    up: [
      `CREATE TABLE webhook_delivery (
        id TEXT PRIMARY KEY,
        mapping_id TEXT NOT NULL,
        action TEXT NOT NULL,
        own_state TEXT,
        live_key TEXT,
        sender_id TEXT,
        body_digest TEXT NOT NULL,
        body_bytes INTEGER NOT NULL,
        agent_id TEXT NOT NULL,
        conversation_ref TEXT,
        session_key TEXT,
        message TEXT NOT NULL,
        remote_address TEXT,
        trace_id TEXT NOT NULL,
        replay_of TEXT,
        repeats INTEGER NOT NULL,
        received_at_ms INTEGER NOT NULL
      )`,
      `CREATE UNIQUE INDEX webhook_delivery_by_live_key ON webhook_delivery (live_key) WHERE live_key IS NOT NULL`,
      `CREATE INDEX webhook_delivery_by_mapping ON webhook_delivery (mapping_id, id)`,
      `CREATE INDEX webhook_delivery_by_body ON webhook_delivery (mapping_id, body_digest, received_at_ms)`,
      `CREATE INDEX webhook_delivery_by_time ON webhook_delivery (received_at_ms)`,
    ],
  },
  // What has the same body is found by the beginning of its live key: an index less for each delivery.
  { id: '036-webhook-keys', up: [`DROP INDEX webhook_delivery_by_body`] },
  // Each delivery pays for every tree: what these two found is found along the ids, which are ordered by time, and of the digests in a live key half of
  // each tells deliveries apart.
  {
    id: '046-webhook-trees',
    up: [
      `DROP INDEX webhook_delivery_by_mapping`,
      `DROP INDEX webhook_delivery_by_time`,
      `UPDATE webhook_delivery SET live_key = substr(live_key, 1, 22) || '.' || substr(live_key, 45, 22) WHERE live_key IS NOT NULL`,
    ],
  },
];
