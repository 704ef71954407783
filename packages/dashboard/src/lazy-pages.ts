import { lazy } from 'react';

/** The code of a page could not be fetched: the gateway does not respond, or a new build replaced the file. */
export class PageNotLoaded extends Error {
  override readonly name = 'PageNotLoaded';
}

/** Loads code on demand. */
function part<T>(load: () => Promise<T>): () => Promise<T> {
  return () =>
    load().catch((cause: unknown) => {
      throw new PageNotLoaded('This page could not be loaded.', { cause });
    });
}

/** Code that is not needed at once; preloaded after login, so that pages open while the gateway restarts and after an update. */
export const lazyPages = {
  agent: part(() => import('./pages/agent/agent-page.tsx')),
  agents: part(() => import('./pages/agents/agents-page.tsx')),
  audit: part(() => import('./pages/audit/audit-page.tsx')),
  browser: part(() => import('./pages/browser/browser-dialog.tsx')),
  channels: part(() => import('./pages/channels/channels-page.tsx')),
  conversation: part(() => import('./pages/chat/dialogs.ts')),
  evals: part(() => import('./pages/evals/evals-page.tsx')),
  events: part(() => import('./pages/events/events-page.tsx')),
  executions: part(() => import('./pages/executions/executions-page.tsx')),
  explorer: part(() => import('./pages/explorer/explorer-page.tsx')),
  files: part(() => import('./pages/files/files.ts')),
  graphs: part(() => import('./pages/graphs/graphs-page.tsx')),
  health: part(() => import('./pages/health/health-page.tsx')),
  help: part(() => import('./pages/help/help-page.tsx')),
  inbox: part(() => import('./pages/inbox/inbox-page.tsx')),
  knowledge: part(() => import('./pages/knowledge/knowledge-page.tsx')),
  logs: part(() => import('./pages/logs/logs-page.tsx')),
  memory: part(() => import('./pages/memory/memory-page.tsx')),
  palette: part(() => import('./palette/palette.tsx')),
  runs: part(() => import('./pages/runs/runs-page.tsx')),
  schedule: part(() => import('./pages/schedule/schedule-page.tsx')),
  settings: part(() => import('./pages/settings/settings-page.tsx')),
  spend: part(() => import('./pages/spend/spend-page.tsx')),
  start: part(() => import('./pages/start/start-page.tsx')),
  tokens: part(() => import('./pages/tokens/tokens-page.tsx')),
  traces: part(() => import('./pages/traces/traces-page.tsx')),
  waiting: part(() => import('./pages/waiting/waiting-page.tsx')),
  webhooks: part(() => import('./pages/webhooks/webhooks-page.tsx')),
};

/** Loads all pages one after the other, so that no task of the page holds them all. Failures are reported by the page itself when it opens. */
export async function preloadPages(signal: AbortSignal): Promise<void> {
  for (const load of Object.values(lazyPages)) {
    if (signal.aborted) return;
    await load().catch(() => undefined);
  }
}

export const AgentPage = lazy(async () => ({ default: (await lazyPages.agent()).AgentPage }));
export const AgentsPage = lazy(async () => ({ default: (await lazyPages.agents()).AgentsPage }));
export const ApprovalCard = lazy(async () => ({ default: (await part(() => import('./pages/approvals/approval-card.tsx'))()).ApprovalCard }));
export const AttachmentList = lazy(async () => ({ default: (await lazyPages.files()).AttachmentList }));
export const AuditPage = lazy(async () => ({ default: (await lazyPages.audit()).AuditPage }));
export const BrowserDialog = lazy(async () => ({ default: (await lazyPages.browser()).BrowserDialog }));
export const ChannelsPage = lazy(async () => ({ default: (await lazyPages.channels()).ChannelsPage }));
export const ConversationDialog = lazy(async () => ({ default: (await lazyPages.conversation()).ConversationDialog }));
export const EvalsPage = lazy(async () => ({ default: (await lazyPages.evals()).EvalsPage }));
export const EventsPage = lazy(async () => ({ default: (await lazyPages.events()).EventsPage }));
export const ExplorerPage = lazy(async () => ({ default: (await lazyPages.explorer()).ExplorerPage }));
export const ExecutionsPage = lazy(async () => ({ default: (await lazyPages.executions()).ExecutionsPage }));
export const GraphsPage = lazy(async () => ({ default: (await lazyPages.graphs()).GraphsPage }));
export const HealthPage = lazy(async () => ({ default: (await lazyPages.health()).HealthPage }));
export const HelpPage = lazy(async () => ({ default: (await lazyPages.help()).HelpPage }));
export const InboxPage = lazy(async () => ({ default: (await lazyPages.inbox()).InboxPage }));
export const KnowledgePage = lazy(async () => ({ default: (await lazyPages.knowledge()).KnowledgePage }));
export const LogsPage = lazy(async () => ({ default: (await lazyPages.logs()).LogsPage }));
export const MadeFiles = lazy(async () => ({ default: (await lazyPages.files()).MadeFiles }));
export const MadeFilesOfTurn = lazy(async () => ({ default: (await lazyPages.files()).MadeFilesOfTurn }));
export const MediaPage = lazy(async () => ({ default: (await lazyPages.files()).MediaPage }));
export const MemoryPage = lazy(async () => ({ default: (await lazyPages.memory()).MemoryPage }));
export const Palette = lazy(async () => ({ default: (await lazyPages.palette()).Palette }));
export const ModelSelects = lazy(async () => ({ default: (await lazyPages.conversation()).ModelSelects }));
export const PromptsDialog = lazy(async () => ({ default: (await lazyPages.conversation()).PromptsDialog }));
export const RunsPage = lazy(async () => ({ default: (await lazyPages.runs()).RunsPage }));
export const SchedulePage = lazy(async () => ({ default: (await lazyPages.schedule()).SchedulePage }));
export const SettingsPage = lazy(async () => ({ default: (await lazyPages.settings()).SettingsPage }));
export const Shortcuts = lazy(async () => ({ default: (await lazyPages.palette()).Shortcuts }));
export const SpeakButton = lazy(async () => ({ default: (await lazyPages.files()).SpeakButton }));
export const SpendPage = lazy(async () => ({ default: (await lazyPages.spend()).SpendPage }));
export const StartPage = lazy(async () => ({ default: (await lazyPages.start()).StartPage }));
export const SystemPromptDialog = lazy(async () => ({ default: (await lazyPages.conversation()).SystemPromptDialog }));
export const TokensPage = lazy(async () => ({ default: (await lazyPages.tokens()).TokensPage }));
export const TracesPage = lazy(async () => ({ default: (await lazyPages.traces()).TracesPage }));
export const WaitingPage = lazy(async () => ({ default: (await lazyPages.waiting()).WaitingPage }));
export const WebhooksPage = lazy(async () => ({ default: (await lazyPages.webhooks()).WebhooksPage }));
