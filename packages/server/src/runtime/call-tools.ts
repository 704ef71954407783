import { toAppError } from '../kernel/app-error.ts';
import { parseJson } from '../kernel/json.ts';
import type { ModelMessage, ToolCall } from '../llm/model.ts';
import { deferredBy, discoverToolName } from './discovery.ts';
import { createNestedCall, type NestedCall } from './nested-call.ts';
import { describeCall } from './describe-call.ts';
import { fileReader } from './off-load.ts';
import { type ResultOf, resultText, type ResultTextDeps } from './result-text.ts';
import { runTool, type RunToolDeps } from './run-tool.ts';
import type { ActivityOutcome, ToolActivity } from './tool-activity.ts';
import type { ToolGate } from './tool-gate.ts';
import type { Tool, ToolContext, ToolResult } from './tool.ts';
import { authorityOf, refuseTool } from './tool-policy.ts';
import { beginToolTrace, type ToolTrace } from './tool-trace.ts';
import type { StepLedger } from './step-ledger.ts';
import { isTainted } from './taint.ts';
import { toolsByName } from './tools-by-name.ts';
import type { TurnInput } from './turn.ts';

export interface CallToolsDeps extends RunToolDeps, ResultTextDeps {
  /** Runs before each call that policy allows; see `createToolGate`. */
  readonly gate?: ToolGate;
  /** Reports each call as it starts; undefined when nobody listens. */
  readonly activity?: ToolActivity;
}

/** A step of a turn whose calls are made. */
export interface ToolStep {
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
export async function callTools(deps: CallToolsDeps, step: ToolStep, calls: readonly ToolCall[]): Promise<ModelMessage[]> {
  const results: ModelMessage[] = [];
  const taken = calls.slice(0, maxCallsPerStep);
  for (let at = 0; at < taken.length;) {
    let end = at + 1;
    if (isPure(step, taken[at])) while (end - at < maxParallel && isPure(step, taken[end])) end += 1;
    results.push(...(await Promise.all(taken.slice(at, end).map((call) => callTool(deps, step, call, results)))));
    at = end;
  }
  for (const call of calls.slice(maxCallsPerStep))
    results.push(toMessage(call, failure(`Not run: at most ${maxCallsPerStep} calls are taken at once`)));
  return results;
}

function findTool(step: ToolStep, name: string): Tool | undefined {
  const tools = toolsByName(step.input.tools);
  const tool = tools.get(name);
  if (tool !== undefined) return tool;
  // The model knows this tool from before or guessed it: it is allowed, so the model need not search for it first.
  const found = deferredBy(tools.get(discoverToolName)).get(name);
  if (found !== undefined) step.loaded?.add(found);
  return found;
}

function isPure(step: ToolStep, call: ToolCall | undefined): boolean {
  return call !== undefined && findTool(step, call.name)?.effect === 'pure';
}

async function callTool(deps: CallToolsDeps, step: ToolStep, call: ToolCall, before: readonly ModelMessage[]): Promise<ModelMessage> {
  const known = step.ledger?.resultOf(call);
  if (known !== undefined) return known;
  if (step.ledger?.waitsFor !== undefined) {
    step.ledger.unmade.add(call.id);
    return toMessage(call, failure(stoppedBefore));
  }
  const traced = beginToolTrace(step.input.trace, call, undefined);
  const result = await resultOf(deps, step, call, before, traced);
  for (const tool of result.loads ?? []) step.loaded?.add(tool);
  const onOffLoad = traced === undefined ? undefined : (chars: number, path: string) => traced.offLoaded(chars, path);
  const message = toMessage(call, { ...result, content: await textOf(deps, step, call, result, onOffLoad) });
  traced?.end(message.content, result);
  // Nobody knows what a call did that was interrupted by the stop of its turn.
  if (step.ledger !== undefined && !(step.signal.aborted && result.isError === true)) await step.ledger.end(call, message);
  return message;
}

const textOf = (deps: CallToolsDeps, step: ToolStep, call: ToolCall, result: ToolResult, onOffLoad?: ResultOf['onOffLoad']) =>
  resultText(
    deps,
    { input: step.input, call, canReadFiles: () => findTool(step, fileReader) !== undefined, ...(onOffLoad && { onOffLoad }) },
    result,
  );

const stoppedBefore = 'Not run: the turn was stopped';

async function resultOf(
  deps: CallToolsDeps,
  step: ToolStep,
  call: ToolCall,
  results: readonly ModelMessage[],
  traced: ToolTrace | undefined,
): Promise<ToolResult> {
  const { input, signal } = step;
  if (signal.aborted) return failure(stoppedBefore);
  const tool = findTool(step, call.name);
  if (tool === undefined) {
    traced?.was('error', 'unknown_tool');
    return failure(
      `There is no tool ${JSON.stringify(call.name.slice(0, 100))}. Tools: ${[...input.tools, ...(input.clientTools ?? [])].map((each) => each.name).join(', ') || 'none'}`,
    );
  }
  // Checked again here: what the model was shown grants nothing.
  const refusal = refuseTool(tool, input.agent, authorityOf(input));
  if (refusal !== undefined) {
    traced?.was('denied', 'policy');
    deps.activity?.(input, call, tool.name)?.finish('denied');
    deps.log.warn({ agentId: input.agentId, turnId: input.turnId, tool: tool.name, origin: input.origin, refusal }, 'Tool call refused by policy');
    return failure(`The tool "${tool.name}" is not allowed here`);
  }
  const args = parseArguments(tool, call.arguments);
  if ('problem' in args) {
    traced?.was('error', 'bad_arguments');
    return failure(args.problem);
  }
  if (input.isolated === true && !isWithoutEffect(tool, args.value)) {
    traced?.was('denied', 'synthetic');
    deps.activity?.(input, call, tool.name)?.finish('denied');
    return failure(`Not run: this turn is an evaluation or a replay, and "${tool.name}" may change or reach something outside of it`);
  }
  const failed = (error: unknown) => failureOf(deps, input, tool, error);
  let finished: ReturnType<ToolActivity>;
  let outcome: ActivityOutcome = 'error';
  let shown: string | undefined;
  let nested: NestedCall | undefined;
  try {
    const description = describeCall(tool, args.value, deps.hideSecrets);
    const before = () => [...input.messages, ...(step.added ?? [])];
    const decision = deps.gate?.({ tool, args: args.value, turn: input, before, results, signal, ...(step.nested && { nested: step.nested }) });
    const refused = decision === undefined ? undefined : await (traced?.gated(decision) ?? decision);
    if (refused?.allowed === false) {
      if (refused.waits !== undefined && step.ledger !== undefined) {
        step.ledger.waitsFor ??= refused.waits;
        step.ledger.unmade.add(call.id);
        traced?.was('waiting', 'approval');
        return failure(refused.message);
      }
      traced?.was('denied', refused.unapproved === true ? 'not_approved' : 'refused');
      if (refused.unapproved === true) step.onUnapproved?.();
      deps.activity?.(input, call, description)?.finish('denied');
      return failure(refused.message);
    }
    finished = deps.activity?.(input, call, description);
    if (tool.effect === 'once') {
      await step.beforeOnce();
      if (step.ledger !== undefined) await step.ledger.begin(call);
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
      nested: (name, nestedArgs, until) => (nested ??= nestedFor(deps, step, call, results, traced))(name, nestedArgs, until),
      tainted: () => isTainted([...before(), ...results], input),
      ...(step.used !== undefined && { used: step.used }),
      ...(finished?.output !== undefined && { onOutput: finished.output }),
      toText: (late) => textOf(deps, step, call, { ...late, outside: late.outside ?? { source: `tool ${tool.name}`, clean: true } }),
    });
    outcome = result.isPromoted === true ? 'background' : result.isError === true ? 'error' : 'ok';
    if (result.isPromoted === true) traced?.was('background', undefined);
    else shown = result.content;
    return result;
  } catch (error) {
    traced?.was('error', toAppError(error).code);
    return failed(error);
  } finally {
    finished?.finish(outcome, shown);
  }
}

