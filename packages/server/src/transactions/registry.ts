import { acceptDelivery } from './accept-delivery.ts';
import { acceptRun, beginRun } from './accept-run.ts';
import { abortOpenTurns, bookWork, openWork } from './open-work.ts';
import { checkpointTurn, commitDurableTurn, openDurableTurn, reserveForDurable } from './commit-durable-turn.ts';
import { commitTurn, openTurn } from './commit-turn.ts';
import { claimBackfill, claimManually, claimOccurrence } from './claim-occurrence.ts';
import { deleteConversation } from './delete-conversation.ts';
import { channelMessageTransactions } from './accept-channel-messages.ts';
import { channelSendOperations } from './channel-sends.ts';
import { deliverToInbox } from './deliver-message.ts';
import { findOpenTraces } from './open-traces.ts';
import { findEndedConversations, pruneConversation } from './prune-conversation.ts';
import { ageClockMigrations } from '../features/operations/age-clock/migrations.ts';
import { ageClockOperations } from '../features/operations/age-clock/store.ts';
import { agentMigrations } from '../features/agents/agents/migrations.ts';
import { agentOperations } from '../features/agents/agents/store.ts';
import { leaseOperations } from '../features/delegation/autonomy/roots/lease-store.ts';
import { bookTurnOnRoot } from '../features/delegation/autonomy/store.ts';
import { rootLifeOperations } from '../features/delegation/autonomy/roots/life-store.ts';
import { rootListOperations } from '../features/delegation/autonomy/roots/list-store.ts';
import { autonomyMigrations } from '../features/delegation/autonomy/migrations.ts';
import { stopOperations } from '../features/delegation/autonomy/stops/stop-store.ts';
import { backgroundMigrations } from '../features/environment/background/migrations.ts';
import { backgroundOperations } from '../features/environment/background/store.ts';
import { approvalMigrations } from '../features/access/approvals/migrations.ts';
import { stopConversation } from './stop-conversation.ts';
import { confirmApproval } from './confirm-approval.ts';
import { askApproval, withdrawApproval } from './ask-approval.ts';
import { readWaitingTurns, resumeBehind } from './interrupted-turns.ts';
import { approvalOperations } from '../features/access/approvals/store.ts';
import { contextMigrations } from '../features/conversations/context/migrations.ts';
import { recallOperations } from '../features/conversations/context/recall/recall-store.ts';
import { contextOperations } from '../features/conversations/context/store.ts';
import { treeOperations } from '../features/conversations/context/summaries/tree-store.ts';
import { budgetMigrations } from '../features/access/budgets/migrations.ts';
import { budgetOperations } from '../features/access/budgets/store.ts';
import { usagePastOperations } from '../features/access/budgets/usage/past-store.ts';
import { cronMigrations } from '../features/unattended/cron/migrations.ts';
import { listExecutions } from '../features/operations/executions/store.ts';
import { cronBackfillOperations } from '../features/unattended/cron/occurrences/backfill-store.ts';
import { cronOccurrenceOperations } from '../features/unattended/cron/occurrences/occurrence-store.ts';
import { realignJobs } from '../features/unattended/cron/schedule/realign-store.ts';
import { cronResetOperations } from '../features/unattended/cron/jobs/reset-store.ts';
import { cronSearchOperations } from '../features/unattended/cron/jobs/search-store.ts';
import { cronJobOperations } from '../features/unattended/cron/store.ts';
import { diagnosisOperations } from '../features/operations/diagnosis/store.ts';
import { durableMigrations } from '../features/unattended/durable/migrations.ts';
import { endWork, endWorkWithMessage } from './end-interrupted-turn.ts';
import { durableOperations } from '../features/unattended/durable/store.ts';
import { eventMigrations } from '../features/operations/events/migrations.ts';
import { eventOperations } from '../features/operations/events/store.ts';
import { graphMigrations } from '../features/delegation/graph/migrations.ts';
import { graphReadOperations } from '../features/delegation/graph/status/read-store.ts';
import { savedGraphOperations } from '../features/delegation/graph/definition/saved-store.ts';
import { graphOperations } from '../features/delegation/graph/store.ts';
import { heartbeatMigrations } from '../features/unattended/heartbeat/migrations.ts';
import { heartbeatOperations } from '../features/unattended/heartbeat/store.ts';
import { inboxMigrations } from '../features/unattended/inbox/migrations.ts';
import { inboxOperations } from '../features/unattended/inbox/store.ts';
import { mcpMigrations } from '../features/agents/mcp/migrations.ts';
import { authorizationOperations } from '../features/agents/mcp/authorization/authorization-store.ts';
import { mcpOperations } from '../features/agents/mcp/store.ts';
import { knowledgeMigrations } from '../features/knowledge/sources/migrations.ts';
import { knowledgeOperations } from '../features/knowledge/sources/store.ts';
import { browserMigrations } from '../features/environment/browser/migrations.ts';
import { browserOperations } from '../features/environment/browser/store.ts';
import { browseOperations } from '../features/knowledge/memory/entries/browse-store.ts';
import { embeddingCacheOperations } from '../features/knowledge/memory/embeddings/embedding-cache-store.ts';
import { embeddingOperations } from '../features/knowledge/memory/embeddings/embedding-store.ts';
import { memoryDeriveOperations } from '../features/knowledge/memory/lifecycle/review/derive-store.ts';
import { memoryLifeMigrations } from '../features/knowledge/memory/lifecycle/life-migrations.ts';
import { memoryLifeOperations } from '../features/knowledge/memory/lifecycle/life-store.ts';
import { memoryMigrations } from '../features/knowledge/memory/migrations.ts';
import { memorySearchOperations } from '../features/knowledge/memory/recall/search-store.ts';
import { evaluationMigrations } from '../features/operations/evaluation/migrations.ts';
import { evaluationOperations } from '../features/operations/evaluation/store.ts';
import { traceMigrations } from '../features/operations/traces/migrations.ts';
import { traceRetentionOperations } from '../features/operations/traces/prune-store.ts';
import { traceOperations } from '../features/operations/traces/store.ts';
import { nodeMigrations } from '../features/operations/nodes/migrations.ts';
import { nodeOperations } from '../features/operations/nodes/store.ts';
import { reportMigrations } from '../features/operations/observability/reports/migrations.ts';
import { reportOperations } from '../features/operations/observability/reports/store.ts';
import { auditOperations } from '../features/operations/observability/audit-store.ts';
import { configVersionMigrations } from '../features/operations/settings/migrations.ts';
import { configVersionOperations } from '../features/operations/settings/store.ts';
import { secretMigrations } from '../features/operations/secrets/migrations.ts';
import { secretOperations } from '../features/operations/secrets/store.ts';
import { responseMigrations } from '../features/conversations/responses/migrations.ts';
import { responseOperations } from '../features/conversations/responses/store.ts';
import { receiptMigrations } from '../features/conversations/receipts/migrations.ts';
import { receiptOperations } from '../features/conversations/receipts/store.ts';
import { sessionSendMigrations } from '../features/delegation/session-send/migrations.ts';
import { sessionSendOperations } from '../features/delegation/session-send/store.ts';
import { sessionMigrations } from '../features/conversations/sessions/migrations.ts';
import { forkOperations } from '../features/conversations/sessions/changes/fork-store.ts';
import { promptMigrations } from '../features/conversations/prompts/migrations.ts';
import { promptOperations } from '../features/conversations/prompts/store.ts';
import { labelOperations } from '../features/conversations/sessions/changes/label-store.ts';
import { feedbackOperations } from '../features/conversations/sessions/reading/past-turns/feedback-store.ts';
import { pastTurnOperations } from '../features/conversations/sessions/reading/past-turns/past-turn-store.ts';
import { indexOperations } from '../features/conversations/sessions/search/index-store.ts';
import { resetOperations } from '../features/conversations/sessions/changes/reset-store.ts';
import { deliveryMigrations } from '../features/channels/delivery/migrations.ts';
import { deliveryOperations } from '../features/channels/delivery/store.ts';
import { outgoingMigrations } from '../features/channels/outgoing/migrations.ts';
import { outgoingOperations } from '../features/channels/outgoing/store.ts';
import { notificationMigrations } from '../features/channels/notifications/migrations.ts';
import { notificationOperations } from '../features/channels/notifications/store.ts';
import { sendMessage } from './send-message.ts';
import { sendNotification } from './send-notification.ts';
import { channelMessageMigrations } from '../features/channels/messages/migrations.ts';
import { chatApprovalOperations } from '../features/channels/approvals/store.ts';
import { channelPlaceOperations } from '../features/channels/messages/conversations-store.ts';
import { channelMessageOperations } from '../features/channels/messages/store.ts';
import { findTraced } from '../features/channels/messages/traced.ts';
import { sessionRetentionOperations } from '../features/conversations/sessions/changes/retention-store.ts';
import { searchOperations } from '../features/conversations/sessions/search/search-store.ts';
import { sessionOperations } from '../features/conversations/sessions/store.ts';
import { skillMigrations } from '../features/knowledge/skills/migrations.ts';
import { skillOperations } from '../features/knowledge/skills/store.ts';
import { workspaceMigrations } from '../features/environment/workspace/migrations.ts';
import { fileTaintOperations } from '../features/environment/workspace/taint/taint-store.ts';
import { tokenMigrations } from '../features/access/tokens/migrations.ts';
import { tokenOperations } from '../features/access/tokens/store.ts';
import { turnMigrations } from '../features/conversations/turns/migrations.ts';
import { turnMessageOperations } from '../features/conversations/turns/lanes/turn-message-store.ts';
import { turnOperations } from '../features/conversations/turns/store.ts';
import { escalate } from './escalate.ts';
import { finishOccurrence, readUnfinished } from './finish-occurrence.ts';
import { webhookMigrations } from '../features/unattended/webhooks/migrations.ts';
import { webhookOperations } from '../features/unattended/webhooks/store.ts';
import { graphWorkOperations } from './graph-work.ts';
import { readModelUses } from './model-uses.ts';
import { findWaitingRoot, listWaitingRoots, readRootTasks, readRootWaits } from './waiting-roots.ts';
import { rootsOfToken } from './token-roots.ts';
import { waitingOfRun, waitingRunsOf } from './waiting-runs.ts';
import { resetConversation, resetSession } from './reset-conversation.ts';
import { failReview, findReviewable, keepReview, readReviewable } from './review-conversation.ts';
import { beginBeat, endBeat, recoverBeats } from './heartbeat-work.ts';
import { beginScript, endScript } from './orchestrate-work.ts';
import { acceptSend, failSendWork, keepAnswer } from './send-work.ts';
import { subagentChildOperations } from '../features/delegation/subagents/status/child-store.ts';
import { subagentMigrations } from '../features/delegation/subagents/migrations.ts';
import { endRunWithTurn, finishRun, killRuns } from './end-run.ts';
import { subagentListOperations } from '../features/delegation/subagents/status/list-store.ts';
import { announcementOperations } from '../features/delegation/subagents/completion/announcement-store.ts';
import { subagentRunOperations } from '../features/delegation/subagents/store.ts';
import { sweepOperations } from '../features/delegation/subagents/run/sweep-store.ts';
import { injectSteer, replaceRun } from './steer-run.ts';
import { deliverAnnouncement, takeAnnouncement } from './deliver-announcements.ts';
import { writeAudit } from '../kernel/audit.ts';
import { putKnowledgeFile } from './put-knowledge-file.ts';
import { auditMigrations } from '../kernel/db/audit.ts';
import type { Migration, Operation } from '../kernel/db/operation.ts';

