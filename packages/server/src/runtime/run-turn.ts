import type { Clock } from '../kernel/clock.ts';
import { newId } from '../kernel/ids.ts';
import { countTokens } from '../llm/count-tokens.ts';
import { ModelError, type ModelInfo, type ModelMessage, type ModelResult, type ModelSink, type ThinkingBlock, type ToolCall } from '../llm/model.ts';
import type { Attempt, Models } from '../llm/models.ts';
import { toCallRecord } from './call-record.ts';
import type { BackgroundTasks } from './background.ts';
import { callTools, type CallToolsDeps } from './call-tools.ts';
import { createCircuitBreakers } from './circuit-breaker.ts';
import { callIdsOf, divideCalls, offeredTools } from './client-tools.ts';
import { createFitContext } from './context-window.ts';
import { createLoopDetector } from './loop-detection.ts';
import { createPlanCall } from './plan-call.ts';
import { isTainted } from './taint.ts';
import { toolSpec } from './tool-spec.ts';
import type { Tool, TurnUse } from './tool.ts';
import { totalCost } from '../llm/price.ts';
import { stepLedger, type StepLedger } from './step-ledger.ts';
import type { AnswerEnding, ApprovalWait, CallRecord, LedgerStep, RunTurn, TurnInput, TurnLedger, TurnPast, TurnResult, TurnSink } from './turn.ts';
import { budgetExceeded, circuitOpen, contextExhausted, endOfFailedCall, type TurnEnd, turnEnds } from './turn-end.ts';
import { TurnStop } from './turn-stop.ts';

export interface RunTurnDeps extends CallToolsDeps {
  readonly models: Pick<Models, 'generate'> & Partial<Pick<Models, 'onRecovered'>>;
  readonly clock: Clock;
  readonly background?: BackgroundTasks;
}

/** Added to the system prompt after an answer without text and without tool calls; not stored. */
const emptyAnswerNote = 'Your last answer was empty. Write the answer for the user now.';
const loopNote =
  '[You made this call before, with the same result. Repeating it will not change anything: take another way, or answer with what you have.]';
/** How often the context is cut further after a provider counted more tokens than estimated. */
const maxOverflows = 2;

/** State of a turn so far; belongs to one run. */
interface Progress {
  readonly added: ModelMessage[];
  readonly texts: string[];
  readonly calls: CallRecord[];
  steps: number;
  leftOut: number;
  usedTokens: number;
  model: ModelInfo;
  clientCalls?: readonly ToolCall[];
  readonly thinking: ThinkingBlock[];
  ending?: AnswerEnding;
  /** Tasks whose results the turn received. */
  reported?: string[];
  /** Calls that were not run for lack of an approval, including those of earlier runs. */
  refused: number;
  waiting?: ApprovalWait;
}

/**
 * The agent loop: calls the model and the tools it asks for until it answers, and checks at each step whether the turn
 * may continue (decisions: the turn). The circuit breakers live as long as the function.
 */
