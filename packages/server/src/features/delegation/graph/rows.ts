import {
  Capability,
  type GraphNodeState,
  type GraphState,
  GraphEdge,
  GraphNode,
  GraphSettings,
  maxGraphNodes,
  ToolPolicy,
  type TurnOrigin,
  once,
} from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { ChatEndpoint, ToolBounds } from '../../../kernel/call-context.ts';
import { StoredChatEndpoint } from '../../../kernel/chat-endpoint.ts';
import { parseJson } from '../../../kernel/json.ts';
import { type GraphSpec, readDefinition } from './definition/definition.ts';

export type CancelReason = 'manual' | 'timeout' | 'budget' | 'killed';
/** Reasons of stops that were requested and confirmed to the caller. */
export type StopReason = Extract<CancelReason, 'manual' | 'killed'>;

/** A graph that was loaded, runs or ran. */
export interface GraphRow {
  /** `gr_<uuid>` */
  readonly id: string;
  readonly principalId: string;
  readonly tokenId: string;
  readonly agentId: string;
  readonly label: string | null;
  readonly definitionJson: string;
  readonly variablesJson: string;
  readonly nodeCount: number;
  readonly rootRunId: string | null;
  /** JSON of `Requester`; null when no agent started it. */
  readonly requesterJson: string | null;
  /** 1 when an agent loaded or started it. */
  readonly byAgent: number;
  readonly announceJson: string;
  readonly nodeProgress: number;
  readonly workId: string | null;
  readonly state: GraphState;
  readonly cancelReason: CancelReason | null;
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  /** How long its time limit paused because runs of it waited. */
  readonly waitedMs: number;
}

export interface NodeRow {
  readonly graphId: string;
  readonly nodeId: string;
  /** Position among the nodes, in an order in which they could run sequentially. */
  readonly place: number;
  readonly state: GraphNodeState;
  readonly attempt: number;
  readonly runId: string | null;
  /** JSON of `StepResults` of this attempt. */
  readonly stepsJson: string;
  readonly output: string | null;
  /** Summary of the output for nodes that get no more of it; empty when the model's answer cannot be used. */
  readonly summary: string | null;
  readonly error: string | null;
  /** Why its run failed, for owners: the sentence of `SubAgentCompletion`. */
  readonly cause: string | null;
  readonly partial: number;
  /** Calls of its runs that needed an approval and were not run. */
  readonly effectsRefused: number;
  /** 1 when a run of it had read text from outside. */
  readonly tainted: number;
  /** Answer to an approval gate. */
  readonly answer: 'approved' | 'denied' | 'expired' | null;
  readonly answerText: string | null;
  readonly tokens: number;
  readonly costNano: number;
  readonly unpriced: number;
  readonly startedAtMs: number | null;
  readonly deadlineMs: number | null;
  readonly endedAtMs: number | null;
}

/** Written only by this feature, from validated input. */
const Definition = once(() =>
  z.object({
    nodes: z.array(GraphNode()).min(1).max(maxGraphNodes),
    edges: z.array(GraphEdge()).optional(),
    label: z.string().optional(),
    settings: GraphSettings().optional(),
    defaultAgentId: z.string().optional(),
  }),
);
export type StoredDefinition = z.output<ReturnType<typeof Definition>>;

export const parseDefinition = (json: string): StoredDefinition => Definition().parse(parseJson(json));

export function specOf({ definitionJson }: Pick<GraphRow, 'definitionJson'>): GraphSpec {
  const read = readDefinition(parseDefinition(definitionJson));
  if ('spec' in read) return read.spec;
  throw new AppError('precondition_failed', 'The stored graph is not compatible with this version');
}

const Variables = once(() => z.record(z.string(), z.string()));
export const variablesIn = ({ variablesJson }: Pick<GraphRow, 'variablesJson'>) => Variables().parse(parseJson(variablesJson));

/** The turn of an agent that started a graph. */
export interface Requester {
  readonly conversationRef: string;
  readonly turnId: string;
  readonly origin: TurnOrigin;
  readonly leaseId: string | null;
  /** The sub-agent whose turn it is: stopping that run stops the graph. */
  readonly runId: string | null;
  readonly depth: number;
  readonly bounds?: ToolBounds | undefined;
  /** Whether it had read text from outside; its text is then no instruction to others. */
  readonly tainted: boolean;
  /** What it may start. */
  readonly caps: readonly Capability[];
}

const RequesterJson = once(() =>
  z.object({
    conversationRef: z.string(),
    turnId: z.string(),
    origin: z.string(),
    leaseId: z.string().nullable(),
    runId: z.string().nullable(),
    depth: z.int(),
    bounds: z.object({ policies: z.array(ToolPolicy), agents: z.array(z.string()) }).optional(),
    tainted: z.boolean(),
    caps: z.array(Capability),
  }),
);
// The origin was written from a `TurnOrigin`; only the contract has the list of them at run time.
export const requesterIn = ({ requesterJson }: Pick<GraphRow, 'requesterJson'>): Requester | undefined =>
  requesterJson === null ? undefined : (RequesterJson().parse(parseJson(requesterJson)) as Requester);

const Announce = once(() =>
  z.discriminatedUnion('to', [
    z.object({ to: z.literal('inbox') }),
    z.object({ to: z.literal('conversation'), conversationRef: z.string(), agentId: z.string(), endpoint: StoredChatEndpoint().optional() }),
    z.object({ to: z.literal('chat'), endpoint: StoredChatEndpoint() }),
  ]),
);
/** Target of the announcement of a graph; a conversation that a chat belongs to answers in it. */
export type Announce = z.output<ReturnType<typeof Announce>>;
export const announceIn = ({ announceJson }: Pick<GraphRow, 'announceJson'>): Announce => Announce().parse(parseJson(announceJson));

/** Returns the chat that gets the messages of a graph; undefined for the inbox. */
export const chatIn = (announce: Announce): ChatEndpoint | undefined => (announce.to === 'inbox' ? undefined : announce.endpoint);

const Steps = once(() =>
  z.array(z.array(z.object({ ok: z.boolean(), text: z.string(), error: z.string().optional(), partial: z.boolean().optional() }))),
);
export const stepsIn = ({ stepsJson }: Pick<NodeRow, 'stepsJson'>) => Steps().parse(parseJson(stepsJson));