/** All operations that the storage threads can run, by name. One that a store exports but that is missing here does not exist for them. */
export const operations: readonly Operation<never, unknown>[] = [
  ...agentOperations,
  ...sessionOperations,
  ...searchOperations,
  ...indexOperations,
  ...forkOperations,
  ...labelOperations,
  ...promptOperations,
  ...feedbackOperations,
  ...pastTurnOperations,
  ...resetOperations,
  ...sessionRetentionOperations,
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
  ...turnMessageOperations,
  ...leaseOperations,
  ...rootLifeOperations,
  bookTurnOnRoot,
  ...rootListOperations,
  ...stopOperations,
  escalate,
  ...backgroundOperations,
  ...budgetOperations,
  ...usagePastOperations,
  ...durableOperations,
  ...subagentRunOperations,
  ...subagentListOperations,
  ...announcementOperations,
  ...sweepOperations,
  acceptRun,
  beginRun,
  finishRun,
  endRunWithTurn,
  killRuns,
  injectSteer,
  replaceRun,
  takeAnnouncement,
  deliverAnnouncement,
  endWork,
  endWorkWithMessage,
  ...cronJobOperations,
  ...cronSearchOperations,
  ...cronOccurrenceOperations,
  ...cronBackfillOperations,
  listExecutions,
  ...cronResetOperations,
  realignJobs,
  claimOccurrence,
  claimManually,
  claimBackfill,
  finishOccurrence,
  readUnfinished,
  ...skillOperations,
  ...fileTaintOperations,
  ...tokenOperations,
  ...approvalOperations,
  askApproval,
  withdrawApproval,
  readWaitingTurns,
  resumeBehind,
  ...auditOperations,
  ...reportOperations,
  ...receiptOperations,
  ...ageClockOperations,
  ...nodeOperations,
  ...traceOperations,
  ...diagnosisOperations,
  ...evaluationOperations,
  ...traceRetentionOperations,
  findOpenTraces,
  ...channelMessageTransactions,
  ...channelSendOperations,
  ...chatApprovalOperations,
  confirmApproval,
  stopConversation,
  ...outgoingOperations,
  sendMessage,
  ...notificationOperations,
  sendNotification,
  ...channelMessageOperations,
  ...channelPlaceOperations,
  findTraced,
  ...deliveryOperations,
  ...configVersionOperations,
  ...secretOperations,
  ...inboxOperations,
  deliverToInbox,
  ...sessionSendOperations,
  acceptSend,
  keepAnswer,
  failSendWork,
  beginScript,
  endScript,
  ...subagentChildOperations,
  ...graphOperations,
  ...graphReadOperations,
  ...savedGraphOperations,
  ...graphWorkOperations,
  waitingRunsOf,
  rootsOfToken,
  readModelUses,
  findWaitingRoot,
  listWaitingRoots,
  readRootWaits,
  readRootTasks,
  waitingOfRun,
  ...mcpOperations,
  ...browserOperations,
  ...knowledgeOperations,
  putKnowledgeFile,
  ...authorizationOperations,
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
  findEndedConversations,
  pruneConversation,
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
  ...nodeMigrations,
  ...traceMigrations,
  ...reportMigrations,
  ...evaluationMigrations,
  ...configVersionMigrations,
  ...secretMigrations,
  ...sessionMigrations,
  ...promptMigrations,
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
  ...browserMigrations,
  ...knowledgeMigrations,
  ...heartbeatMigrations,
  ...receiptMigrations,
  ...webhookMigrations,
  ...channelMessageMigrations,
  ...deliveryMigrations,
  ...outgoingMigrations,
  ...notificationMigrations,
  ...eventMigrations,
];