export function createRunTurn(deps: RunTurnDeps): RunTurn {
  const breakers = createCircuitBreakers(deps.clock, (opened) =>
    deps.log.warn({ ...opened }, 'A model failed repeatedly; calls of the agent to it are refused for a while'),
  );
  deps.models.onRecovered?.((model) => breakers.close(model));
  const planCall = createPlanCall(createFitContext(countTokens), countTokens);

  async function runSteps(input: TurnInput, progress: Progress, stop: TurnStop, sink: TurnSink | undefined): Promise<TurnEnd> {
    const { agent, clientTools = [], options } = input;
    let ownTools = offeredTools(input.tools, clientTools, options?.toolChoice);
    let tools = [...ownTools.map(toolSpec), ...clientTools];
    const clientNames = new Set(clientTools.map((tool) => tool.name));
    const loops = createLoopDetector();
    const beforeOnce = async () => input.beforeOnce?.(progress.reported ?? []);
    const onUnapproved = () => {
      progress.refused += 1;
    };
    const used = (): TurnUse => ({
      steps: progress.steps,
      tokens: progress.usedTokens,
      costNano: progress.calls.reduce((sum, { cost }) => sum + (cost === null ? 0 : totalCost(cost)), 0),
    });
    const turnCap = `agents.${input.agentId}.budgets.perTurnTokens`;
    let messages = input.messages;
    let system = input.system;
    let overflows = 0;
    /** Steering messages since the last finished step. */
    let steers: { readonly ids: readonly string[]; readonly messages: readonly ModelMessage[] } | undefined;
    const { ledger } = input;
    /** Whether anything arrived from the provider, or a tool ran, since the turn started or was resumed; decides what a time-out means. */
    let hasActed = ledger?.past?.begun !== undefined;
    if (ledger?.past !== undefined) {
      if (ledger.past.begun !== undefined && (await finishBegun(ledger, ledger.past.begun)) === 'waits') return turnEnds.stop;
      messages = [...messages, ...progress.added];
    }
    for (;;) {
      if (stop.cause !== undefined) return turnEnds[stop.cause];
      if (progress.steps >= agent.maxSteps) return turnEnds.maxSteps;
      const announcement = input.background === undefined ? undefined : deps.background?.take(input.conversationRef);
      if (announcement !== undefined) {
        const message: ModelMessage = { role: 'user', content: announcement.text };
        progress.added.push(message);
        (progress.reported ??= []).push(...announcement.taskIds);
        messages = [...messages, message];
      }
      takeSteers([]);
      const admission = breakers.admit(admitting(input));
      if (!('end' in admission)) return circuitOpen(admission.retryAfterMs, admission.cause);
      let hung = false;
      const plan = planCall({
        models: admission.models,
        system,
        tools,
        messages,
        maxTokens: input.maxTokens ?? agent.maxTokens,
        turnTokens: { cap: turnCap, limit: agent.budgets.perTurnTokens, used: progress.usedTokens },
        budget: input.budget,
        whole: input.whole,
        overflows,
      });
      if (!('models' in plan)) {
        admission.end(false);
        return 'overflow' in plan ? contextExhausted(plan.overflow) : budgetExceeded(plan.refused);
      }
      const { reservation } = plan;
      const callsBefore = progress.calls.length;
      let isSettled = false;
      messages = plan.messages;
      progress.leftOut += plan.leftOut;
      progress.steps += 1;
      let answer: ModelResult;
      try {
        const temperature = input.temperature ?? agent.temperature;
        const request = {
          system,
          messages,
          tools,
          cacheRetention: agent.cacheRetention,
          timeoutMs: Math.max(1, Math.min(agent.modelTimeoutMs, stop.leftMs())),
          signal: stop.signal,
          ...(temperature !== undefined && { temperature }),
          ...(plan.maxTokens !== undefined && { maxTokens: plan.maxTokens }),
          ...(options !== undefined && { options }),
        };
        const onAttempt = (attempt: Attempt) => {
          admission.observe(attempt);
          const record = toCallRecord(attempt, input.operation ?? 'interactive');
          progress.calls.push(record);
          progress.usedTokens += attempt.usage.input + attempt.usage.output;
          // Usage of a call that ended too late for its turn arrives after the settlement.
          if (reservation === undefined || isSettled) input.budget?.spend(record);
        };
        const call = {
          models: plan.models,
          agentId: input.agentId,
          caller: input.call.identity.tokenId,
          request,
          onAttempt,
          isExplicit: isExplicit(input),
          ...(reservation !== undefined && { mayContinue: () => reservation.covers(progress.calls.slice(callsBefore)) }),
        };
        if (reservation?.stored !== undefined) await reservation.stored;
        const { result, model } = await stop.bounded(deps.models.generate(call, separated(sink, progress.texts)));
        answer = result;
        progress.model = model;
      } catch (error) {
        hasActed ||= error instanceof ModelError && hasReceived(error);
        if (isTooLong(error) && overflows < maxOverflows && mayShorten(messages)) {
          overflows += 1;
          continue;
        }
        if (error instanceof ModelError && error.partial !== undefined) addText(progress, error.partial.text);
        logFailure(input, error);
        const isSilent = !hasActed;
        hung = stop.cause === 'timeout' && isSilent;
        return endOfFailedCall(error, { stopped: stop.cause, isSilent });
      } finally {
        admission.end(hung);
        isSettled = true;
        reservation?.settle(progress.calls.slice(callsBefore));
      }
      hasActed = true;
      if (answer.thinking !== undefined) progress.thinking.push(...answer.thinking);
      const isAnswer = answer.toolCalls.length === 0 || options?.toolChoice === 'none';
      if (isAnswer || answer.finish === 'length' || answer.finish === 'content_filter') {
        // Calls of a truncated answer may be truncated themselves.
        addText(progress, answer.text);
        const ending = endingOf(answer);
        if (ending !== undefined) progress.ending = ending;
        if (answer.finish === 'length') return plan.cappedBy === undefined ? turnEnds.lengthCut : budgetExceeded(plan.cappedBy);
        // A message that arrived during the last call is not ignored.
        if (answer.text.trim() !== '' && takeSteers([{ role: 'assistant', content: answer.text }])) continue;
        if (answer.text.trim() !== '') return turnEnds.stop;
        if (answer.finish === 'content_filter') return turnEnds.filtered;
        if (system !== input.system || progress.steps >= agent.maxSteps) return turnEnds.outputStarved;
        system = [...input.system, emptyAnswerNote];
        continue;
      }
      system = input.system;
      // A caller identifies its results by their ids over the whole conversation that it keeps.
      const calls = withUniqueIds(answer.toolCalls, callIdsOf(clientNames.size === 0 ? progress.added : [...input.messages, ...progress.added]));
      const { own, client } = divideCalls(calls, clientNames);
      if (answer.text !== '') progress.texts.push(answer.text);
      const loaded = new Set<Tool>();
      const ledgerStep =
        ledger === undefined ? undefined : { number: progress.steps, text: answer.text, calls, records: progress.calls, refused: progress.refused };
      const stepOf = ledgerStep === undefined || ledger === undefined ? undefined : stepLedger(ledger, ledgerStep, []);
      const run = {
        input: ownTools === input.tools ? input : { ...input, tools: ownTools },
        signal: stop.signal,
        beforeOnce,
        added: progress.added,
        used,
        loaded,
        onUnapproved,
        ...(stepOf !== undefined && { ledger: stepOf }),
      };
      const results = await callTools(deps, run, own);
      if (ledger !== undefined && ledgerStep !== undefined && stepOf !== undefined && (await pauseForApproval(ledger, ledgerStep, stepOf, results)))
        return turnEnds.stop;
      const added = loaded.size === 0 ? [] : [...loaded].filter((tool) => !ownTools.includes(tool) && !clientNames.has(tool.name));
      if (added.length > 0) {
        ownTools = [...ownTools, ...added];
        tools = [...ownTools.map(toolSpec), ...clientTools];
      }
      if (client.length > 0) {
        progress.added.push(called(answer, calls), ...results);
        if (stop.cause !== undefined) return turnEnds[stop.cause];
        progress.clientCalls = client;
        return turnEnds.stop;
      }
      const verdict = loops.observe({ text: answer.text.trim(), calls, results });
      if (verdict === 'warn') annotate(results);
      const step: ModelMessage[] = [called(answer, calls), ...results];
      progress.added.push(...step);
      if (verdict === 'loop') return turnEnds.contextLoop;
      if (ledgerStep !== undefined && stop.cause === undefined) {
        const finished = { ...ledgerStep, refused: progress.refused };
        if (steers === undefined) await ledger?.finish(finished, step);
        else await ledger?.finish({ ...finished, steers: steers.ids }, [...steers.messages, ...step]);
        steers = undefined;
      }
      messages = [...messages, ...step];
    }

    /** What a caller sends whole cannot be shortened. */
    function mayShorten(sent: readonly ModelMessage[]): boolean {
      return input.whole === undefined || sent.length > input.whole.length;
    }

    /** Adds steering messages to the turn, after an answer that would have ended it. */
    function takeSteers(answered: readonly ModelMessage[]): boolean {
      const steered = input.steering?.take();
      if (steered === undefined) return false;
      const message: ModelMessage = { role: 'user', content: steered.text };
      progress.added.push(message);
      steers = { ids: [...(steers?.ids ?? []), ...steered.ids], messages: [...(steers?.messages ?? []), ...answered, message] };
      messages = [...messages, ...answered, message];
      return true;
    }

    /** Stores a step with a call that needs a person's decision; returns false when there is none. A turn that was stopped is not continued. */
    async function pauseForApproval(
      kept: TurnLedger,
      step: LedgerStep,
      { waitsFor, unmade }: StepLedger,
      results: readonly ModelMessage[],
    ): Promise<boolean> {
      if (waitsFor === undefined || stop.cause !== undefined) return false;
      const made = results.filter((message) => message.role !== 'tool' || !unmade.has(message.toolCallId));
      await kept.pause({ ...step, refused: progress.refused }, made);
      progress.waiting = waitsFor;
      return true;
    }

    /** Runs the calls of an interrupted step: results of those that ran are known, the others run now. */
    async function finishBegun(kept: TurnLedger, { text, calls, results: known }: NonNullable<TurnPast['begun']>): Promise<'waits' | 'done'> {
      const step = { number: progress.steps, text, calls, records: progress.calls, refused: progress.refused };
      if (text !== '') progress.texts.push(text);
      const run = { input, signal: stop.signal, beforeOnce, added: progress.added, used, onUnapproved, ledger: stepLedger(kept, step, known) };
      const results = await callTools(deps, run, calls);
      if (await pauseForApproval(kept, step, run.ledger, results)) return 'waits';
      const messagesOfStep: ModelMessage[] = [{ role: 'assistant', content: text, toolCalls: calls }, ...results];
      progress.added.push(...messagesOfStep);
      if (stop.cause === undefined) await kept.finish({ ...step, refused: progress.refused }, messagesOfStep);
      return 'done';
    }
  }

  function logFailure(input: TurnInput, error: unknown): void {
    const fields = { agentId: input.agentId, turnId: input.turnId, traceId: input.traceId };
    if (!(error instanceof ModelError)) deps.log.error({ ...fields, error }, 'Model call failed unexpectedly');
    else if (error.kind !== 'aborted')
      deps.log.warn({ ...fields, kind: error.kind, status: error.status, detail: error.message }, 'Model call failed');
  }

  return async (input, sink) => {
    const [primary] = input.models;
    if (primary === undefined) throw new RangeError('a turn needs a model');
    const progress = progressFrom(input.ledger?.past, primary);
    let end: TurnEnd = turnEnds.internal;
    const stop = new TurnStop({ clock: deps.clock, signal: input.signal, timeoutMs: input.agent.turnTimeoutMs });
    try {
      end = await runSteps(input, progress, stop, sink);
    } catch (error) {
      deps.log.error({ agentId: input.agentId, turnId: input.turnId, traceId: input.traceId, error }, 'Turn failed unexpectedly');
    } finally {
      stop[Symbol.dispose]();
    }
    // Unreported tasks that the turn started return to the conversation automatically.
    if (end === turnEnds.stop && input.background !== undefined && deps.background?.isPending(input) === true) end = turnEnds.backgroundPending;
    return toResult(input, progress, end);
  };
}

