import type { Tool } from './tool.ts';

/** Lists are replaced, never changed, so each is indexed once, by the first turn that calls a tool. */
const known = new WeakMap<readonly Tool[], ReadonlyMap<string, Tool>>();

/** Indexes the tools of a list; of several with one name the first. */
export function toolsByName(tools: readonly Tool[]): ReadonlyMap<string, Tool> {
  let byName = known.get(tools);
  if (byName === undefined) {
    byName = new Map(tools.toReversed().map((tool) => [tool.name, tool]));
    known.set(tools, byName);
  }
  return byName;
}
