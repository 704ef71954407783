import type { ModelMessage, ToolCall } from '../llm/model.ts';
import type { Fence } from './fence.ts';
import type { Tool, ToolResult } from './tool.ts';

/** Runs a call of a tool that another tool makes while it runs, such as one for scripts; `signal` is that of the outer call. */
export type NestedCall = (name: string, args: unknown, signal: AbortSignal) => Promise<ToolResult>;

/** What the gate is shown beside the conversation: texts from outside that the outer call has come upon so far. */
export interface NestedView {
  /** Pages and the like: an address in one of them is one that was given. */
  readonly read: readonly ModelMessage[];
  /** Only that there was something. */
  readonly taints: readonly ModelMessage[];
}

export interface NestedDeps {
  readonly fence: Fence;
  readonly hideSecrets?: ((text: string) => string) | undefined;
  readonly find: (name: string) => Tool | undefined;
  /** Policy, arguments, gate and deadline, as for a call of the model. */
  readonly run: (call: ToolCall, view: NestedView, signal: AbortSignal) => Promise<ToolResult>;
  /** Looks at text from outside. */
  readonly inspect: (text: string) => void;
}

const maxReadCharacters = 1024 * 1024;
const maxCalls = 10_000;

/**
 * Calls of tools out of a tool: whole results that no model reads yet, so that they are not fenced, but what is from outside
 * counts for the gate from then on. Only what may be repeated and changes nothing can be called.
 */
export function createNestedCall(deps: NestedDeps, outer: ToolCall): NestedCall {
  const read: ModelMessage[] = [];
  /** Whether all that came of a source is clean. */
  const sources = new Map<string, boolean>();
  let room = maxReadCharacters;
  let calls = 0;
  const message = (content: string): ModelMessage => ({ role: 'tool', content, toolCallId: outer.id, toolName: outer.name });

  return async (name, args, signal) => {
    const tool = deps.find(name);
    if (tool !== undefined && tool.effect !== 'pure') return { content: `"${name}" cannot be called from within "${outer.name}"`, isError: true };
    calls += 1;
    if (calls > maxCalls) return { content: `Not run: "${outer.name}" made ${maxCalls} calls, which is as many as it may`, isError: true };
    const call: ToolCall = { id: `${outer.id}.${calls}`, name, arguments: JSON.stringify(args) };
    const taints = [...sources].map(([source, clean]) => message(deps.fence.wrap('', { source, clean })));
    const result = await deps.run(call, { read, taints }, signal);
    const wellFormed = result.content.toWellFormed();
    const content = deps.hideSecrets?.(wellFormed) ?? wellFormed;
    if (result.outside !== undefined) {
      deps.inspect(content);
      const { source, clean = false } = result.outside;
      sources.set(source, clean && sources.get(source) !== false);
      // A file may hold what the script wrote into it a moment ago: an address in it was given by nobody.
      if (tool?.risk === 'outward' && content.length <= room) {
        room -= content.length;
        read.push(message(deps.fence.wrap(content, { source, clean })));
      }
    }
    return { ...result, content };
  };
}