const admitting = ({ agentId, agent, call, models }: TurnInput) => ({
  agentId,
  caller: call.identity.tokenId,
  models,
  config: agent.circuitBreaker,
});

/** Some providers report it by the status alone. */
function isTooLong(error: unknown): boolean {
  return error instanceof ModelError && error.partial === undefined && (error.kind === 'context_length' || error.status === 413);
}

/** Whether a part of an answer arrived: text, or reasoning and tool calls, which appear as output only. */
const hasReceived = ({ partial, usage }: ModelError): boolean => partial !== undefined || (usage?.output ?? 0) > 0;

/** An owner waits for the answer: a model that was refused recently is tried again. */
const isExplicit = ({ origin, ledger, call }: TurnInput): boolean =>
  ledger === undefined && origin !== 'background' && (call.identity.scopes.includes('*') || call.identity.scopes.includes('admin'));

/** Builds the message of an answer with its calls. Its reasoning is sent back to the provider with them. */
function called({ text, thinking }: ModelResult, toolCalls: readonly ToolCall[]): ModelMessage {
  return { role: 'assistant', content: text, toolCalls, ...(thinking !== undefined && { thinking }) };
}

function endingOf({ finish, stopSequence }: ModelResult): AnswerEnding | undefined {
  if (finish === 'content_filter') return { by: 'content_filter' };
  return stopSequence === undefined ? undefined : { by: 'stop_sequence', sequence: stopSequence };
}

