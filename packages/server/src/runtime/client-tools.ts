import type { ModelMessage, ModelOptions, ToolCall, ToolSpec } from '../llm/model.ts';
import type { Tool } from './tool.ts';

type Choice = ModelOptions['toolChoice'];

/** A caller that forces a call means its own tools: the agent's would answer it where the caller does not see it. */
function isForced(choice: Choice): boolean {
  return choice === 'required' || typeof choice === 'object';
}

/**
 * Returns the agent's tools that are offered together with the caller's: the caller's tool hides one of the same
 * name, and a forced choice leaves only the caller's. Returns the given list when nothing is hidden.
 */
export function offeredTools(tools: readonly Tool[], clientTools: readonly ToolSpec[] | undefined, choice: Choice): readonly Tool[] {
  if (clientTools === undefined || clientTools.length === 0) return tools;
  if (isForced(choice)) return [];
  const names = new Set(clientTools.map((tool) => tool.name));
  return tools.some((tool) => names.has(tool.name)) ? tools.filter((tool) => !names.has(tool.name)) : tools;
}

/** Returns ids that a new call must not use, because a message of the conversation already has them. */
export function callIdsOf(messages: readonly ModelMessage[]): ReadonlySet<string> {
  return new Set(
    messages.flatMap((message) => {
      if (message.role === 'tool') return [message.toolCallId];
      return message.role === 'assistant' ? (message.toolCalls ?? []).map((call) => call.id) : [];
    }),
  );
}

/** Divides the calls of one answer by who runs them. */
export function divideCalls(
  calls: readonly ToolCall[],
  clientNames: ReadonlySet<string>,
): { readonly own: readonly ToolCall[]; readonly client: readonly ToolCall[] } {
  if (clientNames.size === 0) return { own: calls, client: [] };
  return { own: calls.filter((call) => !clientNames.has(call.name)), client: calls.filter((call) => clientNames.has(call.name)) };
}
