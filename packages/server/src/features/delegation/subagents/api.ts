import type { Capability, SubAgentCompletion, SubAgentEndReason, SubAgentTelemetry, ToolPolicy, TurnOrigin } from '@gatehouse/contract';
import type * as z from 'zod';
import type { AppError } from '../../../kernel/app-error.ts';
import type { CallContext, ChatEndpoint, ToolBounds } from '../../../kernel/call-context.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { Waiting } from '../../unattended/durable/api.ts';

/** Input that ends a run, in the transaction that ends its work. */
export interface RunEnding {
  readonly runId: string;
  readonly state: 'completed' | 'failed';
  readonly endReason: SubAgentEndReason;
  readonly errorKind: string | null;
  /** Why it failed, for owners: the provider's own sentence, or ours. */
  readonly cause: string | null;
  readonly summary: string | null;
  /** Its final text, bounded. */
  readonly resultText: string | null;
  readonly resultRefJson: string | null;
  readonly telemetryJson: string | null;
  /** 1 when it had read text from outside. */
  readonly tainted: number;
  readonly tokens: number;
  /** Cost in 1e-9 US dollars; null when the price of a call is unknown. */
  readonly costNano: number | null;
  readonly atMs: number;
}

/** Runs whose completion is announced, in the transaction that announces it. */
export interface AnnouncedRuns {
  readonly runIds: readonly string[];
  readonly as: 'turn' | 'inbox';
}

/** A run that a feature starts for its own work. */
export interface RunRequest {
  /** Unique: the same key is the same run, even after a crash. */
  readonly key: string;
  readonly agentId: string;
  readonly principalId: string;
  /** The token whose identity the run has; its agents and its lifetime limit the run. */
  readonly tokenId: string;
  readonly rootRunId: string;
  readonly parentLeaseId: string | null;
  readonly depth: number;
  /** Written by the feature; the text of others in it is fenced. */
  readonly task: string;
  /** The task as it is listed, if different from `task`. */
  readonly shownTask?: string | undefined;
  /** What the run may start, within what its agent may; everything that its agent may when absent. */
  readonly caps?: ReadonlySet<Capability> | undefined;
  readonly model?: string | undefined;
  readonly maxSteps?: number | undefined;
  readonly timeoutMs?: number | undefined;
  readonly toolPolicy?: ToolPolicy | undefined;
  /** The turn that requested the work, as in its `call.agentCaller.turn`. */
  readonly asked?: { readonly origin: TurnOrigin; readonly bounds?: ToolBounds | undefined; readonly agentId: string } | undefined;
  /** The run whose turn requested it: killing that run kills this one too. */
  readonly parentRunId?: string | undefined;
  readonly graph?: { readonly graphId: string; readonly nodeId: string } | undefined;
  /** Continues in the conversation of an earlier run: another attempt at the same node. */
  readonly conversationOf?: string | undefined;
  /** The chat in which its approvals are asked. */
  readonly endpoint?: ChatEndpoint | undefined;
}

/** How a run ended, for its requester, with its complete text. */
export interface RunEnd {
  readonly runId: string;
  readonly conversationRef: string;
  readonly completion: z.output<ReturnType<typeof SubAgentCompletion>>;
  readonly telemetry: z.output<ReturnType<typeof SubAgentTelemetry>> | undefined;
  /** Reason of a failure; for owners only. */
  readonly cause: string | null;
  /** Limited to `graphMaxResultLength` characters; partial when the run was stopped early. */
  readonly text: string;
  /** It had read text from outside, so others must treat `text` as untrusted. */
  readonly tainted: boolean;
}

export interface WaitingRun {
  readonly runId: string;
  readonly nodeId: string;
  readonly waiting: Waiting;
}

export interface StoppedRun {
  readonly runId: string;
  readonly rootRunId: string;
}

export interface SubagentsApi {
  /** Stores the run and begins it as soon as a slot is free; the limits of children and queue do not apply. */
  start(request: RunRequest): Promise<{ readonly runId: string; readonly isNew: boolean }>;
  /** Resolves when the run has ended; rejects with the reason of the signal. */
  ended(runId: string, signal: AbortSignal): Promise<RunEnd>;
  /** Calls `waits` whenever the run begins to wait for its provider or a person, until the returned function is called. */
  onWait(runId: string, waits: () => void): () => void;
  /** Returns the runs of a graph that are waiting, and since when. */
  waitingOf(graphId: string): Promise<readonly WaitingRun[]>;
  /** Returns the complete result of a run and the node that it works for; undefined when there is no such run. */
  said(
    runId: string,
  ): Promise<{ readonly text: string; readonly kind: string; readonly node?: { readonly graphId: string; readonly nodeId: string } } | undefined>;
  /** Adds tools to the runs of nodes, on top of those of their agents. */
  offerToNodes(tools: readonly Tool[]): void;
  /** Kills a run and everything that it delegated; false when it had already ended. */
  kill(runId: string, call: CallContext): Promise<boolean>;
  /** Registers a handler that stops the work that runs started. Called after runs were stopped, not when they end on their own. */
  onStopped(stop: (runs: readonly StoppedRun[]) => Promise<void>): void;
  /** Returns why no run is accepted now: spawning is paused, or the daemon is stopping. */
  refusal(): AppError | undefined;
  counts(): { readonly active: number; readonly max: number; readonly queued: number };
}
