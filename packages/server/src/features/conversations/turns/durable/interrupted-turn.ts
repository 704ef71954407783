import type { ModelMessage, ToolCall } from '../../../../llm/model.ts';
import type { InterruptedTurn } from './ledger-store.ts';

/** Maximum processes that may die during one turn; the next one abandons it. */
export const maxResumes = 3;

/** The end of a turn that is not resumed, as shown in its conversation. */
export interface InterruptedEnd {
  readonly kind: 'unknown' | 'too_many_resumes';
  readonly message: string;
  /** The tool whose effect is unknown. */
  readonly toolName?: string;
  /** The turn's messages, with a result for each call, and the note. */
  readonly messages: readonly ModelMessage[];
}

const notRun = 'Not run: the turn was stopped before';
const unknown = 'Unknown: the turn was stopped while this was running; it may or may not have taken effect';

/** Returns how an interrupted turn ends; undefined when it can be resumed. */
export function endOf(left: InterruptedTurn): InterruptedEnd | undefined {
  const open = left.intents.find(({ result }) => result === undefined);
  if (open === undefined && left.resumes <= maxResumes) return undefined;
  const why =
    open === undefined
      ? `[Given up: the daemon was stopped ${left.resumes} times during this task, which may be the cause. The steps above were completed.]`
      : `[Interrupted: the daemon was stopped while the tool "${open.toolName}" was running; it may or may not have taken effect. Nothing was repeated; check its effects before you run it again.]`;
  return {
    kind: open === undefined ? 'too_many_resumes' : 'unknown',
    message: why,
    messages: [...doneBefore(left), { role: 'assistant', content: why }],
    ...(open !== undefined && { toolName: open.toolName }),
  };
}

/** Returns the messages of a turn up to where it was interrupted, with a result for each call. */
export function doneBefore(left: InterruptedTurn): readonly ModelMessage[] {
  return left.steps.flatMap((step) => (step.finished ? step.messages : withResults(step.messages, left)));
}

/** Adds a result to each call, because providers reject calls without one. */
function withResults([answer]: readonly ModelMessage[], { intents }: InterruptedTurn): readonly ModelMessage[] {
  if (answer?.role !== 'assistant') return [];
  return [answer, ...(answer.toolCalls ?? []).map((call) => resultFor(call, intents))];
}

function resultFor({ id, name }: ToolCall, intents: InterruptedTurn['intents']): ModelMessage {
  const intent = intents.find(({ callId }) => callId === id);
  if (intent?.result !== undefined) return intent.result;
  return { role: 'tool', content: intent === undefined ? notRun : unknown, toolCallId: id, toolName: name, isError: true };
}
