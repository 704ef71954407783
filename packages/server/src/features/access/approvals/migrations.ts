import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const approvalMigrations: readonly Migration[] = [
  {
    id: '025-approvals',
    up: [
      `CREATE TABLE approval (
        id TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        conversation_ref TEXT NOT NULL,
        session_key TEXT NOT NULL,
        agent_id TEXT NOT NULL,
        origin TEXT NOT NULL,
        trace_id TEXT NOT NULL,
        tool TEXT NOT NULL,
        action TEXT NOT NULL,
        reason TEXT NOT NULL,
        trust_level TEXT NOT NULL,
        params_json TEXT,
        params_bytes INTEGER NOT NULL,
        state TEXT NOT NULL,
        created_at_ms INTEGER NOT NULL,
        timeout_ms INTEGER NOT NULL,
        expires_at_ms INTEGER NOT NULL,
        decided_at_ms INTEGER,
        decided_by TEXT,
        decided_reason TEXT,
        grant_state TEXT,
        reusable INTEGER NOT NULL DEFAULT 1
      )`,
      // Equal calls of a conversation share one request.
      `CREATE UNIQUE INDEX approval_pending ON approval (digest) WHERE state = 'pending'`,
      `CREATE INDEX approval_by_digest ON approval (digest, decided_at_ms)`,
      `CREATE INDEX approval_by_conversation ON approval (conversation_ref)`,
      `CREATE INDEX approval_by_decision ON approval (decided_at_ms)`,
      // What obs.audit.query narrows by.
      `CREATE INDEX audit_by_action ON audit (action, seq)`,
      `CREATE INDEX audit_by_principal ON audit (principal_id, seq)`,
      `CREATE INDEX audit_by_target ON audit (target, seq) WHERE target IS NOT NULL`,
    ],
  },
  // Of a request whose turn is left until it is decided.
  { id: '126-left-turns', up: [`ALTER TABLE approval ADD COLUMN turn_json TEXT`] },
  // The boot in which calls of attended turns wait for the decision; '' when none does.
  { id: '147-approval-waiters', up: [`ALTER TABLE approval ADD COLUMN waits_at TEXT NOT NULL DEFAULT ''`] },
  { id: '222-approval-chats', up: ['ALTER TABLE approval ADD COLUMN chat_json TEXT'] },
];
