import { acceptDelivery } from './accept-delivery.ts';
import { acceptRun, beginRun } from './accept-run.ts';
import { abortOpenTurns, bookWork, openWork } from './open-work.ts';
import { checkpointTurn, commitDurableTurn, openDurableTurn, reserveForDurable } from './commit-durable-turn.ts';
import { commitTurn, openTurn } from './commit-turn.ts';
import { claimManually, claimOccurrence } from './claim-occurrence.ts';
import { deleteConversation } from './delete-conversation.ts';
import { ageClockMigrations } from '../features/age-clock/migrations.ts';
import { ageClockOperations } from '../features/age-clock/store.ts';
import { agentMigrations } from '../features/agents/migrations.ts';
import { agentOperations } from '../features/agents/store.ts';
import { leaseOperations } from '../features/autonomy/lease-store.ts';
import { rootLifeOperations } from '../features/autonomy/life-store.ts';
import { rootListOperations } from '../features/autonomy/list-store.ts';
import { autonomyMigrations } from '../features/autonomy/migrations.ts';
import { stopOperations } from '../features/autonomy/stop-store.ts';
import { backgroundMigrations } from '../features/background/migrations.ts';
import { backgroundOperations } from '../features/background/store.ts';
import { approvalMigrations } from '../features/approvals/migrations.ts';
import { askApproval, withdrawApproval } from './ask-approval.ts';
import { readLeftTurns, resumeBehind } from './interrupted-turns.ts';
import { approvalOperations } from '../features/approvals/store.ts';
import { contextMigrations } from '../features/context/migrations.ts';
import { recallOperations } from '../features/context/recall-store.ts';
import { contextOperations } from '../features/context/store.ts';
import { treeOperations } from '../features/context/tree-store.ts';
import { budgetMigrations } from '../features/budgets/migrations.ts';
import { budgetOperations } from '../features/budgets/store.ts';
import { cronMigrations } from '../features/cron/migrations.ts';
import { cronOccurrenceOperations } from '../features/cron/occurrence-store.ts';
import { realignJobs } from '../features/cron/realign-store.ts';
import { cronResetOperations } from '../features/cron/reset-store.ts';
import { cronSearchOperations } from '../features/cron/search-store.ts';
import { cronJobOperations } from '../features/cron/store.ts';
import { durableMigrations } from '../features/durable/migrations.ts';
import { endWork, endWorkWithMessage } from './end-interrupted-turn.ts';
import { durableOperations } from '../features/durable/store.ts';
import { eventMigrations } from '../features/events/migrations.ts';
import { eventOperations } from '../features/events/store.ts';
import { graphMigrations } from '../features/graph/migrations.ts';
import { graphReadOperations } from '../features/graph/read-store.ts';
import { savedGraphOperations } from '../features/graph/saved-store.ts';
import { graphOperations } from '../features/graph/store.ts';
import { heartbeatMigrations } from '../features/heartbeat/migrations.ts';
import { heartbeatOperations } from '../features/heartbeat/store.ts';
import { inboxMigrations } from '../features/inbox/migrations.ts';
import { inboxOperations } from '../features/inbox/store.ts';
import { mcpMigrations } from '../features/mcp/migrations.ts';
import { mcpOperations } from '../features/mcp/store.ts';
import { browseOperations } from '../features/memory/browse-store.ts';
import { embeddingCacheOperations } from '../features/memory/embedding-cache-store.ts';
import { embeddingOperations } from '../features/memory/embedding-store.ts';
import { memoryDeriveOperations } from '../features/memory/derive-store.ts';
import { memoryLifeMigrations } from '../features/memory/life-migrations.ts';
import { memoryLifeOperations } from '../features/memory/life-store.ts';
import { memoryMigrations } from '../features/memory/migrations.ts';
import { memorySearchOperations } from '../features/memory/search-store.ts';
import { auditOperations } from '../features/observability/audit-store.ts';
import { responseMigrations } from '../features/responses/migrations.ts';
import { responseOperations } from '../features/responses/store.ts';
import { receiptMigrations } from '../features/receipts/migrations.ts';
import { receiptOperations } from '../features/receipts/store.ts';
import { sessionSendMigrations } from '../features/session-send/migrations.ts';
import { sessionSendOperations } from '../features/session-send/store.ts';
import { sessionMigrations } from '../features/sessions/migrations.ts';
import { forkOperations } from '../features/sessions/fork-store.ts';
import { indexOperations } from '../features/sessions/index-store.ts';
import { resetOperations } from '../features/sessions/reset-store.ts';
import { searchOperations } from '../features/sessions/search-store.ts';
import { sessionOperations } from '../features/sessions/store.ts';
import { skillMigrations } from '../features/skills/migrations.ts';
import { skillOperations } from '../features/skills/store.ts';
import { workspaceMigrations } from '../features/workspace/migrations.ts';
import { fileTaintOperations } from '../features/workspace/taint-store.ts';
import { tokenMigrations } from '../features/tokens/migrations.ts';
import { tokenOperations } from '../features/tokens/store.ts';
import { turnMigrations } from '../features/turns/migrations.ts';
import { turnOperations } from '../features/turns/store.ts';
import { escalate } from './escalate.ts';
import { finishOccurrence, readUnfinished } from './finish-occurrence.ts';
import { webhookMigrations } from '../features/webhooks/migrations.ts';
import { webhookOperations } from '../features/webhooks/store.ts';
import { graphWorkOperations } from './graph-work.ts';
import { waitingOfRun, waitingRunsOf } from './waiting-runs.ts';
import { resetConversation, resetSession } from './reset-conversation.ts';
import { failReview, findReviewable, keepReview, readReviewable } from './review-conversation.ts';
import { beginBeat, endBeat, recoverBeats } from './heartbeat-work.ts';
import { beginScript, endScript } from './orchestrate-work.ts';
import { acceptSend, failSendWork } from './send-work.ts';
import { subagentChildOperations } from '../features/subagents/child-store.ts';
import { subagentMigrations } from '../features/subagents/migrations.ts';
import { finishRun, killRuns } from './end-run.ts';
import { subagentListOperations } from '../features/subagents/list-store.ts';
import { newsOperations } from '../features/subagents/news-store.ts';
import { subagentRunOperations } from '../features/subagents/store.ts';
import { sweepOperations } from '../features/subagents/sweep-store.ts';
import { injectSteer, replaceRun } from './steer-run.ts';
import { takeNews, tellNews } from './deliver-announcements.ts';
import { writeAudit } from '../kernel/audit.ts';
import { auditMigrations } from '../kernel/db/audit.ts';
import type { Migration, Operation } from '../kernel/db/operation.ts';

