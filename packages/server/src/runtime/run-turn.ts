import type { Clock } from '../kernel/clock.ts';
import { countTokens } from '../llm/count-tokens.ts';
import type { ModelResult } from '../llm/model.ts';
import type { Models } from '../llm/models.ts';
import type { BackgroundTasks } from './background.ts';
import type { CallToolsDeps } from './call-tools.ts';
import { createCircuitBreakers } from './circuit-breaker.ts';
import { createFitContext } from './context-window.ts';
import { ModelCalls } from './model-calls.ts';
import { createPlanCall } from './plan-call.ts';
import { ToolSteps } from './tool-steps.ts';
import { budgetExceeded, type TurnEnd, turnEnds } from './turn-end.ts';
import { type RunningTurn, TurnProgress } from './turn-progress.ts';
import { TurnStop } from './turn-stop.ts';
import type { RunTurn, TurnInput } from './turn.ts';

export interface RunTurnDeps extends CallToolsDeps {
  readonly models: Pick<Models, 'generate'> & Partial<Pick<Models, 'onRecovered'>>;
  readonly clock: Clock;
  readonly background?: BackgroundTasks;
}

/** Added to the system prompt after an answer without text and without tool calls; not stored. */
const emptyAnswerNote = 'Your last answer was empty. Write the answer for the user now.';

/**
 * The agent loop: calls the model and the tools it asks for until it answers, and checks at each step whether the turn
 * may continue (decisions: the turn). The circuit breakers live as long as the function.
 */
export function createRunTurn(deps: RunTurnDeps): RunTurn {
  const { models, clock, log, background } = deps;
  const breakers = createCircuitBreakers(clock, (opened) =>
    log.warn({ ...opened }, 'A model failed repeatedly; calls of the agent to it are refused for a while'),
  );
  models.onRecovered?.((model) => breakers.close(model));
  const callDeps = {
    models,
    breakers,
    planCall: createPlanCall(createFitContext(countTokens), countTokens),
    log,
    monotonic: () => clock.monotonic(),
    hideSecrets: deps.hideSecrets ?? ((text: string) => text),
  };

  return async (input, sink) => {
    const progress = new TurnProgress(input, background);
    const stop = new TurnStop({ clock, signal: input.signal, timeoutMs: input.agent.turnTimeoutMs });
    const turn = { input, progress, stop, sink };
    let end: TurnEnd = turnEnds.internal;
    try {
      end = await runSteps(turn, new ModelCalls(callDeps, turn), new ToolSteps(deps, turn));
    } catch (error) {
      log.error({ agentId: input.agentId, turnId: input.turnId, traceId: input.traceId, error }, 'Turn failed unexpectedly');
    } finally {
      stop[Symbol.dispose]();
    }
    // Unreported tasks that the turn started return to the conversation automatically.
    if (end === turnEnds.stop && input.background !== undefined && background?.isPending(input) === true) end = turnEnds.backgroundPending;
    return progress.toResult(end);
  };
}

/** Asks the model, and runs the tools that it calls, until the turn ends. */
async function runSteps({ input, progress, stop }: RunningTurn, calls: ModelCalls, tools: ToolSteps): Promise<TurnEnd> {
  let system = input.system;
  const paused = await tools.finishBegunStep();
  if (paused !== undefined) return paused;
  for (;;) {
    if (stop.cause !== undefined) return turnEnds[stop.cause];
    if (progress.steps >= input.agent.maxSteps) return turnEnds.maxSteps;
    progress.takeMessages();

    const call = calls.prepare(system, tools.specs);
    if ('end' in call) return call.end;
    const answered = await calls.make(call);
    if (answered.is === 'end') return answered.end;
    if (answered.is === 'too_long') continue;

    const { answer, cappedBy } = answered;
    if (callsTools(answer, input)) {
      system = input.system;
      const end = await tools.run(answer);
      if (end !== undefined) return end;
      continue;
    }

    progress.addAnswer(answer);
    if (answer.finish === 'length') return cappedBy === undefined ? turnEnds.lengthCut : budgetExceeded(cappedBy);
    if (answer.text.trim() !== '') {
      // A message that arrived during the last call is not ignored.
      if (progress.takeSteering({ role: 'assistant', content: answer.text })) continue;
      return turnEnds.stop;
    }
    if (answer.finish === 'content_filter') return turnEnds.filtered;
    if (system !== input.system || progress.steps >= input.agent.maxSteps) return turnEnds.outputStarved;
    system = [...input.system, emptyAnswerNote];
  }
}

/** Whether the turn continues with the calls of an answer. Those of a truncated answer may be truncated themselves. */
function callsTools({ toolCalls, finish }: ModelResult, { options }: TurnInput): boolean {
  return toolCalls.length > 0 && options?.toolChoice !== 'none' && finish !== 'length' && finish !== 'content_filter';
}
