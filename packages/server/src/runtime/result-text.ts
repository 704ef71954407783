import type { Log } from '../kernel/log.ts';
import type { ToolCall } from '../llm/model.ts';
import { cutMiddle } from './bound-text.ts';
import type { Fence } from './fence.ts';
import type { InspectedText } from './injection-monitor.ts';
import { fileReader, maxResultCharacters, offLoad, offLoadFrom } from './off-load.ts';
import type { ToolResult } from './tool.ts';
import type { TurnInput } from './turn.ts';

export interface ResultTextDeps {
  readonly fence: Fence;
  readonly log: Log;
  /** Inspects answers from outside; see `InjectionMonitor`. */
  readonly inspect?: (text: string, about: InspectedText) => unknown;
  /** Removes the installation's live secrets: a tool that comes across one passes it on to no model and no stored message. */
  readonly hideSecrets?: (text: string) => string;
  /** Records the source of the text in a file that a result is off-loaded to; called before the file exists when it is tainted. */
  readonly keptFile?: (input: TurnInput, path: string, tainted: boolean, content: string) => Promise<void>;
}

/** The call that a result belongs to. */
export interface ResultOf {
  readonly input: TurnInput;
  readonly call: ToolCall;
  /** Whether the model has the tool that reads an off-loaded result; asked for long results only. */
  readonly canReadFiles: () => boolean;
  /** Called when a long result was moved to a file of the workspace. */
  readonly onOffLoad?: (chars: number, path: string) => void;
}

/** Returns a result as the model reads it and as it is stored: without secrets, bounded, and fenced if untrusted. */
export async function resultText(deps: ResultTextDeps, of: ResultOf, result: ToolResult): Promise<string> {
  const content = result.content.toWellFormed();
  const { shown, pointer } = await boundResult(deps, of, { content: deps.hideSecrets?.(content) ?? content, outside: result.outside });
  const behind = (text: string) => (pointer === undefined ? text : `${text}\n${pointer}`);
  if (result.outside === undefined) return behind(shown);
  const { agentId, traceId } = of.input;
  deps.inspect?.(shown, { source: 'tool_output', principalId: `tool:${of.call.name}`, agentId, traceId });
  // The marker is stored with the message, so that the text stays the same whenever the conversation is sent again.
  return behind(deps.fence.wrap(shown, result.outside, deps.fence.newMarker()));
}

/** Moves a long result to a file that the model can read, when it has the tool for that; otherwise the middle is lost. */
async function boundResult(
  deps: ResultTextDeps,
  { input, call, canReadFiles, onOffLoad }: ResultOf,
  { content, outside }: { readonly content: string; readonly outside: ToolResult['outside'] },
): Promise<{ shown: string; pointer?: string }> {
  // A result read from a file already has its rest there.
  if (call.name !== fileReader && content.length > offLoadFrom(input.models) && canReadFiles()) {
    try {
      const isTainted = outside !== undefined && outside.clean !== true;
      const { path, ...bounded } = await offLoad(input, content, {
        isTainted,
        mark: async (at, kept) => deps.keptFile?.(input, at, isTainted, kept),
      });
      onOffLoad?.(content.length, path);
      return bounded;
    } catch (error) {
      deps.log.warn({ agentId: input.agentId, turnId: input.turnId, tool: call.name, error }, 'Failed to off-load a large result');
    }
  }
  return { shown: cutMiddle(content, maxResultCharacters) };
}
