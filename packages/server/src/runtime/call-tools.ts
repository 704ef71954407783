import { AppError } from '../kernel/app-error.ts';
import { parseJson } from '../kernel/json.ts';
import type { Log } from '../kernel/log.ts';
import type { ModelMessage, ToolCall } from '../llm/model.ts';
import { cutMiddle } from './bound-text.ts';
import type { Fence } from './fence.ts';
import type { InspectedText } from './injection-monitor.ts';
import { deferredBy, discoverToolName } from './discovery.ts';
import { createNestedCall, type NestedCall } from './nested-call.ts';
import { fileReader, maxResultCharacters, offLoad, offLoadFrom } from './off-load.ts';
import { runTool, type RunToolDeps } from './run-tool.ts';
import type { ActivityOutcome, ToolActivity } from './tool-activity.ts';
import type { ToolGate } from './tool-gate.ts';
import type { Tool, ToolContext, ToolResult } from './tool.ts';
import { authorityOf, refuseTool } from './tool-policy.ts';
import type { StepLedger } from './step-ledger.ts';
import { isTainted } from './taint.ts';
import { toolsByName } from './tools-by-name.ts';
import type { TurnInput } from './turn.ts';

export interface CallToolsDeps extends RunToolDeps {
  readonly fence: Fence;
  readonly log: Log;
  /** Inspects answers from outside; see `InjectionMonitor`. */
  readonly inspect?: (text: string, about: InspectedText) => unknown;
  /** Removes the installation's live secrets: a tool that comes across one passes it on to no model and no stored message. */
  readonly hideSecrets?: (text: string) => string;
  /** Runs before each call that policy allows; see `createToolGate`. */
  readonly gate?: ToolGate;
  /** Records the source of the text in a file that a result was off-loaded to. */
  readonly keptFile?: (input: TurnInput, path: string, tainted: boolean, content: string) => Promise<void>;
  /** Reports each call as it starts; undefined when nobody listens. */
  readonly activity?: ToolActivity;
}

export interface ToolRun {
  readonly input: TurnInput;
  /** The turn's signal: aborted when it is stopped. */
  readonly signal: AbortSignal;
  /** Called before each tool of class `once`. */
  readonly beforeOnce: () => Promise<void>;
  /** Messages that the turn added before this step. */
  readonly added?: readonly ModelMessage[];
  /** Tools that the model can call from its next step on. */
  readonly loaded?: Set<Tool>;
  /** What the turn has used. */
  readonly used?: ToolContext['used'];
  /** Set for a turn that another process can continue. */
  readonly ledger?: StepLedger;
  /** Called for each call that needed an approval and is not run. */
  readonly onUnapproved?: () => void;
  /** A running tool made the calls. */
  readonly nested?: true;
}

const maxCallsPerStep = 64;
const maxParallel = 8;

/**
 * Runs the tool calls of one step and returns one result message for each, in order: neighbouring `pure` ones concurrently,
 * the others one after the other. Every failure becomes a result that the model can read. Once a call waits for a person
 * (`StepLedger.waitsFor`), no further one is made.
 */
export async function callTools(deps: CallToolsDeps, run: ToolRun, calls: readonly ToolCall[]): Promise<ModelMessage[]> {
  const results: ModelMessage[] = [];
  const taken = calls.slice(0, maxCallsPerStep);
  for (let at = 0; at < taken.length;) {
    let end = at + 1;
    if (isPure(run, taken[at])) while (end - at < maxParallel && isPure(run, taken[end])) end += 1;
    results.push(...(await Promise.all(taken.slice(at, end).map((call) => callTool(deps, run, call, results)))));
    at = end;
  }
  for (const call of calls.slice(maxCallsPerStep))
    results.push(toMessage(call, failure(`Not run: at most ${maxCallsPerStep} calls are taken at once`)));
  return results;
}

function findTool(run: ToolRun, name: string): Tool | undefined {
  const tools = toolsByName(run.input.tools);
  const tool = tools.get(name);
  if (tool !== undefined) return tool;
  // The model knows this tool from before or guessed it: it is allowed, so the model need not search for it first.
  const found = deferredBy(tools.get(discoverToolName)).get(name);
  if (found !== undefined) run.loaded?.add(found);
  return found;
}

