import { lazy } from 'react';

/** The code of a page could not be fetched: the gateway is away, or its build was replaced and the file with it. */
export class PartNotLoaded extends Error {
  override readonly name = 'PartNotLoaded';
}

/** Loads code that is not needed at once. */
function part<T>(load: () => Promise<T>): () => Promise<T> {
  return () =>
    load().catch((cause: unknown) => {
      throw new PartNotLoaded('This page could not be loaded.', { cause });
    });
}

/** What is not needed at once; loaded a while after logging in, since a page must open while the gateway restarts, and after its build was replaced. */
export const laterParts = {
  agent: part(() => import('./pages/agent/agent-page.tsx')),
  approvals: part(() => import('./pages/approvals/approvals-page.tsx')),
  audit: part(() => import('./pages/audit/audit-page.tsx')),
  graphs: part(() => import('./pages/graphs/graphs-page.tsx')),
  inbox: part(() => import('./pages/inbox/inbox-page.tsx')),
  runs: part(() => import('./pages/runs/runs-page.tsx')),
  schedule: part(() => import('./pages/schedule/schedule-page.tsx')),
  webhooks: part(() => import('./pages/webhooks/webhooks-page.tsx')),
};
export const AgentPage = lazy(async () => ({ default: (await laterParts.agent()).AgentPage }));
export const ApprovalsPage = lazy(async () => ({ default: (await laterParts.approvals()).ApprovalsPage }));
export const AuditPage = lazy(async () => ({ default: (await laterParts.audit()).AuditPage }));
export const GraphsPage = lazy(async () => ({ default: (await laterParts.graphs()).GraphsPage }));
export const InboxPage = lazy(async () => ({ default: (await laterParts.inbox()).InboxPage }));
export const RunsPage = lazy(async () => ({ default: (await laterParts.runs()).RunsPage }));
export const SchedulePage = lazy(async () => ({ default: (await laterParts.schedule()).SchedulePage }));
export const WebhooksPage = lazy(async () => ({ default: (await laterParts.webhooks()).WebhooksPage }));
export const ApprovalCard = lazy(async () => ({ default: (await part(() => import('./pages/approvals/approval-card.tsx'))()).ApprovalCard }));