/** Everything that the storage threads can run, by name. What a store exports and is not listed here does not exist for them. */
export const operations: readonly Operation<never, unknown>[] = [
  ...agentOperations,
  ...sessionOperations,
  ...searchOperations,
  ...indexOperations,
  ...forkOperations,
  ...resetOperations,
  ...contextOperations,
  ...recallOperations,
  ...treeOperations,
  ...responseOperations,
  ...browseOperations,
  ...memorySearchOperations,
  ...memoryLifeOperations,
  ...memoryDeriveOperations,
  ...embeddingOperations,
  ...embeddingCacheOperations,
  ...turnOperations,
  ...leaseOperations,
  ...rootLifeOperations,
  ...rootListOperations,
  ...stopOperations,
  escalate,
  ...backgroundOperations,
  ...budgetOperations,
  ...durableOperations,
  ...subagentRunOperations,
  ...subagentListOperations,
  ...newsOperations,
  ...sweepOperations,
  acceptRun,
  beginRun,
  finishRun,
  killRuns,
  injectSteer,
  replaceRun,
  takeNews,
  tellNews,
  endWork,
  endWorkWithMessage,
  ...cronJobOperations,
  ...cronSearchOperations,
  ...cronOccurrenceOperations,
  ...cronResetOperations,
  realignJobs,
  claimOccurrence,
  claimManually,
  finishOccurrence,
  readUnfinished,
  ...skillOperations,
  ...fileTaintOperations,
  ...tokenOperations,
  ...approvalOperations,
  askApproval,
  withdrawApproval,
  readLeftTurns,
  resumeBehind,
  ...auditOperations,
  ...receiptOperations,
  ...ageClockOperations,
  ...inboxOperations,
  ...sessionSendOperations,
  acceptSend,
  failSendWork,
  beginScript,
  endScript,
  ...subagentChildOperations,
  ...graphOperations,
  ...graphReadOperations,
  ...savedGraphOperations,
  ...graphWorkOperations,
  waitingRunsOf,
  waitingOfRun,
  ...mcpOperations,
  ...heartbeatOperations,
  beginBeat,
  endBeat,
  recoverBeats,
  ...webhookOperations,
  acceptDelivery,
  ...eventOperations,
  openTurn,
  commitTurn,
  openDurableTurn,
  checkpointTurn,
  reserveForDurable,
  commitDurableTurn,
  abortOpenTurns,
  openWork,
  bookWork,
  deleteConversation,
  resetSession,
  resetConversation,
  findReviewable,
  readReviewable,
  keepReview,
  failReview,
  writeAudit,
];

/** The schema, in any order: the numbers in the ids decide. */
export const migrations: readonly Migration[] = [
  ...auditMigrations,
  ...ageClockMigrations,
  ...sessionMigrations,
  ...contextMigrations,
  ...turnMigrations,
  ...autonomyMigrations,
  ...subagentMigrations,
  ...backgroundMigrations,
  ...budgetMigrations,
  ...durableMigrations,
  ...cronMigrations,
  ...approvalMigrations,
  ...responseMigrations,
  ...memoryMigrations,
  ...memoryLifeMigrations,
  ...agentMigrations,
  ...skillMigrations,
  ...workspaceMigrations,
  ...tokenMigrations,
  ...inboxMigrations,
  ...graphMigrations,
  ...sessionSendMigrations,
  ...mcpMigrations,
  ...heartbeatMigrations,
  ...receiptMigrations,
  ...webhookMigrations,
  ...eventMigrations,
];
