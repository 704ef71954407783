import type { TurnOrigin } from '@gatehouse/contract';
import type { OperationCall } from '../kernel/db/operation.ts';
import type { ToolCall } from '../llm/model.ts';
import type { Tool } from './tool.ts';
import type { TurnInput } from './turn.ts';

export type TaskOutcome = 'ok' | 'error' | 'timeout' | 'cancelled';

/** A call that continues while its turn does not wait for it. */
export interface NewTask {
  readonly input: TurnInput;
  readonly call: ToolCall;
  readonly tool: Tool;
  /** One line for people. */
  readonly description: string;
  readonly startedAtMs: number;
  /** Called once by the owner of the task; never rejects. `content` is ready to be stored and shown to a model: bounded, and fenced if untrusted. */
  readonly end: () => Promise<{ readonly outcome: TaskOutcome; readonly content: string }>;
  /** Ends the call as cancelled. */
  readonly stop: (why: string) => void;
}

/** Results of tasks as one message of the conversation. */
export interface TaskAnnouncement {
  readonly taskIds: readonly string[];
  readonly text: string;
}

/** The loop's interface to background tasks; all but `stored` is synchronous. */
export interface BackgroundTasks {
  /** Returns undefined when no slot is free: the call stays in its turn. `stored` rejects when the task could not be recorded. */
  begin(task: NewTask): { readonly taskId: string; readonly stored: Promise<void> } | undefined;
  /** Takes the conversation's results that were not reported yet; the caller reports them. Undefined when there are none. */
  take(conversationRef: string): TaskAnnouncement | undefined;
  /** Whether a task that the turn started has not been reported yet. */
  isPending(turn: Pick<TurnInput, 'turnId' | 'conversationRef'>): boolean;
}

/** Settles the results that a turn has taken, together with the turn. */
export interface TakenResults {
  /** Returns the call that marks them in a transaction of the turn: `telling` when it opens, `told` when it ends. */
  markCall(taskIds: readonly string[], state: 'telling' | 'told'): OperationCall;
  /** Called when the turn is committed. */
  reported(taskIds: readonly string[]): void;
  /** Called when the turn was not committed, so that the results must be reported again. */
  release(taskIds: readonly string[]): void;
}

/** Set for a turn whose calls may continue in the background: its messages are stored, so that a result has a conversation to return to. */
export interface BackgroundAuthority {
  /** How many background turns, each started by the previous one's task, led to this turn. */
  readonly chain: number;
  /** The origin of the turn that started the task of a background turn, under whose authority it acts. */
  readonly begunBy?: TurnOrigin;
  /** The root of that turn, which is also the background turn's own. */
  readonly rootRunId?: string;
}
