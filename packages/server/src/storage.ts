import { commitTurn, openTurn } from './commit-turn.ts';
import { deleteConversation } from './delete-conversation.ts';
import { agentMigrations } from './features/agents/migrations.ts';
import { agentOperations } from './features/agents/store.ts';
import { eventMigrations } from './features/events/migrations.ts';
import { eventOperations } from './features/events/store.ts';
import { responseMigrations } from './features/responses/migrations.ts';
import { responseOperations } from './features/responses/store.ts';
import { receiptMigrations } from './features/receipts/migrations.ts';
import { receiptOperations } from './features/receipts/store.ts';
import { sessionMigrations } from './features/sessions/migrations.ts';
import { sessionOperations } from './features/sessions/store.ts';
import { tokenMigrations } from './features/tokens/migrations.ts';
import { tokenOperations } from './features/tokens/store.ts';
import { turnMigrations } from './features/turns/migrations.ts';
import { turnOperations } from './features/turns/store.ts';
import { writeAudit } from './kernel/audit.ts';
import { auditMigrations } from './kernel/db/audit.ts';
import type { Migration, Operation } from './kernel/db/operation.ts';

/** Everything that the storage threads can run, by name. What a store exports and is not listed here does not exist for them. */
export const operations: readonly Operation<never, unknown>[] = [
  ...agentOperations,
  ...sessionOperations,
  ...responseOperations,
  ...turnOperations,
  ...tokenOperations,
  ...receiptOperations,
  ...eventOperations,
  openTurn,
  commitTurn,
  deleteConversation,
  writeAudit,
];

/** The schema, in any order: the numbers in the ids decide. */
export const migrations: readonly Migration[] = [
  ...auditMigrations,
  ...sessionMigrations,
  ...turnMigrations,
  ...responseMigrations,
  ...agentMigrations,
  ...tokenMigrations,
  ...receiptMigrations,
  ...eventMigrations,
];