function isPure(run: ToolRun, call: ToolCall | undefined): boolean {
  return call !== undefined && findTool(run, call.name)?.effect === 'pure';
}

async function callTool(deps: CallToolsDeps, run: ToolRun, call: ToolCall, before: readonly ModelMessage[]): Promise<ModelMessage> {
  const known = run.ledger?.resultOf(call);
  if (known !== undefined) return known;
  if (run.ledger?.waitsFor !== undefined) {
    run.ledger.unmade.add(call.id);
    return toMessage(call, failure(stoppedBefore));
  }
  const result = await resultOf(deps, run, call, before);
  for (const tool of result.loads ?? []) run.loaded?.add(tool);
  const message = toMessage(call, { ...result, content: await toText(deps, run, call, result) });
  // Nobody knows what a call did that was interrupted by the stop of its turn.
  if (run.ledger !== undefined && !(run.signal.aborted && result.isError === true)) await run.ledger.end(call, message);
  return message;
}

/** Returns a result as the model reads it and as it is stored: without secrets, bounded, and fenced if untrusted. */
async function toText(deps: CallToolsDeps, run: ToolRun, call: ToolCall, result: ToolResult): Promise<string> {
  const content = result.content.toWellFormed();
  const { shown, pointer } = await boundResult(deps, run, call, { content: deps.hideSecrets?.(content) ?? content, outside: result.outside });
  const behind = (text: string) => (pointer === undefined ? text : `${text}\n${pointer}`);
  if (result.outside === undefined) return behind(shown);
  const { agentId, traceId } = run.input;
  deps.inspect?.(shown, { source: 'tool_output', principalId: `tool:${call.name}`, agentId, traceId });
  // The marker is stored with the message, so that the text stays the same whenever the conversation is sent again.
  return behind(deps.fence.wrap(shown, result.outside, deps.fence.newMarker()));
}

/** Moves a long result to a file that the model can read, when it has the tool for that; otherwise the middle is lost. */
async function boundResult(
  deps: CallToolsDeps,
  run: ToolRun,
  call: ToolCall,
  { content, outside }: { readonly content: string; readonly outside: ToolResult['outside'] },
): Promise<{ shown: string; pointer?: string }> {
  const { input } = run;
  // A result read from a file already has its rest there.
  if (call.name !== fileReader && content.length > offLoadFrom(input.models) && findTool(run, fileReader) !== undefined) {
    try {
      const { path, kept, ...bounded } = await offLoad(input, content);
      await deps.keptFile?.(input, path, outside !== undefined && outside.clean !== true, kept);
      return bounded;
    } catch (error) {
      deps.log.warn({ agentId: input.agentId, turnId: input.turnId, tool: call.name, error }, 'Failed to off-load a large result');
    }
  }
  return { shown: cutMiddle(content, maxResultCharacters) };
}

const stoppedBefore = 'Not run: the turn was stopped';

