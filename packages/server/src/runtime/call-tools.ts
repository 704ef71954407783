import { AppError } from '../kernel/app-error.ts';
import type { Clock } from '../kernel/clock.ts';
import { parseJson } from '../kernel/json.ts';
import type { Log } from '../kernel/log.ts';
import type { ModelMessage, ToolCall } from '../llm/model.ts';
import { cutMiddle } from './bound-text.ts';
import type { Fence } from './fence.ts';
import type { InspectedText } from './injection-monitor.ts';
import { fileReader, maxResultCharacters, offLoad, offLoadFrom } from './off-load.ts';
import type { Tool, ToolContext, ToolResult } from './tool.ts';
import { refuseTool } from './tool-policy.ts';
import type { TurnInput } from './turn.ts';

export interface CallToolsDeps {
  readonly clock: Clock;
  readonly fence: Fence;
  readonly log: Log;
  /** Looks at what the outside world answered; see `InjectionMonitor`. */
  readonly inspect?: (text: string, about: InspectedText) => unknown;
  /** Takes the live secrets of the installation out: a tool that comes upon one hands it on to no model and no stored message. */
  readonly hideSecrets?: (text: string) => string;
}

export interface ToolRun {
  readonly input: TurnInput;
  /** Of the turn: aborted when it is stopped. */
  readonly signal: AbortSignal;
  /** Calls `input.beforeOnce`, the first time. */
  readonly beforeOnce: () => Promise<void>;
}

const maxCallsPerStep = 64;
const maxParallel = 8;

/**
 * Runs the tool calls of one step and gives one result message for each, in their order: neighbouring `pure` ones side
 * by side, the others one after the other. Whatever goes wrong becomes a result that the model can read.
 */
export async function callTools(deps: CallToolsDeps, run: ToolRun, calls: readonly ToolCall[]): Promise<ModelMessage[]> {
  const results: ModelMessage[] = [];
  const taken = calls.slice(0, maxCallsPerStep);
  for (let at = 0; at < taken.length;) {
    let end = at + 1;
    if (isPure(run, taken[at])) while (end - at < maxParallel && isPure(run, taken[end])) end += 1;
    results.push(...(await Promise.all(taken.slice(at, end).map((call) => callTool(deps, run, call)))));
    at = end;
  }
  for (const call of calls.slice(maxCallsPerStep))
    results.push(toMessage(call, failure(`Not run: at most ${maxCallsPerStep} calls are taken at once`)));
  return results;
}

function findTool(run: ToolRun, name: string): Tool | undefined {
  return run.input.tools.find((tool) => tool.name === name);
}

function isPure(run: ToolRun, call: ToolCall | undefined): boolean {
  return call !== undefined && findTool(run, call.name)?.effect === 'pure';
}

async function callTool(deps: CallToolsDeps, run: ToolRun, call: ToolCall): Promise<ModelMessage> {
  const result = await resultOf(deps, run, call);
  const content = result.content.toWellFormed();
  const { shown, pointer } = await boundResult(deps, run, call, deps.hideSecrets?.(content) ?? content);
  const behind = (text: string) => (pointer === undefined ? text : `${text}\n${pointer}`);
  if (result.outside === undefined) return toMessage(call, { ...result, content: behind(shown) });
  const { agentId, traceId } = run.input;
  deps.inspect?.(shown, { source: 'tool_output', principalId: `tool:${call.name}`, agentId, traceId });
  // The marker is stored with the message, so that the text is the same whenever the conversation is sent again.
  return toMessage(call, { ...result, content: behind(deps.fence.wrap(shown, { source: result.outside.source }, deps.fence.newMarker())) });
}

/** A long result goes to a file that the model can read on in, when it has the tool for that; without it the middle is lost. */
async function boundResult(deps: CallToolsDeps, run: ToolRun, call: ToolCall, content: string): Promise<{ shown: string; pointer?: string }> {
  const { input } = run;
  // What was read from a file has its rest there already.
  if (call.name !== fileReader && content.length > offLoadFrom(input.models) && findTool(run, fileReader) !== undefined) {
    try {
      return await offLoad(input, content);
    } catch (error) {
      deps.log.warn({ agentId: input.agentId, turnId: input.turnId, tool: call.name, error }, 'a large result could not be off-loaded');
    }
  }
  return { shown: cutMiddle(content, maxResultCharacters) };
}

