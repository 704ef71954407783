import type { WorkClaim } from '../../../unattended/durable/api.ts';
import type { RunPlan } from './plan-run.ts';

/** Input of `acceptRun`. */
export interface RunAcceptance extends RunPlan {
  /** The same key is the same run, unless that one was accepted before `sinceMs`. */
  readonly key?: { readonly key: string; readonly digest: string; readonly sinceMs: number };
  /** Limits for runs that count: how many of the requester's may run and wait. */
  readonly limits?: { readonly children: number; readonly queued: number };
}

/** Input of `beginRun`. */
export interface RunBegin {
  readonly claim: WorkClaim;
  readonly runId: string;
  readonly atMs: number;
}

export type Accepted =
  | { readonly isNew: true; readonly activeChildren: number; readonly queuePosition: number }
  | { readonly isNew: false; readonly runId: string; readonly conversationRef: string; readonly rootRunId: string; readonly atMs: number }
  | { readonly refused: 'children_exceeded' | 'queue_full'; readonly open: number };
