import type { Tool } from './tool.ts';

/** All tools of the installation, including those of MCP servers. */
export interface ToolSet {
  /** Returns the same array until something changes, so that derived values can be cached by identity. */
  current(): readonly Tool[];
}

/**
 * `changing` sources return the same array until they change; `watch` wraps each tool in meters. A tool with the name of an
 * earlier one is omitted: it would never be called.
 */
export function createToolSet(
  fixed: readonly Tool[],
  changing: readonly (() => readonly Tool[])[],
  watch: (tool: Tool) => Tool = (tool) => tool,
): ToolSet {
  /** A tool that still exists after a change stays the same object, with its derived values. */
  const watched = new WeakMap<Tool, Tool>();
  let seen: readonly (readonly Tool[])[] = [];
  let tools = unique(fixed).map(watchOnce);

  function watchOnce(tool: Tool): Tool {
    let found = watched.get(tool);
    if (found === undefined) {
      found = watch(tool);
      watched.set(tool, found);
    }
    return found;
  }

  return {
    current() {
      for (let at = 0; at < changing.length; at += 1) {
        if (changing[at]?.() === seen[at]) continue;
        seen = changing.map((source) => source());
        tools = unique([...fixed, ...seen.flat()]).map(watchOnce);
        break;
      }
      return tools;
    },
  };
}

function unique(tools: readonly Tool[]): Tool[] {
  const byName = new Map<string, Tool>();
  for (const tool of tools) if (!byName.has(tool.name)) byName.set(tool.name, tool);
  return [...byName.values()];
}
