import type { Tool } from '../../../runtime/tool.ts';

export interface McpApi {
  /** Tools of all connected servers; the same array until one of them changed. */
  tools(): readonly Tool[];
  /** Filters out tools of servers that are limited to other agents. Returns the same array for the same `tools`. */
  visibleTo(agentId: string, tools: readonly Tool[]): readonly Tool[];
}
