import type { TaskOutcome } from '../../../runtime/background.ts';
import { announcementOf } from './announcement.ts';
import type { TaskRow } from './store.ts';

/** A task that runs, or whose result has not been reported. */
export class LiveTask {
  row: TaskRow;
  /** `taken`: received by a turn that is not committed. */
  state: 'running' | 'ended' | 'taken';
  /** An earlier turn received the result and died before it ended. */
  readonly wasInterrupted: boolean;
  isCancelled = false;
  readonly stop: (why: string) => void;

  constructor(row: TaskRow, stop: (why: string) => void) {
    this.row = row;
    this.state = row.state === 'running' ? 'running' : 'ended';
    this.wasInterrupted = row.state === 'telling';
    this.stop = stop;
  }

  /** Restores a task of an earlier process, of which nothing runs any more. */
  static recovered(row: TaskRow): LiveTask {
    return new LiveTask(row, () => {});
  }

  end(outcome: TaskOutcome, content: string, endedAtMs: number): void {
    this.row = { ...this.row, outcome, content, endedAtMs };
    this.state = 'ended';
  }

  /** Marks the result as taken by a turn; returns the message that brings it into the conversation. */
  take(): string {
    this.state = 'taken';
    return announcementOf(this.row, this.wasInterrupted);
  }
}

/** Returns the root run of the turn that started a task. */
export const rootOf = ({ rootRunId, turnId }: TaskRow): string => rootRunId ?? `root-turn-${turnId}`;

const none: readonly LiveTask[] = [];

/** Indexes live tasks by id and by conversation; callers of `add` enforce the limits. */
export class Tasks {
  readonly #byId = new Map<string, LiveTask>();
  readonly #byConversation = new Map<string, LiveTask[]>();

  get size(): number {
    return this.#byId.size;
  }

  add(live: LiveTask): void {
    const { id, conversationRef } = live.row;
    this.#byId.set(id, live);
    const others = this.#byConversation.get(conversationRef);
    if (others === undefined) this.#byConversation.set(conversationRef, [live]);
    else others.push(live);
  }

  remove(live: LiveTask): void {
    const { id, conversationRef } = live.row;
    if (!this.#byId.delete(id)) return;
    const left = this.inConversation(conversationRef).filter((other) => other !== live);
    if (left.length === 0) this.#byConversation.delete(conversationRef);
    else this.#byConversation.set(conversationRef, left);
  }

  removeId(id: string): void {
    const live = this.#byId.get(id);
    if (live !== undefined) this.remove(live);
  }

  has = (live: LiveTask): boolean => this.#byId.has(live.row.id);
  find = (id: string): LiveTask | undefined => this.#byId.get(id);
  all = (): readonly LiveTask[] => [...this.#byId.values()];
  conversations = (): readonly string[] => [...this.#byConversation.keys()];
  inConversation = (ref: string): readonly LiveTask[] => this.#byConversation.get(ref) ?? none;

  /** Returns the unreported results, oldest first. */
  ended(ref: string): readonly LiveTask[] {
    return this.inConversation(ref)
      .filter(({ state }) => state === 'ended')
      .toSorted((a, b) => (a.row.endedAtMs ?? 0) - (b.row.endedAtMs ?? 0));
  }

  ofAgent(agentId: string): { readonly running: number; readonly all: number } {
    const mine = this.all().filter(({ row }) => row.agentId === agentId);
    return { running: mine.filter(({ state }) => state === 'running').length, all: mine.length };
  }
}