/** Runs calls that a running tool makes like all calls, but without ledger and background. */
function nestedFor(
  deps: CallToolsDeps,
  step: ToolStep,
  outer: ToolCall,
  results: readonly ModelMessage[],
  traced: ToolTrace | undefined,
): NestedCall {
  const { background: _background, ...input } = step.input;
  const { ledger: _ledger, ...rest } = step;
  const { agentId, traceId } = input;
  return createNestedCall(
    {
      fence: deps.fence,
      hideSecrets: deps.hideSecrets,
      find: (name) => findTool(step, name),
      async run(call, view, signal) {
        const inner = beginToolTrace(input.trace, call, traced?.stepId);
        const result = await resultOf(
          deps,
          { ...rest, nested: true, input, signal, added: [...(step.added ?? []), ...view.read] },
          call,
          [...results, ...view.taints],
          inner,
        );
        inner?.end(result.content, result);
        return result;
      },
      inspect: (text) => deps.inspect?.(text, { source: 'tool_output', principalId: `tool:${outer.name}`, agentId, traceId }),
    },
    outer,
  );
}

/** Whether a call only reads what the agent has: an isolated turn may make it. */
function isWithoutEffect(tool: Tool, args: unknown): boolean {
  return (tool.risk === 'read' && tool.effect === 'pure') || tool.onlyReads?.(args) === true;
}

function failureOf(deps: CallToolsDeps, input: TurnInput, tool: Tool, error: unknown): ToolResult {
  // Only the message of an AppError is meant for others.
  const { code, message } = toAppError(error);
  if (code !== 'internal') return { ...failure(message), traced: { errorKind: code } };
  deps.log.error({ agentId: input.agentId, turnId: input.turnId, tool: tool.name, error }, 'tool failed');
  return { ...failure(`The tool "${tool.name}" failed`), traced: { errorKind: 'internal' } };
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

function failure(content: string): ToolResult {
  return { content, isError: true };
}

function toMessage(call: ToolCall, result: ToolResult): ModelMessage {
  return { role: 'tool', content: result.content, toolCallId: call.id, toolName: call.name, ...(result.isError === true && { isError: true }) };
}
