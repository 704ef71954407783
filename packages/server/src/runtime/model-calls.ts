import { toFragment } from '../kernel/json-fragment.ts';
import type { Log } from '../kernel/log.ts';
import { ModelError, type ModelInfo, type ModelResult, type ModelSink, type ToolSpec } from '../llm/model.ts';
import type { Attempt, Models } from '../llm/models.ts';
import { toCallRecord } from './call-record.ts';
import type { Admission, CircuitBreakers } from './circuit-breaker.ts';
import { type CallPlan, type CallPlanInput, usableWindow } from './plan-call.ts';
import type { Refused } from './turn-budget.ts';
import { budgetExceeded, circuitOpen, contextExhausted, endOfFailedCall, type TurnEnd } from './turn-end.ts';
import { betweenTexts, type RunningTurn, type TurnProgress } from './turn-progress.ts';
import type { OpenStep, TurnTrace } from './turn-trace.ts';
import { ThoughtCollector } from './thought.ts';
import type { TurnInput, TurnSink } from './turn.ts';
import type { TurnStop } from './turn-stop.ts';

export interface ModelCallsDeps {
  readonly models: Pick<Models, 'generate'>;
  readonly breakers: Pick<CircuitBreakers, 'admit'>;
  readonly planCall: (input: CallPlanInput) => CallPlan;
  readonly log: Log;
  readonly monotonic: () => number;
  /** Removes secrets from reasoning that is stored. */
  readonly hideSecrets: (text: string) => string;
}

/** A call that fits into window and budgets and that the circuit breaker admits. */
export interface PreparedCall {
  readonly system: readonly string[];
  readonly tools: readonly ToolSpec[];
  readonly admission: Admission;
  readonly plan: Extract<CallPlan, { readonly models: unknown }>;
}

/** `answer`: the model answered; `too_long`: the conversation must be shortened further; `end`: the call failed, and the turn with it. */
export type Answered =
  | { readonly is: 'answer'; readonly answer: ModelResult; readonly cappedBy: Refused | undefined }
  | { readonly is: 'too_long' }
  | { readonly is: 'end'; readonly end: TurnEnd };

/** How often the context is cut further after a provider counted more tokens than estimated. */
const maxOverflows = 2;

/** The model calls of one turn: each is admitted, planned, streamed and charged exactly once. */
export class ModelCalls {
  readonly #deps: ModelCallsDeps;
  readonly #input: TurnInput;
  readonly #progress: TurnProgress;
  readonly #stop: TurnStop;
  readonly #sink: TurnSink | undefined;
  #overflows = 0;
  /** Whether anything arrived from the provider, or a tool ran, since the turn started or was resumed; decides what a time-out means. */
  #hasActed: boolean;

  constructor(deps: ModelCallsDeps, { input, progress, stop, sink }: RunningTurn) {
    this.#deps = deps;
    this.#input = input;
    this.#progress = progress;
    this.#stop = stop;
    this.#sink = sink;
    this.#hasActed = input.ledger?.past?.begun !== undefined;
  }

