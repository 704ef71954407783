import type { CallContext } from '../kernel/call-context.ts';
import type { Clock } from '../kernel/clock.ts';
import type { ToolCall } from '../llm/model.ts';
import type { BackgroundTasks, TaskOutcome } from './background.ts';
import type { NestedCall } from './nested-call.ts';
import type { Tool, ToolContext, ToolResult } from './tool.ts';
import { authorityOf, backgroundToolName } from './tool-policy.ts';
import type { TurnInput } from './turn.ts';

export interface RunToolDeps {
  readonly clock: Clock;
  /** Without it every call stays in its turn. */
  readonly background?: Pick<BackgroundTasks, 'begin'>;
}

export interface ToolInvocation {
  readonly input: TurnInput;
  readonly tool: Tool;
  readonly call: ToolCall;
  /** Parsed by the tool's schema. */
  readonly args: unknown;
  readonly description: string;
  /** The turn's signal. */
  readonly signal: AbortSignal;
  /** Returns the answer for a tool that threw. */
  readonly failed: (error: unknown) => ToolResult;
  /** Prepares the result of a task: bounded, and fenced if untrusted. */
  readonly toText: (result: ToolResult) => Promise<string>;
  /** Runs calls that the tool makes itself. */
  readonly nested: NestedCall;
  /** Whether the model has read untrusted text. */
  readonly tainted: () => boolean;
  readonly used?: ToolContext['used'];
  readonly onOutput?: ToolContext['onOutput'];
}

interface ToolEnd {
  readonly outcome: TaskOutcome;
  readonly result: ToolResult;
}

/** Runs one call until it ends, its deadline or turn does, or it continues in the background; does not wait for a tool that ignores its signal. */
export async function runTool(deps: RunToolDeps, invocation: ToolInvocation): Promise<ToolResult & { readonly isPromoted?: true }> {
  const { clock } = deps;
  const { input, tool, call, args, signal } = invocation;
  const controller = new AbortController();
  const over = Promise.withResolvers<ToolEnd>();
  const uncertain = tool.effect === 'pure' ? '' : '; it may still have had its effect';
  const stop = (outcome: TaskOutcome, why: string) => {
    over.resolve({ outcome, result: { content: `"${tool.name}" was stopped: ${why}${uncertain}`, isError: true, traced: { errorKind: outcome } } });
    controller.abort();
  };
  let cancelDeadline = clock.after(tool.timeoutMs, () => stop('timeout', `no result within ${tool.timeoutMs} ms`));
  const onAbort = () => stop('cancelled', 'the turn was stopped');
  signal.addEventListener('abort', onAbort, { once: true });
  const leaveTurn = () => {
    cancelDeadline();
    signal.removeEventListener('abort', onAbort);
  };
  const startedAtMs = clock.now();
  const context: ToolContext = {
    agentId: input.agentId,
    turnId: input.turnId,
    traceId: input.traceId,
    origin: authorityOf(input),
    workspaceDir: input.workspaceDir,
    conversationRef: input.conversationRef,
    sessionKey: input.sessionKey,
    principalId: input.principalId,
    callId: call.id,
    callTool: (name, nestedArgs) => invocation.nested(name, nestedArgs, controller.signal),
    tainted: invocation.tainted,
    ...(invocation.used !== undefined && { used: invocation.used }),
    ...(invocation.onOutput !== undefined && { onOutput: invocation.onOutput }),
    call: callOf(input.call, controller.signal, invocation.tainted),
    signal: controller.signal,
  };
  const work = settle(tool, args, context, invocation.failed);
  const end = Promise.race([over.promise, work]);
  const { afterMs, maxMs } = input.agent.background;
  const mayPromote = tool.promotable === true && deps.background !== undefined && input.background !== undefined && afterMs > 0;
  if (!mayPromote || afterMs >= tool.timeoutMs) {
    try {
      return (await end).result;
    } finally {
      leaveTurn();
    }
  }

  const promotion: { task?: ReturnType<BackgroundTasks['begin']> } = {};
  const decided = Promise.withResolvers<undefined>();
  const cancelPromotion = clock.after(afterMs, () => {
    promotion.task = deps.background?.begin({
      input,
      call,
      tool,
      description: invocation.description,
      startedAtMs,
      end: () => end.then(async ({ outcome, result }) => ({ outcome, content: await invocation.toText(result) })),
      stop: (why) => stop('cancelled', why),
    });
    if (promotion.task === undefined) return;
    leaveTurn();
    cancelDeadline = clock.after(Math.max(1, maxMs - afterMs), () => stop('timeout', `no result within ${maxMs} ms`));
    void end.then(cancelDeadline);
    decided.resolve(undefined);
  });
  const first = await Promise.race([decided.promise, end]);
  cancelPromotion();
  // From here on the result belongs to the task, even if it arrived at the same moment.
  const { task } = promotion;
  if (task === undefined) {
    leaveTurn();
    return (first ?? (await end)).result;
  }
  try {
    await task.stored;
  } catch {
    stop('cancelled', 'it could not be recorded as a task');
    return { content: `"${tool.name}" took long and was stopped, because it could not be recorded as a task${uncertain}`, isError: true };
  }
  tool.onPromoted?.(context);
  return { content: promotionNotice(invocation, task.taskId, afterMs), isPromoted: true };
}

function callOf(call: CallContext, signal: AbortSignal, tainted: () => boolean): CallContext {
  const { agentCaller } = call;
  return { ...call, signal, ...(agentCaller !== undefined && { agentCaller: { ...agentCaller, tainted } }) };
}

async function settle(tool: Tool, args: unknown, context: ToolContext, failed: (error: unknown) => ToolResult): Promise<ToolEnd> {
  try {
    const result = await tool.run(args, context);
    return { outcome: result.isError === true ? 'error' : 'ok', result };
  } catch (error) {
    return { outcome: 'error', result: failed(error) };
  }
}

function promotionNotice({ input, tool }: ToolInvocation, taskId: string, afterMs: number): string {
  const manage = input.tools.some(({ name }) => name === backgroundToolName) ? ` "${backgroundToolName}" shows or cancels it.` : '';
  return `"${tool.name}" takes longer than ${afterMs} ms and continues in the background as task ${taskId}. Its result is added to this conversation automatically when it ends: do not wait for it and do not start it again. Continue with what does not need it, or end your turn and say that it is still running.${manage}`;
}
