import type { TraceStep } from '@gatehouse/contract';
import type { ToolCall } from '../llm/model.ts';
import type { GateAnswer } from './tool-gate.ts';
import type { ToolResult } from './tool.ts';
import type { OpenStep, TurnTrace } from './turn-trace.ts';

/** The step of one tool call in the trace of its turn. */
export class ToolTrace {
  readonly #trace: TurnTrace;
  readonly #step: OpenStep;
  readonly #call: ToolCall;
  #outcome: NonNullable<TraceStep['outcome']> | undefined;
  #errorKind: string | undefined;

  constructor(trace: TurnTrace, step: OpenStep, call: ToolCall) {
    this.#trace = trace;
    this.#step = step;
    this.#call = call;
  }

  get stepId(): number {
    return this.#step.id;
  }

  /** States how the call ended, when its result alone does not show it. */
  was(outcome: NonNullable<TraceStep['outcome']>, errorKind: string | undefined): void {
    this.#outcome = outcome;
    this.#errorKind = errorKind;
  }

  /** Adds the wait for the decision on the call. */
  async gated(decision: Promise<GateAnswer>): Promise<GateAnswer> {
    const step = this.#trace.begin('approval', this.#step.name, { parent: this.#step.id });
    const answer = await decision;
    if (answer.allowed) this.#trace.end(step, { outcome: 'ok', facts: { approved: true } });
    else if (answer.waits === undefined) this.#trace.end(step, { outcome: 'denied', facts: { approved: false } });
    else {
      this.#trace.end(step, { outcome: 'waiting', facts: { approvalId: answer.waits.approvalId } });
      this.#trace.end(this.#step, { outcome: 'waiting' });
    }
    return answer;
  }

  offLoaded(chars: number, path: string): void {
    this.#trace.note('off_load', this.#step.name, { chars, pointer: path }, { parent: this.#step.id });
  }

  /** `content`: the result as the model reads it. */
  end(content: string, { isError, traced }: Pick<ToolResult, 'isError' | 'traced'>): void {
    const trace = this.#trace;
    const outcome = this.#outcome ?? (isError === true ? 'error' : 'ok');
    const failed = outcome === 'error' || outcome === 'denied';
    this.#step.input = trace.text(this.#call.arguments, failed);
    this.#step.output = trace.text(content, failed);
    const text = failed ? trace.sentence(content) : undefined;
    trace.end(this.#step, {
      outcome,
      ...(traced?.facts !== undefined && { facts: traced.facts }),
      ...(failed && { error: { kind: this.#errorKind ?? traced?.errorKind ?? 'tool_error', ...(text !== undefined && { text }) } }),
    });
  }
}

/** Begins the step of a call; `parent`: the step of the call that makes it. Undefined without a trace. */
export function beginToolTrace(trace: TurnTrace | undefined, call: ToolCall, parent: number | undefined): ToolTrace | undefined {
  // A model may ask for a tool of any name, with an id of any length.
  const step = trace?.begin('tool', call.name.slice(0, 100), { parent, facts: { callId: call.id.slice(0, 200) } });
  return trace === undefined || step === undefined ? undefined : new ToolTrace(trace, step, call);
}