  /** Prepares the next call and counts it as a step; returns the end of the turn when none may be made. */
  prepare(system: readonly string[], tools: readonly ToolSpec[]): PreparedCall | { readonly end: TurnEnd } {
    const { agent, agentId, call, models, maxTokens, budget, whole, trace } = this.#input;
    const progress = this.#progress;
    const admission = this.#deps.breakers.admit({ agentId, caller: call.identity.tokenId, models, config: agent.circuitBreaker });
    if (!('end' in admission)) {
      trace?.note('breaker', namesOf(models), { event: 'refused', retryAfterMs: admission.retryAfterMs }, { outcome: 'denied' });
      return { end: circuitOpen(admission.retryAfterMs, admission.cause) };
    }
    const plan = this.#deps.planCall({
      models: admission.models,
      system,
      tools,
      messages: progress.sent,
      maxTokens: maxTokens ?? agent.maxTokens,
      turnTokens: { cap: `agents.${agentId}.budgets.perTurnTokens`, limit: agent.budgets.perTurnTokens, used: progress.usedTokens },
      budget,
      whole,
      overflows: this.#overflows,
    });
    if (!('models' in plan)) {
      admission.end(false);
      if (trace !== undefined) noteRefusedPlan(trace, plan, this.#before(admission));
      return { end: 'overflow' in plan ? contextExhausted(plan.overflow) : budgetExceeded(plan.refused) };
    }
    if (trace !== undefined && (progress.steps === 0 || plan.leftOut > 0)) noteContext(trace, plan, this.#before(admission));
    progress.sent = plan.messages;
    progress.leftOut += plan.leftOut;
    progress.steps += 1;
    return { system, tools, admission, plan };
  }

  async make({ system, tools, admission, plan }: PreparedCall): Promise<Answered> {
    const progress = this.#progress;
    const { reservation } = plan;
    const callsBefore = progress.calls.length;
    const { trace, made } = this.#input;
    const step = trace?.begin('model', namesOf(plan.models), { facts: this.#asked(plan) });
    const thoughts = this.#input.keepsThoughts === true ? new ThoughtCollector(this.#deps.monotonic) : undefined;
    let hung = false;
    let isSettled = false;
    try {
      if (reservation?.stored !== undefined) {
        await reservation.stored;
        made?.begin();
      }
      const call = {
        models: plan.models,
        agentId: this.#input.agentId,
        caller: this.#input.call.identity.tokenId,
        request: this.#request(system, tools, plan),
        onAttempt: (attempt: Attempt) => {
          admission.observe(attempt);
          const record = toCallRecord(attempt, this.#input.synthetic === true ? 'evaluation' : (this.#input.operation ?? 'interactive'));
          // First, so that nobody sees a result of the call that a kill could lose.
          made?.add(record);
          progress.record(record);
          trace?.attempt(step, attempt, record);
          // Usage of a call that ended too late for its turn arrives after the settlement.
          if (reservation === undefined || isSettled) this.#input.budget?.spend(record);
        },
        isExplicit: isExplicit(this.#input),
        ...(reservation !== undefined && { mayContinue: () => reservation.covers(progress.calls.slice(callsBefore)) }),
      };
      const sink = separated(this.#sink, progress.hasText());
      const { result, model } = await this.#stop.bounded(this.#deps.models.generate(call, sink && (thoughts?.watch(sink) ?? sink)));
      progress.thought = thoughts?.end(this.#deps.hideSecrets);
      progress.model = model;
      if (trace !== undefined && step !== undefined)
        endAnswered(trace, step, { result, model: `${model.provider}/${model.modelId}`, sent: plan.messages.at(-1)?.content });
      this.#hasActed = true;
      if (result.thinking !== undefined) progress.thinking.push(...result.thinking);
      return { is: 'answer', answer: result, cappedBy: plan.cappedBy };
    } catch (error) {
      trace?.end(step, { outcome: this.#stop.cause === 'aborted' ? 'cancelled' : 'error', error: trace.errorOf(error) });
      this.#hasActed ||= error instanceof ModelError && hasReceived(error);
      if (isTooLong(error) && this.#overflows < maxOverflows && this.#mayShorten()) {
        this.#overflows += 1;
        return { is: 'too_long' };
      }
      if (error instanceof ModelError && error.partial !== undefined) {
        progress.thought = thoughts?.end(this.#deps.hideSecrets);
        progress.addText(error.partial.text);
      }
      this.#log(error);
      const isSilent = !this.#hasActed;
      hung = this.#stop.cause === 'timeout' && isSilent;
      return { is: 'end', end: endOfFailedCall(error, { stopped: this.#stop.cause, isSilent }) };
    } finally {
      for (const { event, model, failures } of admission.end(hung)) trace?.note('breaker', model, { event, failures });
      isSettled = true;
      made?.settle();
      reservation?.settle(progress.calls.slice(callsBefore));
    }
  }

  /** Returns what a call is planned from, as the trace keeps it. */
  #before({ models: [model] }: Admission): PlannedFrom {
    return {
      rawWindowTokens: model?.contextWindow ?? 0,
      // A provider that refused the conversation as too long has a smaller window than configured.
      capSource: this.#overflows > 0 ? 'provider' : 'model',
      messagesIn: this.#progress.sent.length,
    };
  }

  /** Returns what the call asks for, as the trace keeps it. */
  #asked({ maxTokens }: PreparedCall['plan']): { readonly maxTokens?: number; readonly temperature?: number } {
    const { agent, temperature = agent.temperature } = this.#input;
    if (maxTokens === undefined && temperature === undefined) return {};
    return { ...(maxTokens !== undefined && { maxTokens }), ...(temperature !== undefined && { temperature }) };
  }

  #request(system: readonly string[], tools: readonly ToolSpec[], { messages, maxTokens }: PreparedCall['plan']) {
    const { agent, options, temperature = agent.temperature } = this.#input;
    return {
      system,
      messages,
      tools,
      cacheRetention: agent.cacheRetention,
      timeoutMs: Math.max(1, Math.min(agent.modelTimeoutMs, this.#stop.leftMs())),
      signal: this.#stop.signal,
      ...(temperature !== undefined && { temperature }),
      ...(maxTokens !== undefined && { maxTokens }),
      ...(options !== undefined && { options }),
    };
  }

  /** What a caller sends whole cannot be shortened. */
  #mayShorten(): boolean {
    const { whole } = this.#input;
    return whole === undefined || this.#progress.sent.length > whole.length;
  }

  #log(error: unknown): void {
    const { agentId, turnId, traceId } = this.#input;
    const fields = { agentId, turnId, traceId };
    if (!(error instanceof ModelError)) this.#deps.log.error({ ...fields, error }, 'Model call failed unexpectedly');
    else if (error.kind !== 'aborted')
      this.#deps.log.warn({ ...fields, kind: error.kind, status: error.status, detail: error.message }, 'Model call failed');
  }
}

/** Names the first model of a list. */
const namesOf = ([model]: readonly ModelInfo[]): string => (model === undefined ? '' : `${model.provider}/${model.modelId}`);

type PlannedFrom = { readonly rawWindowTokens: number; readonly capSource: 'model' | 'provider'; readonly messagesIn: number };

/** Notes what of the conversation a call sends. */
function noteContext(trace: TurnTrace, { messages, leftOut, sizes }: PreparedCall['plan'], from: PlannedFrom): void {
  const isDownshifted = leftOut > 0 || sizes.limit < Math.floor(usableWindow({ contextWindow: from.rawWindowTokens }));
  const { rawWindowTokens, capSource, messagesIn } = from;
  trace.note('context', 'model context', {
    windowTokens: sizes.limit,
    rawWindowTokens,
    capSource,
    messagesIn,
    systemTokens: sizes.fixed,
    historyTokens: sizes.input - sizes.fixed,
    inputTokens: sizes.input,
    outputHeadroom: sizes.limit - sizes.input,
    messagesOut: messages.length,
    leftOut,
    verdict: isDownshifted ? 'downshifted' : 'fits',
  });
}

/** Notes why no call was made: it does not fit, or a budget refuses it. */
function noteRefusedPlan(trace: TurnTrace, plan: Exclude<CallPlan, PreparedCall['plan']>, from: PlannedFrom): void {
  if (!('overflow' in plan)) return trace.note('context', 'budget', { verdict: 'refused', message: plan.refused.message }, { outcome: 'denied' });
  const { limit, fixed, input } = plan.overflow;
  trace.note(
    'context',
    'model context',
    {
      windowTokens: limit,
      ...from,
      systemTokens: fixed,
      // What a call cannot leave out: the messages since the last answer.
      freshTailTokens: input - fixed,
      inputTokens: input,
      outputHeadroom: limit - input,
      verdict: 'exhausted',
    },
    { outcome: 'error' },
  );
}

function endAnswered(
  trace: TurnTrace,
  step: OpenStep,
  { result, model, sent }: { readonly result: ModelResult; readonly model: string; readonly sent: string | undefined },
): void {
  trace.end(step, { outcome: 'ok', facts: { finish: result.finish, ...(result.toolCalls.length > 0 && { toolCalls: result.toolCalls.length }) } });
  step.name = model;
  if (!trace.isFull) return;
  if (sent !== undefined) step.input = trace.text(sent, false);
  step.output = trace.text(result.text, false);
}

/** Some providers report it by the status alone. */
function isTooLong(error: unknown): boolean {
  return error instanceof ModelError && error.partial === undefined && (error.kind === 'context_length' || error.status === 413);
}

/** Whether a part of an answer arrived: text, or reasoning and tool calls, which appear as output only. */
const hasReceived = ({ partial, usage }: ModelError): boolean => partial !== undefined || (usage?.output ?? 0) > 0;

/** An owner waits for the answer: a model that was refused recently is tried again. */
const isExplicit = ({ origin, ledger, call }: TurnInput): boolean =>
  ledger === undefined && origin !== 'background' && (call.identity.scopes.includes('*') || call.identity.scopes.includes('admin'));

const separator = toFragment(betweenTexts);

/** Separates the text of this step from that of earlier steps, in the stream as in the result. */
function separated(sink: TurnSink | undefined, hasText: boolean): ModelSink | undefined {
  if (sink === undefined || !hasText) return sink;
  let begun = false;
  return {
    ...(sink.thinking !== undefined && { thinking: sink.thinking }),
    text(fragment) {
      if (!begun && fragment !== '') {
        begun = true;
        sink.text(separator);
      }
      sink.text(fragment);
    },
    flush: () => sink.flush(),
    drained: () => sink.drained(),
    ...(sink.onlyWatched === true && { onlyWatched: true }),
  };
}
