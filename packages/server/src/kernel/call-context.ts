import { allows, type TokenCompat, type TokenScope, type ToolPolicy, type TurnOrigin } from '@gatehouse/contract';

/** Who is calling: drawn from the server's own record at the edge, never from the request. */
export interface Identity {
  /** Stable owner of conversations and rows, `token:<id>`. */
  readonly principalId: string;
  readonly tokenId: string;
  readonly scopes: readonly TokenScope[];
  /** The only agents that may be reached; all when absent. */
  readonly agents?: readonly string[];
  readonly expiresAt?: number;
  /** Overrides `gateway.compat` in its `/v1` calls. */
  readonly compat?: TokenCompat;
}

/** The agent whose turn makes a call; the identity beside it is that of whoever it works for. */
export interface AgentCaller {
  readonly agentId: string;
  readonly principalId: string;
  /** The conversation whose turn it is. */
  readonly conversationRef: string;
  /** Whether the model that makes the call has read text from outside by now; absent only of callers that tests make. */
  readonly tainted?: () => boolean;
  /** The turn that makes the call; absent only of callers that tests make. */
  readonly turn?: CallingTurn;
}

/** Where a turn stands among those that one request set going. */
export interface CallingTurn {
  readonly turnId: string;
  /** By whose rights the turn acts. */
  readonly origin: TurnOrigin;
  /** Printed key of the conversation. */
  readonly sessionKey: string;
  /** Shared by everything that one request set going. */
  readonly rootRunId: string;
  /** Of the turn of a sub-agent. */
  readonly run?: { readonly runId: string; readonly leaseId: string; readonly depth: number };
  /** What holds for its tools beside the policy of its agent, and for all that it sets going. */
  readonly toolBounds?: ToolBounds;
}

/** Tools that all of these leave. */
export interface ToolBounds {
  readonly policies: readonly ToolPolicy[];
  /** Ids of agents on whose behalf it is done; nothing is left when one is gone. */
  readonly agents: readonly string[];
}

/** What travels with a call: fixed at the edge, handed down by value. */
export interface CallContext {
  readonly identity: Identity;
  /** 32 hex digits; shared by everything that the call causes. */
  readonly traceId: string;
  readonly requestId: string;
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal;
  readonly transport: 'http' | 'websocket' | 'process';
  readonly remoteAddress?: string;
  /** Present when a tool of an agent calls: it reaches what is its own, and no administrative method. */
  readonly agentCaller?: AgentCaller;
}

/** Whether a call reaches what belongs to anybody: an administrator's own, not that of an agent which works for one. */
export function isAdmin({ agentCaller, identity }: CallContext): boolean {
  return agentCaller === undefined && allows(identity.scopes, 'admin');
}

/**
 * Whether a message to an identity may hold what is for owners only, such as the sentences of a model provider: an administrator's, and
 * one to a name without a token (a webhook, a heartbeat), which only administrators read.
 */
export function isForOwners(identity: Identity | undefined): boolean {
  return identity !== undefined && (identity.scopes.length === 0 || allows(identity.scopes, 'admin'));
}

/** Whether the words of a call may be those of somebody outside: of an agent that has read such text. */
export function isTaintedCall({ agentCaller }: CallContext): boolean {
  return agentCaller?.tainted?.() === true;
}

/** Who owns what a call makes, and whose things it means: of an agent's call, whoever the agent works for. */
export function ownerOf({ agentCaller, identity }: CallContext): string {
  return agentCaller?.principalId ?? identity.principalId;
}
