import { allows, type TokenCompat, type TokenScope, type ToolPolicy, type TurnOrigin } from '@gatehouse/contract';

/** The caller: read from the server's own record at the edge, never from the request. */
export interface Identity {
  /** Stable owner of conversations and rows: `person:<name>` where the token has a person, otherwise `token:<id>`. */
  readonly principalId: string;
  readonly tokenId: string;
  /** The person that the token belongs to. */
  readonly person?: string;
  readonly scopes: readonly TokenScope[];
  /** The only agents that may be reached; all when absent. */
  readonly agents?: readonly string[];
  readonly expiresAt?: number;
  /** Overrides `gateway.compat` in its `/v1` calls. */
  readonly compat?: TokenCompat;
}

/**
 * Returns the current identity of a token, for work that belongs to a principal: that stays its owner when the token belongs to another person
 * by now. Undefined when the token was revoked or has expired.
 */
export type IdentityOf = (tokenId: string, principalId: string) => Identity | undefined;

/** The agent whose turn makes a call; `identity` is the user that it works for. */
export interface AgentCaller {
  readonly agentId: string;
  readonly principalId: string;
  /** The conversation whose turn it is. */
  readonly conversationRef: string;
  /** Whether the model that makes the call has read untrusted text by now; absent only in tests. */
  readonly tainted?: () => boolean;
  /** The turn that makes the call; absent only in tests. */
  readonly turn?: CallingTurn;
}

/** A place on a chat platform. */
export interface ChatEndpoint {
  /** Name of the configured channel. */
  readonly instance: string;
  readonly channelType: string;
  readonly conversationId: string;
  readonly threadId: string | null;
  readonly conversationKind: 'direct' | 'shared';
}

/** Somebody who wrote in a chat, with the authority that the message was accepted with. */
export interface ChatAuthor {
  readonly to: ChatEndpoint;
  /** Id on the platform. */
  readonly senderId: string;
  readonly trust: 'owner' | 'member' | 'guest';
}

/** Position of a turn in the tree of turns that one request started. */
export interface CallingTurn {
  readonly turnId: string;
  /** Its trace; absent only in tests. */
  readonly traceId?: string;
  /** The authority under which the turn acts. */
  readonly origin: TurnOrigin;
  /** Printed key of the conversation. */
  readonly sessionKey: string;
  /** Shared by everything that one request started. */
  readonly rootRunId: string;
  /** Set for the turn of a sub-agent. */
  readonly run?: { readonly runId: string; readonly leaseId: string; readonly depth: number };
  /** Set for a turn that nobody asked for, such as that of an evaluation. */
  readonly synthetic?: true;
  /** Limits on its tools in addition to its agent's policy; they also apply to everything that it starts. */
  readonly toolBounds?: ToolBounds;
  /** The chat that the request came from: what the turn starts reports there, and its approvals are asked there. */
  readonly endpoint?: ChatEndpoint;
  /** Author of the message that the turn answers in a chat, or of the job that it runs; absent for what follows from that turn. */
  readonly author?: ChatAuthor;
}

/** The root run that work is a part of, with what is known of its position in it. */
export interface PartOfRoot extends Pick<CallingTurn, 'rootRunId' | 'run' | 'synthetic'> {
  /** The turn that caused it, and its trace. */
  readonly turnId?: string;
  readonly traceId?: string;
  /** The node of a graph that it is made for. */
  readonly node?: { readonly graphId: string; readonly nodeId: string };
}

/** Tools that all of these bounds allow. */
export interface ToolBounds {
  readonly policies: readonly ToolPolicy[];
  /** Ids of the agents on whose behalf the turn acts; no tool is allowed once one of them is gone. */
  readonly agents: readonly string[];
}

/** What travels with a call: fixed at the edge, passed down by value. */
export interface CallContext {
  readonly identity: Identity;
  /** 32 hex digits; shared by everything that the call causes. */
  readonly traceId: string;
  readonly requestId: string;
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal;
  readonly transport: 'http' | 'websocket' | 'process';
  readonly remoteAddress?: string;
  /** Present when an agent's tool makes the call: it reaches only the agent's own data and no administrative method. */
  readonly agentCaller?: AgentCaller;
}

/** Whether a call may access everybody's data: an administrator's own call, not one of an agent that works for an administrator. */
export function isAdmin({ agentCaller, identity }: CallContext): boolean {
  return agentCaller === undefined && allows(identity.scopes, 'admin');
}

/**
 * Whether a message to this identity may contain owner-only text, such as errors of a model provider: true for an administrator, and for
 * an identity without a token (a webhook, a heartbeat), whose messages only administrators read.
 */
export function isForOwners(identity: Identity | undefined): boolean {
  return identity !== undefined && (identity.scopes.length === 0 || allows(identity.scopes, 'admin'));
}

/** Whether the text of a call may come from an untrusted source: its agent has read such text. */
export function isTaintedCall({ agentCaller }: CallContext): boolean {
  return agentCaller?.tainted?.() === true;
}

/** Returns the principal that owns what a call creates or refers to: for an agent's call, the user that the agent works for. */
export function ownerOf({ agentCaller, identity }: CallContext): string {
  return agentCaller?.principalId ?? identity.principalId;
}
