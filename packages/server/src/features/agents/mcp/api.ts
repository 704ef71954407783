import type { CallContext } from '../../../kernel/call-context.ts';
import type { Tool } from '../../../runtime/tool.ts';

/** What a person sees who returns from an authorization server. */
export interface FinishedAuthorization {
  readonly isAuthorized: boolean;
  readonly status: 200 | 400 | 502;
  readonly title: string;
  readonly text: string;
}

/** Completes authorizations of MCP servers. */
export interface McpAuthorizationApi {
  /** Takes the query of the address to which the browser returned. */
  finish(query: URLSearchParams, about: Pick<CallContext, 'traceId' | 'requestId' | 'signal'>): Promise<FinishedAuthorization>;
}

export interface McpApi {
  /** Tools of all connected servers; the same array until one of them changed. */
  tools(): readonly Tool[];
  /** Filters out tools of servers that are limited to other agents. Returns the same array for the same `tools`. */
  visibleTo(agentId: string, tools: readonly Tool[]): readonly Tool[];
}
