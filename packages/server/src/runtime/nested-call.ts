import type { ModelMessage, ToolCall } from '../llm/model.ts';
import type { Fence } from './fence.ts';
import type { Tool, ToolResult } from './tool.ts';

/** Runs a tool call that another tool makes while it runs, such as a tool for scripts; `signal` is the outer call's. */
export type NestedCall = (name: string, args: unknown, signal: AbortSignal) => Promise<ToolResult>;

/** What the gate sees in addition to the conversation: untrusted texts that the outer call has received so far. */
export interface NestedView {
  /** Pages and the like: an address in one of them counts as given. */
  readonly read: readonly ModelMessage[];
  /** Only the fact that there was untrusted text. */
  readonly taints: readonly ModelMessage[];
}

export interface NestedDeps {
  readonly fence: Fence;
  readonly hideSecrets?: ((text: string) => string) | undefined;
  readonly find: (name: string) => Tool | undefined;
  /** Applies policy, arguments, gate and deadline, as for a call of the model. */
  readonly run: (call: ToolCall, view: NestedView, signal: AbortSignal) => Promise<ToolResult>;
  /** Inspects untrusted text. */
  readonly inspect: (text: string) => void;
}

const maxReadCharacters = 1024 * 1024;
const maxCalls = 10_000;

/**
 * Lets a tool call tools: the results are whole and not fenced, because no model reads them yet, but untrusted text
 * counts for the gate from then on. Only calls that may be repeated and change nothing are allowed.
 */
export function createNestedCall(deps: NestedDeps, outer: ToolCall): NestedCall {
  const read: ModelMessage[] = [];
  /** Whether everything that came from a source is clean. */
  const sources = new Map<string, boolean>();
  let remaining = maxReadCharacters;
  let calls = 0;
  const message = (content: string): ModelMessage => ({ role: 'tool', content, toolCallId: outer.id, toolName: outer.name });

  return async (name, args, signal) => {
    const tool = deps.find(name);
    if (tool !== undefined && tool.effect !== 'pure') return { content: `"${name}" cannot be called from within "${outer.name}"`, isError: true };
    calls += 1;
    if (calls > maxCalls) return { content: `Not run: "${outer.name}" made ${maxCalls} calls, which is the maximum`, isError: true };
    const call: ToolCall = { id: `${outer.id}.${calls}`, name, arguments: JSON.stringify(args) };
    const taints = [...sources].map(([source, clean]) => message(deps.fence.wrap('', { source, clean })));
    const result = await deps.run(call, { read, taints }, signal);
    const wellFormed = result.content.toWellFormed();
    const content = deps.hideSecrets?.(wellFormed) ?? wellFormed;
    if (result.outside !== undefined) {
      deps.inspect(content);
      const { source, clean = false } = result.outside;
      sources.set(source, clean && sources.get(source) !== false);
      // A file may hold what the script just wrote into it: an address in it does not count as given.
      if (tool?.risk === 'outward' && content.length <= remaining) {
        remaining -= content.length;
        read.push(message(deps.fence.wrap(content, { source, clean })));
      }
    }
    return { ...result, content };
  };
}
