import type { ModelMessage, ToolCall } from '../../../../llm/model.ts';
import type { LeftTurn } from './ledger-store.ts';

/** Processes that may end over one turn; the next one gives it up. */
export const maxResumes = 3;

/** Why a turn is not gone on with, as its conversation is told. */
export interface LeftEnd {
  readonly kind: 'unknown' | 'too_many_resumes';
  readonly message: string;
  /** Whose effect nobody knows. */
  readonly toolName?: string;
  /** All that the turn did, each call with a result, and the note. */
  readonly messages: readonly ModelMessage[];
}

const notRun = 'Not run: the daemon was stopped before';
const unknown = 'Unknown: the daemon was stopped while this ran, and nobody knows whether it took effect';

/** How a turn ends that an earlier process left; undefined when it can be gone on with. */
export function endOf(left: LeftTurn): LeftEnd | undefined {
  const open = left.intents.find(({ result }) => result === undefined);
  if (open === undefined && left.resumes <= maxResumes) return undefined;
  const why =
    open === undefined
      ? `[Given up: the daemon was stopped ${left.resumes} times over this task, which may be its cause. What is above was done.]`
      : `[Interrupted: the daemon was stopped while the tool "${open.toolName}" ran, and nobody knows whether it took effect. Nothing was repeated; look at what it changes before you do it again.]`;
  const messages: ModelMessage[] = left.steps.flatMap((step) => (step.finished ? step.messages : withResults(step.messages, left)));
  messages.push({ role: 'assistant', content: why });
  return {
    kind: open === undefined ? 'too_many_resumes' : 'unknown',
    message: why,
    messages,
    ...(open !== undefined && { toolName: open.toolName }),
  };
}

/** Providers refuse a conversation in which a call has no result. */
function withResults([answer]: readonly ModelMessage[], { intents }: LeftTurn): readonly ModelMessage[] {
  if (answer?.role !== 'assistant') return [];
  return [answer, ...(answer.toolCalls ?? []).map((call) => resultFor(call, intents))];
}

function resultFor({ id, name }: ToolCall, intents: LeftTurn['intents']): ModelMessage {
  const intent = intents.find(({ callId }) => callId === id);
  if (intent?.result !== undefined) return intent.result;
  return { role: 'tool', content: intent === undefined ? notRun : unknown, toolCallId: id, toolName: name, isError: true };
}
