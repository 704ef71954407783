export type { BrowserRecordedStep, BrowserRecording } from './methods/browser-recordings.ts';
export type { BrowserConsoleEntry, BrowserTab } from './methods/browser.ts';
export { executionKinds, executionStates, type ListedExecution } from './methods/run.ts';
export { type SpeechFormat, speechFormats, type TtsAutoMode } from './methods/multimodal.ts';
export { type Contract, contract, methodsByName, type MethodName, type Params, type ParamsInput, type Result, type ResultInput } from './registry.ts';
export {
  diagnosticCategories,
  type DiagnosticCategory,
  deliveryStatuses,
  type DeliveryStatus,
  resetTables,
  type ResetTarget,
} from './methods/obs-reports.ts';
export { type Method, method, type Risk } from './method.ts';
export { once } from './once.ts';
export { isSection, section, sectionDefault } from './section.ts';
export { type ErrorCode, errorCatalogue, type ErrorEntry, type Issue } from './errors.ts';
export type { EventDeclaration, EventVisibility } from './event.ts';
export { type EventKind, eventKinds, type EventPayload, events } from './events.ts';
export { allows, containsScopes, type MethodScope, normalizeScopes, type RouteScope, scopeNames, TokenScope, tokenScopes } from './scopes.ts';
export { type Route, type RouteFamily, type RouteName, routes } from './http/routes.ts';
export { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest, ChatMessage, CompletionUsage, imageNotSupported } from './http/v1-chat.ts';
export { ModelList, ModelObject } from './http/v1-models.ts';
export { ExtendedChatCompletionRequest, type ExtendedChatMessage } from './http/v1-chat-extended.ts';
export {
  type AnswerBlock,
  CountTokensRequest,
  MessageObject,
  type MessageParam,
  MessagesError,
  MessagesRequest,
  MessageStopReason,
  MessageStreamEvent,
  MessageUsage,
  TokenCount,
} from './http/v1-messages.ts';
export { ResponseDeleted, ResponseObject, ResponseRequest } from './http/v1-responses.ts';
export { ResponseInputItem, ResponseOutputItem } from './http/v1-responses-items.ts';
export { effortOf } from './http/v1-harmless.ts';
export {
  ResponseCompaction,
  ResponseCompactRequest,
  ResponseInputItems,
  ResponseSocketError,
  ResponseTokens,
  ResponseTokensRequest,
} from './http/v1-responses-more.ts';
export { ResponseStreamEvent } from './http/v1-responses-events.ts';
export { ImageRequest, ImageResponse, SpeechRequest, Transcription, TranscriptionFields } from './http/v1-audio.ts';
export { EmbeddingRequest, EmbeddingResponse, ExtendedEmbeddingRequest } from './http/v1-embeddings.ts';
export { ApiChatGap, ApiChatRequest, ApiChatResult, ApiChatToken } from './http/api-chat.ts';
export { ApiAgents, ApiChannels, ApiChatHistory } from './http/api-lists.ts';
export { ApiMemorySearch, ApiMemoryStats } from './http/api-memory.ts';
export { ActivityList, EventGap } from './http/events.ts';
export { MediaId, MediaInfo, MediaList, MediaPage } from './http/media.ts';
export {
  TracedError,
  TracedText,
  TracedTokens,
  type TraceKind,
  traceKinds,
  type TraceOutcome,
  traceOutcomes,
  TraceRecord,
  TraceStep,
  type TraceStepKind,
  traceStepKinds,
} from './shared/trace.ts';
export { ExplainReport, Truncation } from './shared/explain-report.ts';
export { SystemHealthReport } from './shared/health-report.ts';
export type { KeptRecordName } from './methods/gateway.ts';
export { type HealthFindingCode, healthFindings, RootCause, type RootCauseCode, rootCauses, unusedRootCauses } from './shared/root-cause.ts';
export { WebhookPayload, WebhookReceived } from './http/hooks.ts';
export { V1Error } from './http/v1-error.ts';
export { Health, HealthCheck, HttpError } from './http/health.ts';
export { RpcError, RpcId, RpcReply, RpcRequest } from './http/rpc.ts';
export {
  type AgentBudgets,
  AgentConfig,
  type AgentConfigInput,
  AgentHeartbeat,
  AgentNotification,
  heartbeatFields,
  ModelName,
  type OperationType,
  operationTypes,
  QuietHours,
  SessionReset,
  ToolPattern,
  ToolPolicy,
  toolProfiles,
  windowBudgets,
  UnattendedApprovals,
} from './shared/agent-config.ts';
export { emailActions } from './shared/actions/email.ts';
export { ircActions } from './shared/actions/irc.ts';
export { matrixActions } from './shared/actions/matrix.ts';
export { telegramActions } from './shared/actions/telegram.ts';
export { slackActions } from './shared/actions/slack.ts';
export {
  ChannelCapabilities,
  type ChannelState,
  type ChannelVerdict,
  type DeliveryState,
  type MessageStatus,
  type NotificationPriority,
} from './shared/channel.ts';
export { type ActionParams, type ActionPlatform, actionsByPlatform, actionsOf } from './methods/platform-actions.ts';
export type { PlatformAction, PlatformActions } from './shared/platform-action.ts';
export { BrowserAct, type BrowserActKind } from './shared/browser-act.ts';
export { AgentId, ChannelEndpoint, ConversationRef, ConversationScope, PrintedSessionKey, SessionKey, SessionKeyObject } from './shared/session.ts';
export { AnswerEffort, EpochMs, FinishReason, TokensUsed, TurnOrigin } from './shared/turn.ts';
export { autonomyProfiles, type AutonomyProfile, Capability, capabilityNames } from './shared/capability.ts';
export {
  GraphEdge,
  graphDefinition,
  GraphId,
  GraphNode,
  graphNodeStates,
  type GraphNodeState,
  type GraphNodeType,
  graphNodeTypes,
  GraphSettings,
  graphStates,
  type GraphState,
  graphTypeConfigs,
  GraphWarning,
  graphWarningTypes,
  maxGraphNodes,
  NodeId,
} from './shared/graph.ts';
export {
  maxSummaryCharacters,
  ResultRef,
  RootRunId,
  SubAgentCompletion,
  SubAgentCompletionFacts,
  type SubAgentEndReason,
  subAgentEndReasons,
  SubAgentFacts,
  SubAgentRecord,
  SubAgentRunId,
  type SubAgentState,
  subAgentStates,
  SubAgentTelemetry,
} from './shared/sub-agent.ts';
export { WakeAdmission, WakeLane, WakeReason } from './shared/wake.ts';
export {
  type CronAction,
  cronActions,
  CronCounter,
  CronDeliveryTarget,
  cronDeliveryStates,
  type CronDeliveryState,
  CronGateVerdict,
  CronJobPayload,
  CronLifecycle,
  cronLimits,
  CronPayload,
  CronPolicies,
  cronRunStates,
  type CronRunState,
  CronSchedule,
  CronScheduleRequest,
  type CronTrigger,
  cronTriggers,
  type CronWorkKind,
} from './shared/cron.ts';
export { CronJob, CronRun } from './methods/cron.ts';
export { LogLevel, LogLine } from './methods/daemon.ts';
export { MessageAttachment, type MessageFeedback, type SessionKind, type StoredMessage } from './methods/session.ts';
export { MemoryEntry, MemoryHit, memoryLimits, MemoryStats } from './methods/memory.ts';
export { ApprovalId, ApprovalRequest } from './methods/admin-approval.ts';
export { InboxMessage } from './methods/inbox.ts';
export { type EvalResult, type EvalRun } from './methods/eval.ts';
export { EvalCase, type EvalChecks, EvalFile, evalLimits, type EvalVariant } from './shared/evaluation.ts';
export { AuditEntry } from './methods/obs.ts';
export { type Skill, type SkillFinding, SkillName } from './methods/skills.ts';
export { OwnerLimits, PersonName, TokenCompat, TokenId } from './methods/tokens.ts';
export { SecretName } from './methods/env.ts';
export { McpHeaders, McpServerName, mcpTransports } from './methods/mcp.ts';
export { ModelCost } from './methods/models.ts';
export type { WebhookDelivery } from './methods/webhooks.ts';
export { WebhookDeliveryId } from './shared/webhook.ts';
export { WorkWaiting } from './shared/waiting.ts';
export type { ProviderState } from './methods/providers.ts';
export type { ModelTier } from './shared/model-tier.ts';
export { ModelPriceEntry, ProviderModelEntry, type ProviderType, providerTypes } from './shared/provider.ts';
export { standardFolders, type TemplateName, templateNames, workspaceLimits } from './methods/workspace.ts';
export { isJsonObject, type Json, type JsonObject } from './json-schema.ts';
export { openApiDocument, type OpenApiDocument } from './openapi.ts';
export { openRpcDocument, type OpenRpcContentDescriptor, type OpenRpcDocument, type OpenRpcMethod } from './openrpc.ts';
export { resolveSchema, type SchemaLookup, type SchemaRow, schemaRows, typeText } from './schema-text.ts';
export { discordActions } from './shared/actions/discord.ts';
