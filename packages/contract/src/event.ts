import type * as z from 'zod';
import { once } from './once.ts';

/**
 * Audience of an event on a stream: `owner` = the principal whose conversation it is about, and admins;
 * `system` = every token that may open the stream (so it carries no content); `admin` = admins only.
 */
export type EventVisibility = 'owner' | 'system' | 'admin';

export interface EventDeclaration<Payload extends z.ZodType = z.ZodType> {
  readonly category: string;
  readonly visibility: EventVisibility;
  readonly summary: string;
  readonly payload: Payload;
  /**
   * Progress of something still running: sent only to listeners, without an id, not kept and never replayed.
   */
  readonly transient?: true;
  /** Sent only to streams that name the kind in `kinds`. */
  readonly onRequest?: true;
}

/** Declares an event; builds the schema of its payload when it is first read, which only documents and tests do. */
export function event<Payload extends z.ZodType>(
  declaration: Omit<EventDeclaration, 'payload'> & { readonly payload: () => Payload },
): EventDeclaration<Payload> {
  const payload = once(declaration.payload);
  return {
    ...declaration,
    get payload() {
      return payload();
    },
  };
}
