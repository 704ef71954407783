import { hash } from 'node:crypto';
import type { TracedError, TracedText, TracedTokens, TraceStep, TraceStepKind } from '@gatehouse/contract';
import type { Clock } from '../kernel/clock.ts';
import { headOf } from '../kernel/cut-text.ts';
import { ModelError } from '../llm/model.ts';
import type { Attempt } from '../llm/models.ts';
import { totalCost } from '../llm/price.ts';
import type { CallRecord } from './turn.ts';

/** What of texts is kept: `off`: digest and size; `errors`: also the beginning where a step failed; `full`: of every step. */
export type KeptContent = 'off' | 'errors' | 'full';

export interface TurnTraceDeps {
  readonly clock: Clock;
  readonly content: KeptContent;
  /** Removes everything that is or looks like a secret. */
  readonly redact: (text: string) => string;
}

/** Steps of one turn; further ones are only counted. */
const maxSteps = 512;
/** Characters of a preview or an error. */
const maxPreview = 2048;
/** A longer text is cut before it is redacted: redaction costs by length. */
const redactedAtMost = 2 * maxPreview;

type StepOutcome = NonNullable<TraceStep['outcome']>;
type Facts = NonNullable<TraceStep['facts']>;

/** A step while it runs; the same object is kept. */
export type OpenStep = { -readonly [Key in keyof TraceStep]: TraceStep[Key] };

export interface StepEnd {
  readonly outcome: StepOutcome;
  readonly error?: TracedError | undefined;
  readonly facts?: Facts;
}

/** The steps of a running turn, kept in memory until it ends: a call adds one small object. */
export class TurnTrace {
  readonly steps: OpenStep[] = [];
  dropped = 0;
  readonly #deps: TurnTraceDeps;
  readonly startedAtMs: number;
  readonly #begun: number;
  #isClosed = false;

  constructor(deps: TurnTraceDeps) {
    this.#deps = deps;
    this.startedAtMs = deps.clock.now();
    this.#begun = deps.clock.monotonic();
  }

  /** Begins a step; undefined when the turn has too many. */
  begin(
    kind: TraceStepKind,
    name: string,
    { parent, facts }: { readonly parent?: number | undefined; readonly facts?: Facts } = {},
  ): OpenStep | undefined {
    if (this.#isClosed) return undefined;
    if (this.steps.length >= maxSteps) {
      this.dropped += 1;
      return undefined;
    }
    const step: OpenStep = { id: this.steps.length, kind, name, at: this.#elapsed() };
    if (parent !== undefined) step.parent = parent;
    if (facts !== undefined) step.facts = facts;
    this.steps.push(step);
    return step;
  }

  end(step: OpenStep | undefined, { outcome, error, facts }: StepEnd): void {
    if (step === undefined || this.#isClosed) return;
    step.ms = Math.max(0, this.#elapsed() - step.at);
    step.outcome = outcome;
    if (error !== undefined) step.error = error;
    if (facts !== undefined) step.facts = step.facts === undefined ? facts : { ...step.facts, ...facts };
  }

  /** Keeps the steps as they are: a call of a turn that has ended may still report. */
  close(): void {
    this.#isClosed = true;
  }

  /** Adds a step that takes no time. */
  note(
    kind: TraceStepKind,
    name: string,
    facts: Facts,
    { parent, outcome = 'ok' }: { readonly parent?: number | undefined; readonly outcome?: StepOutcome } = {},
  ): void {
    const step = this.begin(kind, name, { parent, facts });
    if (step === undefined) return;
    step.ms = 0;
    step.outcome = outcome;
  }

  /** Adds one attempt of a model call, from its own times. */
  attempt(call: OpenStep | undefined, attempt: Attempt, record: CallRecord): void {
    if (this.#isClosed) return;
    const { provider, modelId } = attempt.model;
    const step = this.begin('attempt', `${provider}/${modelId}`, { parent: call?.id });
    const tokens = tokensOf(record);
    const costNano = record.cost === null ? null : totalCost(record.cost);
    if (call !== undefined) {
      call.tokens = call.tokens === undefined ? tokens : addTokens(call.tokens, tokens);
      call.costNano = call.costNano === undefined ? costNano : addCost(call.costNano, costNano);
    }
    if (step === undefined) return;
    step.ms = Math.round(attempt.latencyMs);
    step.at = Math.max(0, step.at - step.ms);
    step.outcome = attempt.outcome;
    step.tokens = tokens;
    step.costNano = costNano;
    if (attempt.error !== undefined) step.error = this.errorOf(attempt.error);
    const { responseId } = attempt;
    if (attempt.usage.estimated || responseId !== undefined)
      step.facts = { ...(attempt.usage.estimated && { estimated: true }), ...(responseId !== undefined && { responseId }) };
  }

  /** Returns a failed model call as the trace keeps it. */
  errorOf(error: unknown): TracedError {
    if (!(error instanceof ModelError)) return { kind: 'internal' };
    const { kind, status, retryAfterMs, message } = error;
    return {
      kind,
      ...(status !== undefined && { status }),
      ...(this.#deps.content !== 'off' && { text: this.#preview(message) }),
      ...(retryAfterMs !== undefined && { retryAtMs: Math.round(this.#deps.clock.now() + retryAfterMs) }),
    };
  }

  /** Returns a text as the trace keeps it. */
  text(value: string, failed: boolean): TracedText {
    return { digest: hash('sha256', value, 'hex').slice(0, 16), bytes: Buffer.byteLength(value), ...this.#previewOf(value, failed) };
  }

  /** Whether texts of steps are kept at all, as far as they succeed. */
  get isFull(): boolean {
    return this.#deps.content === 'full';
  }

  /** Returns an error sentence as the trace keeps it; undefined when no text is kept. */
  sentence(text: string): string | undefined {
    return this.#deps.content === 'off' ? undefined : this.#preview(text);
  }

  #previewOf(value: string, failed: boolean): { readonly preview?: string } {
    const { content } = this.#deps;
    return content === 'full' || (failed && content === 'errors') ? { preview: this.#preview(value) } : {};
  }

  #preview(value: string): string {
    return previewOf(value, this.#deps.redact);
  }

  #elapsed(): number {
    return Math.max(0, Math.round(this.#deps.clock.monotonic() - this.#begun));
  }
}

/** Returns the beginning of a text without what is or looks like a secret. */
export function previewOf(value: string, redact: (text: string) => string): string {
  return headOf(redact(headOf(value, redactedAtMost)), maxPreview);
}

export function tokensOf({ usage }: Pick<CallRecord, 'usage'>): TracedTokens {
  return { in: usage.input, out: usage.output, cached: usage.cacheRead, cacheWritten: usage.cacheWrite };
}

export function addTokens(a: TracedTokens, b: TracedTokens): TracedTokens {
  return { in: a.in + b.in, out: a.out + b.out, cached: a.cached + b.cached, cacheWritten: a.cacheWritten + b.cacheWritten };
}

/** The sum is unknown once a price is. */
export function addCost(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b;
}
