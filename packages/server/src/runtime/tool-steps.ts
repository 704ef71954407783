import { newId } from '../kernel/ids.ts';
import type { ModelMessage, ModelResult, ToolCall, ToolSpec } from '../llm/model.ts';
import { callTools, type CallToolsDeps, type ToolStep } from './call-tools.ts';
import { callIdsOf, divideCalls, offeredTools } from './client-tools.ts';
import { createLoopDetector } from './loop-detection.ts';
import { type StepLedger, stepLedger } from './step-ledger.ts';
import { toolSpec } from './tool-spec.ts';
import type { Thought } from './thought.ts';
import type { Tool } from './tool.ts';
import { type TurnEnd, turnEnds } from './turn-end.ts';
import type { RunningTurn, TurnProgress } from './turn-progress.ts';
import type { LedgerStep, TurnInput } from './turn.ts';
import type { TurnStop } from './turn-stop.ts';

const loopNote =
  '[You made this call before, with the same result. Repeating it will not change anything: take another way, or answer with what you have.]';

/** The tool calls of one turn, answer by answer: runs them, stores them in the turn's ledger, and detects loops. */
export class ToolSteps {
  readonly #deps: CallToolsDeps;
  readonly #input: TurnInput;
  readonly #progress: TurnProgress;
  readonly #stop: TurnStop;
  readonly #clientTools: readonly ToolSpec[];
  readonly #clientNames: ReadonlySet<string>;
  readonly #loops = createLoopDetector();
  #tools: readonly Tool[];
  #specs: readonly ToolSpec[];

  constructor(deps: CallToolsDeps, { input, progress, stop }: RunningTurn) {
    this.#deps = deps;
    this.#input = input;
    this.#progress = progress;
    this.#stop = stop;
    this.#clientTools = input.clientTools ?? [];
    this.#clientNames = new Set(this.#clientTools.map((tool) => tool.name));
    this.#tools = offeredTools(input.tools, this.#clientTools, input.options?.toolChoice);
    this.#specs = this.#allSpecs();
  }

  /** What the model can call, including the tools of the caller. */
  get specs(): readonly ToolSpec[] {
    return this.#specs;
  }