async function resultOf(deps: CallToolsDeps, run: ToolRun, call: ToolCall, results: readonly ModelMessage[]): Promise<ToolResult> {
  const { input, signal } = run;
  if (signal.aborted) return failure(stoppedBefore);
  const tool = findTool(run, call.name);
  if (tool === undefined)
    return failure(
      `There is no tool ${JSON.stringify(call.name.slice(0, 100))}. Tools: ${[...input.tools, ...(input.clientTools ?? [])].map((each) => each.name).join(', ') || 'none'}`,
    );
  // Checked again here: what the model was shown grants nothing.
  const refusal = refuseTool(tool, input.agent, authorityOf(input));
  if (refusal !== undefined) {
    deps.activity?.(input, call, tool.name)?.('denied');
    deps.log.warn({ agentId: input.agentId, turnId: input.turnId, tool: tool.name, origin: input.origin, refusal }, 'Tool call refused by policy');
    return failure(`The tool "${tool.name}" is not allowed here`);
  }
  const args = parseArguments(tool, call.arguments);
  if ('problem' in args) return failure(args.problem);
  const failed = (error: unknown) => failureOf(deps, input, tool, error);
  let finished: ReturnType<ToolActivity>;
  let outcome: ActivityOutcome = 'error';
  let nested: NestedCall | undefined;
  try {
    const description = describe(deps, tool, args.value);
    const before = () => [...input.messages, ...(run.added ?? [])];
    const decision = deps.gate?.({ tool, args: args.value, turn: input, before, results, signal, ...(run.nested && { nested: run.nested }) });
    const refused = decision === undefined ? undefined : await decision;
    if (refused?.allowed === false) {
      if (refused.waits !== undefined && run.ledger !== undefined) {
        run.ledger.waitsFor ??= refused.waits;
        run.ledger.unmade.add(call.id);
        return failure(refused.message);
      }
      if (refused.unapproved === true) run.onUnapproved?.();
      deps.activity?.(input, call, description)?.('denied');
      return failure(refused.message);
    }
    finished = deps.activity?.(input, call, description);
    if (tool.effect === 'once') {
      await run.beforeOnce();
      if (run.ledger !== undefined) await run.ledger.begin(call);
    }
    // The approval and the row were waited for since the first check.
    if (signal.aborted) return failure(stoppedBefore);
    const result = await runTool(deps, {
      input,
      tool,
      call,
      args: args.value,
      description,
      signal,
      failed,
      nested: (name, nestedArgs, until) => (nested ??= nestedFor(deps, run, call, results))(name, nestedArgs, until),
      tainted: () => isTainted([...before(), ...results], input),
      ...(run.used !== undefined && { used: run.used }),
      toText: (late) => toText(deps, run, call, { ...late, outside: late.outside ?? { source: `tool ${tool.name}`, clean: true } }),
    });
    outcome = result.isPromoted === true ? 'background' : result.isError === true ? 'error' : 'ok';
    return result;
  } catch (error) {
    return failed(error);
  } finally {
    finished?.(outcome);
  }
}

/** Runs calls that a running tool makes like all calls, but without ledger and background. */
function nestedFor(deps: CallToolsDeps, run: ToolRun, outer: ToolCall, results: readonly ModelMessage[]): NestedCall {
  const { background: _background, ...input } = run.input;
  const { ledger: _ledger, ...rest } = run;
  const { agentId, traceId } = input;
  return createNestedCall(
    {
      fence: deps.fence,
      hideSecrets: deps.hideSecrets,
      find: (name) => findTool(run, name),
      run: (call, view, signal) =>
        resultOf(deps, { ...rest, nested: true, input, signal, added: [...(run.added ?? []), ...view.read] }, call, [...results, ...view.taints]),
      inspect: (text) => deps.inspect?.(text, { source: 'tool_output', principalId: `tool:${outer.name}`, agentId, traceId }),
    },
    outer,
  );
}

function failureOf(deps: CallToolsDeps, input: TurnInput, tool: Tool, error: unknown): ToolResult {
  // Only the message of an AppError is meant for others.
  if (error instanceof AppError && error.code !== 'internal') return failure(error.message);
  deps.log.error({ agentId: input.agentId, turnId: input.turnId, tool: tool.name, error }, 'tool failed');
  return failure(`The tool "${tool.name}" failed`);
}

const descriptionCharacters = 200;

/** One line for people. A tool's description of a call contains the model's text: it is bounded and cleaned, of secrets before it is cut. */
function describe({ hideSecrets }: CallToolsDeps, tool: Tool, args: unknown): string {
  const said = tool.describe?.(args) ?? tool.name;
  const text = hideSecrets?.(said) ?? said;
  return text.length <= descriptionCharacters && !/[\p{C}\p{Zl}\p{Zp}]/u.test(text) ? text : oneLine(text);
}

const oneLine = (text: string) =>
  text
    .slice(0, descriptionCharacters)
    .toWellFormed()
    .replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();

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

function failure(content: string): ToolResult {
  return { content, isError: true };
}

function toMessage(call: ToolCall, result: ToolResult): ModelMessage {
  return { role: 'tool', content: result.content, toolCallId: call.id, toolName: call.name, ...(result.isError === true && { isError: true }) };
}