function progressFrom(past: TurnPast | undefined, model: ModelInfo): Progress {
  if (past === undefined) return { added: [], texts: [], calls: [], thinking: [], steps: 0, leftOut: 0, usedTokens: 0, refused: 0, model };
  const { messages, steps, usedTokens, refused } = past;
  const texts = messages.flatMap(({ role, content }) => (role === 'assistant' && content !== '' ? [content] : []));
  return { added: [...messages], texts, calls: [], thinking: [], steps, leftOut: 0, usedTokens, refused, model };
}

function toResult(input: TurnInput, progress: Progress, end: TurnEnd): TurnResult {
  return {
    finishReason: end.finishReason,
    text: progress.texts.join(betweenTexts),
    messages: progress.added,
    calls: progress.calls,
    steps: progress.steps,
    ...(progress.leftOut > 0 && { leftOut: progress.leftOut }),
    model: progress.model,
    tainted: isTainted(input.messages, input) || isTainted(progress.added, input),
    ...(progress.waiting !== undefined && { waiting: progress.waiting }),
    ...(progress.refused > 0 && { effectsRefused: progress.refused }),
    ...(progress.reported !== undefined && { reported: progress.reported }),
    ...(progress.clientCalls !== undefined && { clientCalls: progress.clientCalls }),
    ...(progress.thinking.length > 0 && { thinking: progress.thinking }),
    ...(progress.ending !== undefined && { ending: progress.ending }),
    ...(end.failure !== undefined && { failure: end.failure }),
  };
}

