import type { Traced, TracedBy } from './traced.ts';

/** What other features use of the messages of chat platforms. */
export interface MessagesApi {
  /** Finds the conversations of a chat, and the turns of a message, by the ids of the platform or ours. */
  tracedBy(named: TracedBy): Promise<Traced>;
}