  /** Runs the remaining calls of a step that an earlier run of the turn has begun; returns the end of the turn when a call waits for a person. */
  async finishBegunStep(): Promise<TurnEnd | undefined> {
    const begun = this.#input.ledger?.past?.begun;
    if (begun === undefined) return undefined;
    const { text, calls, results: known } = begun;
    const step = this.#openStep(text, calls, known);
    const results = await callTools(this.#deps, this.#toolStep(this.#input, step), calls);
    if (await this.#pauseForApproval(step, results)) return turnEnds.stop;
    const messages: readonly ModelMessage[] = [{ role: 'assistant', content: text, toolCalls: calls }, ...results];
    this.#progress.add(...messages);
    await this.#store(step, messages);
    return undefined;
  }

  /** Runs the calls of an answer, and adds both to the turn; returns the end of the turn when it ends with them. */
  async run(answer: ModelResult): Promise<TurnEnd | undefined> {
    const { added } = this.#progress;
    // A caller identifies its results by their ids over the whole conversation that it keeps.
    const taken = callIdsOf(this.#clientNames.size === 0 ? added : [...this.#input.messages, ...added]);
    const calls = withUniqueIds(answer.toolCalls, taken);
    const { own, client } = divideCalls(calls, this.#clientNames);
    const step = this.#openStep(answer.text, calls, []);
    const loaded = new Set<Tool>();
    const input = this.#tools === this.#input.tools ? this.#input : { ...this.#input, tools: this.#tools };
    const results = await callTools(this.#deps, { ...this.#toolStep(input, step), loaded }, own);
    if (await this.#pauseForApproval(step, results)) return turnEnds.stop;
    this.#offer(loaded);
    if (client.length > 0) {
      this.#progress.add(called(answer, calls, this.#progress.takeThought()), ...results);
      if (this.#stop.cause !== undefined) return turnEnds[this.#stop.cause];
      this.#progress.clientCalls = client;
      return turnEnds.stop;
    }
    const verdict = this.#loops.observe({ text: answer.text.trim(), calls, results });
    if (verdict === 'warn') annotate(results);
    const messages: readonly ModelMessage[] = [called(answer, calls, this.#progress.takeThought()), ...results];
    this.#progress.add(...messages);
    if (verdict === 'loop') return turnEnds.contextLoop;
    await this.#store(step, messages);
    return undefined;
  }

  #toolStep(input: TurnInput, step: OpenStep | undefined): ToolStep {
    const progress = this.#progress;
    return {
      input,
      signal: this.#stop.signal,
      beforeOnce: async () => input.beforeOnce?.(progress.reported ?? []),
      added: progress.added,
      used: () => progress.use(),
      onUnapproved: () => {
        progress.refused += 1;
      },
      ...(step !== undefined && { ledger: step.ledger }),
    };
  }

  /** Returns the step as the ledger stores it; `known`: results of calls that ran before a crash. */
  #openStep(text: string, calls: readonly ToolCall[], known: readonly ModelMessage[]): OpenStep | undefined {
    const { ledger } = this.#input;
    if (ledger === undefined) return undefined;
    const { steps: number, calls: records, refused } = this.#progress;
    const entry = { number, text, calls, records, refused };
    return { entry, ledger: stepLedger(ledger, entry, known) };
  }

  /** Stores a step with a call that needs a person's decision; returns false when there is none. A turn that was stopped is not continued. */
  async #pauseForApproval(step: OpenStep | undefined, results: readonly ModelMessage[]): Promise<boolean> {
    if (step?.ledger.waitsFor === undefined || this.#stop.cause !== undefined) return false;
    const { waitsFor, unmade } = step.ledger;
    const made = results.filter((message) => message.role !== 'tool' || !unmade.has(message.toolCallId));
    await this.#input.ledger?.pause({ ...step.entry, refused: this.#progress.refused }, made);
    this.#progress.waiting = waitsFor;
    return true;
  }

  /** Stores a finished step, with the steering messages before it, unless the turn was stopped: then nobody knows what its calls did. */
  async #store(step: OpenStep | undefined, messages: readonly ModelMessage[]): Promise<void> {
    const { ledger } = this.#input;
    if (ledger === undefined || step === undefined || this.#stop.cause !== undefined) return;
    const steers = this.#progress.takeSteers();
    const entry = { ...step.entry, refused: this.#progress.refused, ...(steers !== undefined && { steers: steers.ids }) };
    const stored = steers === undefined ? messages : [...steers.messages, ...messages];
    await ledger.finish(entry, stored);
  }

  /** Offers tools that a call has loaded from the next model call on. */
  #offer(loaded: ReadonlySet<Tool>): void {
    const more = loaded.size === 0 ? [] : [...loaded].filter((tool) => !this.#tools.includes(tool) && !this.#clientNames.has(tool.name));
    if (more.length === 0) return;
    this.#tools = [...this.#tools, ...more];
    this.#specs = this.#allSpecs();
  }

  #allSpecs(): readonly ToolSpec[] {
    return [...this.#tools.map(toolSpec), ...this.#clientTools];
  }
}

/** A step of a turn that another process can continue. */
interface OpenStep {
  readonly entry: LedgerStep;
  readonly ledger: StepLedger;
}

/** Builds the message of an answer with its calls. Its reasoning is sent back to the provider with them. */
function called({ text, thinking }: ModelResult, toolCalls: readonly ToolCall[], thought: { readonly thought?: Thought }): ModelMessage {
  return { role: 'assistant', content: text, toolCalls, ...(thinking !== undefined && { thinking }), ...thought };
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
