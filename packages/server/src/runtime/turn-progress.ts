import type { ModelInfo, ModelMessage, ModelResult, ThinkingBlock, ToolCall } from '../llm/model.ts';
import { totalCost } from '../llm/price.ts';
import type { BackgroundTasks } from './background.ts';
import { isTainted } from './taint.ts';
import type { Thought } from './thought.ts';
import type { TurnUse } from './tool.ts';
import type { TurnEnd } from './turn-end.ts';
import type { AnswerEnding, ApprovalWait, CallRecord, TurnInput, TurnResult, TurnSink } from './turn.ts';
import type { TurnStop } from './turn-stop.ts';

/** Text before and after a tool call forms two paragraphs. */
export const betweenTexts = '\n\n';

/** A running turn: what it was asked, what it has produced, what may stop it, and where it streams. */
export interface RunningTurn {
  readonly input: TurnInput;
  readonly progress: TurnProgress;
  readonly stop: TurnStop;
  readonly sink: TurnSink | undefined;
}

/** What a turn has said, done and used so far. */
export class TurnProgress {
  /** What the next model call sends; may be shortened to fit. */
  sent: readonly ModelMessage[];
  /** What the turn adds to its conversation. */
  readonly added: ModelMessage[] = [];
  readonly calls: CallRecord[] = [];
  readonly thinking: ThinkingBlock[] = [];
  steps = 0;
  usedTokens = 0;
  leftOut = 0;
  /** Calls that were not run for lack of an approval, including those of earlier runs. */
  refused = 0;
  /** The model that answered last. */
  model: ModelInfo;
  ending: AnswerEnding | undefined;
  clientCalls: readonly ToolCall[] | undefined;
  waiting: ApprovalWait | undefined;
  /** Reasoning of the last model call, until a message has it. */
  thought: Thought | undefined;
  /** Tasks whose results the turn received. */
  reported: string[] | undefined;
  readonly #input: TurnInput;
  readonly #background: Pick<BackgroundTasks, 'take'> | undefined;
  /** Steering messages since the last finished step, with the answers before them. */
  #steers: { readonly ids: string[]; readonly messages: ModelMessage[] } | undefined;

  constructor(input: TurnInput, background: Pick<BackgroundTasks, 'take'> | undefined) {
    const [primary] = input.models;
    if (primary === undefined) throw new RangeError('a turn needs a model');
    this.#input = input;
    this.#background = background;
    this.model = primary;
    this.sent = input.messages;
    const past = input.ledger?.past;
    if (past === undefined) return;
    this.add(...past.messages);
    this.steps = past.steps;
    this.usedTokens = past.usedTokens;
    this.refused = past.refused;
  }

  /** Adds messages to the conversation; the next call sends them. */
  add(...messages: readonly ModelMessage[]): void {
    this.added.push(...messages);
    this.sent = [...this.sent, ...messages];
  }

  /** Adds an answer without calls. */
  addAnswer(answer: ModelResult): void {
    this.addText(answer.text);
    this.ending = endingOf(answer) ?? this.ending;
  }

  /** Not sent again: a call that repeats a blank answer would end with it. */
  addText(text: string): void {
    if (text !== '') this.added.push({ role: 'assistant', content: text, ...this.takeThought() });
  }

  /** Returns the reasoning of the last call for the message that follows it. */
  takeThought(): { readonly thought?: Thought } {
    const { thought } = this;
    this.thought = undefined;
    return thought === undefined ? {} : { thought };
  }

  /** Adds what arrived since the last call: results of background tasks, and steering messages. */
  takeMessages(): void {
    const { background, conversationRef } = this.#input;
    const announcement = background === undefined ? undefined : this.#background?.take(conversationRef);
    if (announcement !== undefined) {
      this.add({ role: 'user', content: announcement.text });
      (this.reported ??= []).push(...announcement.taskIds);
    }
    this.takeSteering();
  }

  /** Adds steering messages, after `answer` when it would have ended the turn; returns whether there were any. */
  takeSteering(answer?: ModelMessage): boolean {
    const steered = this.#input.steering?.take();
    if (steered === undefined) return false;
    const message: ModelMessage = { role: 'user', content: steered.text };
    if (answer !== undefined) this.sent = [...this.sent, answer];
    this.add(message);
    this.#steers ??= { ids: [], messages: [] };
    this.#steers.ids.push(...steered.ids);
    this.#steers.messages.push(...(answer === undefined ? [] : [answer]), message);
    return true;
  }

  /** Returns the steering messages since the last finished step, which are stored with the next one. */
  takeSteers(): { readonly ids: readonly string[]; readonly messages: readonly ModelMessage[] } | undefined {
    const steers = this.#steers;
    this.#steers = undefined;
    return steers;
  }

  /** Charges a model call. */
  record(call: CallRecord): void {
    this.calls.push(call);
    this.usedTokens += call.usage.input + call.usage.output;
  }

  use(): TurnUse {
    const costNano = this.calls.reduce((sum, { cost }) => sum + (cost === null ? 0 : totalCost(cost)), 0);
    return { steps: this.steps, tokens: this.usedTokens, costNano };
  }

  hasText(): boolean {
    return this.added.some(isText);
  }

  toResult(end: TurnEnd): TurnResult {
    return {
      finishReason: end.finishReason,
      text: this.added
        .filter(isText)
        .map(({ content }) => content)
        .join(betweenTexts),
      messages: this.added,
      calls: this.calls,
      steps: this.steps,
      ...(this.leftOut > 0 && { leftOut: this.leftOut }),
      model: this.model,
      tainted: isTainted(this.#input.messages, this.#input) || isTainted(this.added, this.#input),
      ...(this.waiting !== undefined && { waiting: this.waiting }),
      ...(this.refused > 0 && { effectsRefused: this.refused }),
      ...(this.reported !== undefined && { reported: this.reported }),
      ...(this.clientCalls !== undefined && { clientCalls: this.clientCalls }),
      ...(this.thinking.length > 0 && { thinking: this.thinking }),
      ...(this.ending !== undefined && { ending: this.ending }),
      ...(end.failure !== undefined && { failure: end.failure }),
    };
  }
}

function endingOf({ finish, stopSequence }: ModelResult): AnswerEnding | undefined {
  if (finish === 'content_filter') return { by: 'content_filter' };
  return stopSequence === undefined ? undefined : { by: 'stop_sequence', sequence: stopSequence };
}

function isText({ role, content }: ModelMessage): boolean {
  return role === 'assistant' && content !== '';
}
