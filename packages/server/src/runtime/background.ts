import type { TurnOrigin } from '@gatehouse/contract';
import type { ToolCall } from '../llm/model.ts';
import type { Tool } from './tool.ts';
import type { TurnInput } from './turn.ts';

export type TaskOutcome = 'ok' | 'error' | 'timeout' | 'cancelled';

/** A call that goes on while its turn does not wait for it. */
export interface NewTask {
  readonly input: TurnInput;
  readonly call: ToolCall;
  readonly tool: Tool;
  /** One line for people. */
  readonly description: string;
  readonly startedAtMs: number;
  /** Asked once, by whoever takes the task; never rejects. `content` is ready to be stored and shown to a model: bounded, and fenced where it is from outside. */
  readonly end: () => Promise<{ readonly outcome: TaskOutcome; readonly content: string }>;
  /** Ends the call as cancelled. */
  readonly stop: (why: string) => void;
}

/** Results of tasks as one message of the conversation. */
export interface TaskNews {
  readonly taskIds: readonly string[];
  readonly text: string;
}

/** What the loop asks of whoever keeps tasks; all but `stored` is answered at once. */
export interface BackgroundTasks {
  /** Undefined when no place is free: the call stays in its turn. `stored` rejects when the task could not be recorded. */
  begin(task: NewTask): { readonly taskId: string; readonly stored: Promise<void> } | undefined;
  /** Results of the conversation that nobody was told; whoever takes them tells them. Undefined when there are none. */
  take(conversationRef: string): TaskNews | undefined;
  /** Whether a task that the turn began is still to be told. */
  isPending(turn: Pick<TurnInput, 'turnId' | 'conversationRef'>): boolean;
}

/** Of a turn whose calls may go on in the background: its messages are kept, so that a result has somewhere to come back to. */
export interface BackgroundRights {
  /** How many background turns, one begun by the task of the other, came before this one. */
  readonly chain: number;
  /** Of a background turn: the origin of the turn that began its task, by whose rights it acts. */
  readonly begunBy?: TurnOrigin;
  /** Of a background turn: the root of that turn, which is its own too. */
  readonly rootRunId?: string;
}
