import type { Tool } from '../../../runtime/tool.ts';

export interface McpApi {
  /** Tools of all connected servers; the same array until one of them changed. */
  tools(): readonly Tool[];
  /** Those of `tools` that an agent may see: without the ones of servers that are limited to others. The same array for the same `tools`. */
  visibleTo(agentId: string, tools: readonly Tool[]): readonly Tool[];
}