async function resultOf(deps: CallToolsDeps, run: ToolRun, call: ToolCall): Promise<ToolResult> {
  const { input, signal } = run;
  if (signal.aborted) return failure('Not run: the turn was stopped');
  const tool = findTool(run, call.name);
  if (tool === undefined)
    return failure(
      `There is no tool ${JSON.stringify(call.name.slice(0, 100))}. Tools: ${[...input.tools, ...(input.clientTools ?? [])].map((each) => each.name).join(', ') || 'none'}`,
    );
  // Checked again where it counts: what the model was shown is no authority.
  const refusal = refuseTool(tool, input.agent, input.origin);
  if (refusal !== undefined) {
    deps.log.warn({ agentId: input.agentId, turnId: input.turnId, tool: tool.name, origin: input.origin, refusal }, 'tool call refused by policy');
    return failure(`The tool "${tool.name}" is not allowed here`);
  }
  const args = parseArguments(tool, call.arguments);
  if ('problem' in args) return failure(args.problem);
  try {
    if (tool.effect === 'once') await run.beforeOnce();
    return await runWithDeadline(deps.clock, tool, args.value, run);
  } catch (error) {
    // Only an AppError has words that are meant for others.
    if (error instanceof AppError && error.code !== 'internal') return failure(error.message);
    deps.log.error({ agentId: input.agentId, turnId: input.turnId, tool: tool.name, error }, 'tool failed');
    return failure(`The tool "${tool.name}" failed`);
  }
}

function parseArguments(tool: Tool, text: string): { readonly value: unknown } | { readonly problem: string } {
  let json: unknown;
  try {
    // Models write nothing at all for a tool without arguments.
    json = text.trim() === '' ? {} : parseJson(text);
  } catch {
    return { problem: `The arguments of "${tool.name}" are not valid JSON; expected one JSON object` };
  }
  const parsed = tool.args.safeParse(json);
  if (parsed.success) return { value: parsed.data };
  const issues = parsed.error.issues
    .slice(0, 5)
    .map((issue) => `${issue.path.length === 0 ? '(arguments)' : issue.path.join('.')}: ${issue.message}`);
  return { problem: `The arguments of "${tool.name}" are wrong: ${issues.join('; ')}` };
}

/** Does not wait for a tool that ignores its signal. */
async function runWithDeadline(clock: Clock, tool: Tool, args: unknown, { input, signal }: ToolRun): Promise<ToolResult> {
  const controller = new AbortController();
  const over = Promise.withResolvers<ToolResult>();
  const uncertain = tool.effect === 'pure' ? '' : '; it may have had its effect all the same';
  const end = (why: string) => {
    over.resolve(failure(`"${tool.name}" was stopped: ${why}${uncertain}`));
    controller.abort();
  };
  const cancel = clock.after(tool.timeoutMs, () => end(`no result within ${tool.timeoutMs} ms`));
  const onAbort = () => end('the turn was stopped');
  signal.addEventListener('abort', onAbort, { once: true });
  const context: ToolContext = {
    agentId: input.agentId,
    turnId: input.turnId,
    traceId: input.traceId,
    origin: input.origin,
    workspaceDir: input.workspaceDir,
    signal: controller.signal,
  };
  try {
    const work = tool.run(args, context);
    // When the deadline wins, a later failure has no one else to hear it.
    work.catch(() => {});
    return await Promise.race([over.promise, work]);
  } finally {
    cancel();
    signal.removeEventListener('abort', onAbort);
  }
}

function failure(content: string): ToolResult {
  return { content, isError: true };
}

function toMessage(call: ToolCall, result: ToolResult): ModelMessage {
  return { role: 'tool', content: result.content, toolCallId: call.id, toolName: call.name, ...(result.isError === true && { isError: true }) };
}
