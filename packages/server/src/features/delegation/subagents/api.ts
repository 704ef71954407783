import type { Capability, SubAgentCompletion, SubAgentEndReason, SubAgentTelemetry, ToolPolicy, TurnOrigin } from '@gatehouse/contract';
import type * as z from 'zod';
import type { AppError } from '../../../kernel/app-error.ts';
import type { CallContext, ToolBounds } from '../../../kernel/call-context.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { Waiting } from '../../unattended/durable/api.ts';

export type { EndedRun } from './run/row.ts';

/** What ends a run, in the transaction that ends its work. */
export interface RunEnding {
  readonly runId: string;
  readonly state: 'completed' | 'failed';
  readonly endReason: SubAgentEndReason;
  readonly errorKind: string | null;
  /** Why it failed, for owners: the provider's own sentence, or ours. */
  readonly cause: string | null;
  readonly summary: string | null;
  /** What it said, bounded. */
  readonly resultText: string | null;
  readonly resultRefJson: string | null;
  readonly telemetryJson: string | null;
  /** 1: it had read text from outside. */
  readonly tainted: number;
  readonly tokens: number;
  /** In 1e-9 US dollars; null when the price of a call is not known. */
  readonly costNano: number | null;
  readonly atMs: number;
}

/** Runs whose ends somebody is told, in the transaction that tells it. */
export interface NewsTold {
  readonly runIds: readonly string[];
  readonly as: 'turn' | 'inbox';
}

/** A run that a feature starts for a piece of work of its own. */
export interface RunRequest {
  /** Unique: the same key is the same run, also after a crash. */
  readonly key: string;
  readonly agentId: string;
  readonly principalId: string;
  /** The token whose identity the run has; its agents and its life bound it. */
  readonly tokenId: string;
  readonly rootRunId: string;
  readonly parentLeaseId: string | null;
  readonly depth: number;
  /** Written by the feature; what others said stands in it fenced. */
  readonly task: string;
  /** As it is listed, when not like `task`. */
  readonly shownTask?: string | undefined;
  /** What the run may set going, as far as its agent may; all that its agent may when absent. */
  readonly caps?: ReadonlySet<Capability> | undefined;
  readonly model?: string | undefined;
  readonly maxSteps?: number | undefined;
  readonly timeoutMs?: number | undefined;
  readonly toolPolicy?: ToolPolicy | undefined;
  /** Of the turn that asked for the piece of work: as its `call.agentCaller.turn` says. */
  readonly asked?: { readonly origin: TurnOrigin; readonly bounds?: ToolBounds | undefined; readonly agentId: string } | undefined;
  /** The run whose turn asked for it: whoever kills that one kills this one too. */
  readonly parentRunId?: string | undefined;
  readonly graph?: { readonly graphId: string; readonly nodeId: string } | undefined;
  /** The run goes on in the conversation of an earlier one: a further try of the same node. */
  readonly conversationOf?: string | undefined;
}

/** How a run ended, for whoever started it: with the whole of what it said. */
export interface RunEnd {
  readonly runId: string;
  readonly conversationRef: string;
  readonly completion: z.output<typeof SubAgentCompletion>;
  readonly telemetry: z.output<typeof SubAgentTelemetry> | undefined;
  /** Of a failure; for owners only. */
  readonly cause: string | null;
  /** At most `graphMaxResultLength` characters; partial when it was ended early. */
  readonly text: string;
  /** It had read text from outside: for others, `text` is such text. */
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
  /** Stores the run and begins it as soon as a place is free; limits of children and queue do not hold. */
  start(request: RunRequest): Promise<{ readonly runId: string; readonly isNew: boolean }>;
  /** Resolves when the run has ended; rejects with the reason of the signal. */
  ended(runId: string, signal: AbortSignal): Promise<RunEnd>;
  /** Calls `waits` whenever the run begins to wait for its provider or a person, until the returned function is called. */
  onWait(runId: string, waits: () => void): () => void;
  /** Runs of a graph that wait now, and since when. */
  waitingOf(graphId: string): Promise<readonly WaitingRun[]>;
  /** What a run said, whole, and the node that it works for; undefined when there is no such run. */
  said(
    runId: string,
  ): Promise<{ readonly text: string; readonly kind: string; readonly node?: { readonly graphId: string; readonly nodeId: string } } | undefined>;
  /** Tools that the runs of nodes have beside those of their agents. */
  offerToNodes(tools: readonly Tool[]): void;
  /** Ends a run and everything that it delegated; false when it had ended before. */
  kill(runId: string, call: CallContext): Promise<boolean>;
  /** Parts that runs started work of end it here. Called after the runs were stopped by somebody, not when they end by themselves. */
  onStopped(stop: (runs: readonly StoppedRun[]) => Promise<void>): void;
  /** Why nothing is taken now: paused, or the daemon stops. */
  refusal(): AppError | undefined;
  counts(): { readonly active: number; readonly max: number; readonly queued: number };
}