function addText(progress: Progress, text: string): void {
  if (text === '') return;
  progress.texts.push(text);
  progress.added.push({ role: 'assistant', content: text });
}

/** Text before and after a tool call forms two paragraphs. */
const betweenTexts = '\n\n';

/** Separates the text of this step from that of earlier steps, in the stream as in the result. */
function separated(sink: TurnSink | undefined, before: readonly string[]): ModelSink | undefined {
  if (sink === undefined || before.length === 0) return sink;
  let begun = false;
  return {
    ...(sink.thinking !== undefined && { thinking: sink.thinking }),
    text(fragment) {
      if (!begun && fragment !== '') {
        begun = true;
        sink.text(JSON.stringify(betweenTexts).slice(1, -1));
      }
      sink.text(fragment);
    },
    flush: () => sink.flush(),
    drained: () => sink.drained(),
    ...(sink.onlyWatched === true && { onlyWatched: true }),
  };
}

/** Makes ids unique: some providers repeat them or leave them empty, and results are identified by them. */
function withUniqueIds(calls: readonly ToolCall[], before: ReadonlySet<string>): readonly ToolCall[] {
  const taken = new Set(before);
  return calls.map((call) => {
    const id = call.id === '' || taken.has(call.id) ? newId('call') : call.id;
    taken.add(id);
    return id === call.id ? call : { ...call, id };
  });
}

function annotate(results: ModelMessage[]): void {
  const last = results.at(-1);
  if (last !== undefined) results[results.length - 1] = { ...last, content: `${last.content}\n\n${loopNote}` };
}
