import type { ModelMessage, ModelOptions, ToolCall, ToolSpec } from '../llm/model.ts';
import type { Tool } from './tool.ts';

type Choice = ModelOptions['toolChoice'];

/** A caller that insists on a call means one of its own tools: the agent's would answer it where the caller does not see it. */
function isForced(choice: Choice): boolean {
  return choice === 'required' || typeof choice === 'object';
}

/**
 * The agent's tools that are offered beside those of the caller: a tool of the caller stands before one of the same
 * name, and a forced choice leaves the caller's alone. The list that was given when nothing stands aside.
 */
export function toolsBeside(tools: readonly Tool[], clientTools: readonly ToolSpec[] | undefined, choice: Choice): readonly Tool[] {
  if (clientTools === undefined || clientTools.length === 0) return tools;
  if (isForced(choice)) return [];
  const names = new Set(clientTools.map((tool) => tool.name));
  return tools.some((tool) => names.has(tool.name)) ? tools.filter((tool) => !names.has(tool.name)) : tools;
}

/** Ids that a new call may not have, because a message of the conversation has it already. */
export function callIdsOf(messages: readonly ModelMessage[]): ReadonlySet<string> {
  return new Set(
    messages.flatMap((message) => {
      if (message.role === 'tool') return [message.toolCallId];
      return message.role === 'assistant' ? (message.toolCalls ?? []).map((call) => call.id) : [];
    }),
  );
}

/** The calls of one answer, by who runs them. */
export function divideCalls(
  calls: readonly ToolCall[],
  clientNames: ReadonlySet<string>,
): { readonly own: readonly ToolCall[]; readonly client: readonly ToolCall[] } {
  if (clientNames.size === 0) return { own: calls, client: [] };
  return { own: calls.filter((call) => !clientNames.has(call.name)), client: calls.filter((call) => clientNames.has(call.name)) };
}
