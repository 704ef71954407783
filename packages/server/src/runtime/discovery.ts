import type { ToolPolicy } from '@gatehouse/contract';
import * as z from 'zod';
import type { Tool } from './tool.ts';
import { createTextRank, type TextRank } from './text-rank.ts';

export const discoverToolName = 'discover_tools';
const mcpSource = 'mcp:';

const Query = z.strictObject({
  query: z.string().min(1).max(500).describe('What the tool should do, in a few words, or its name.'),
  limit: z.int().min(1).max(20).default(5).describe('Most tools to load.'),
});

/** Tools that the model does not see until it searches for them, by the tool that finds them. */
const deferred = new WeakMap<Tool, ReadonlyMap<string, Tool>>();
const nothing: ReadonlyMap<string, Tool> = new Map();

/** Returns what `tool` finds, by name; empty for every other tool. */
export const deferredBy = (tool: Tool | undefined): ReadonlyMap<string, Tool> => (tool === undefined ? nothing : (deferred.get(tool) ?? nothing));

/**
 * Removes the tools of MCP servers from a long list, and appends a tool that finds them: the schemas of
 * hundreds of tools would cost more of each call than the conversation does.
 */
export function deferTools(tools: readonly Tool[], { mode, above }: ToolPolicy['discovery']): readonly Tool[] {
  if (mode === 'never' || (mode === 'auto' && tools.length <= above)) return tools;
  const hidden = tools.filter((tool) => tool.source?.startsWith(mcpSource) === true);
  if (hidden.length === 0) return tools;
  return [...tools.filter((tool) => tool.source?.startsWith(mcpSource) !== true), createDiscoverTool(hidden)];
}

function createDiscoverTool(hidden: readonly Tool[]): Tool {
  const byName = new Map(hidden.map((tool) => [tool.name, tool]));
  let rank: TextRank | undefined;
  const tool: Tool<typeof Query> = {
    name: discoverToolName,
    description: `Finds further tools by what they do and makes them callable from your next step on. Not listed until you look for them: ${groupsOf(hidden)}.`,
    args: Query,
    risk: 'read',
    readsPrivate: false,
    effect: 'pure',
    timeoutMs: 5000,
    describe: ({ query }) => `search for tools: ${query}`,
    run: async ({ query, limit }) => {
      const exact = byName.get(query.trim());
      // Terms in a name count twice: it is what the tool is about.
      rank ??= createTextRank(hidden.map(({ name, description }) => `${name} ${name} ${description.slice(0, 300)}`));
      const loads = exact === undefined ? rank(query, limit).flatMap((index) => hidden[index] ?? []) : [exact];
      if (loads.length === 0) return { content: `No tool matches this query. Available tools: ${groupsOf(hidden)}.` };
      // The descriptions are untrusted: they appear where all tool descriptions do, not in a message.
      return { content: `Loaded: ${loads.map(({ name }) => name).join(', ')}. They are in your list of tools now.`, loads };
    },
  };
  deferred.set(tool, byName);
  return tool;
}

const mostGroups = 50;

function groupsOf(tools: readonly Tool[]): string {
  const counts = new Map<string, number>();
  for (const { source = '' } of tools) counts.set(source, (counts.get(source) ?? 0) + 1);
  const named = [...counts].slice(0, mostGroups).map(([source, count]) => `${source.slice(mcpSource.length)} (${count})`);
  return counts.size > mostGroups ? `${named.join(', ')} and ${counts.size - mostGroups} more servers` : named.join(', ');
}
