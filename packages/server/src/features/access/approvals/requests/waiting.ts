import type { TurnOrigin } from '@gatehouse/contract';
import type { Clock } from '../../../../kernel/clock.ts';

/** How a request ended. */
export interface Outcome {
  readonly approved: boolean;
  readonly by: string;
  readonly reason: string | null;
}

/** A call held at the gate. */
export interface Waiter {
  /** Identifies the request that the call waits for. */
  joins(requestId: string): void;
  /** Never rejects; undefined when the signal was aborted. */
  readonly outcome: Promise<Outcome | undefined>;
  /** Stops waiting. */
  leave(): void;
}

interface Standing {
  requestId: string | undefined;
  /** Outcomes that arrived before the request was identified. */
  readonly early: Map<string, Outcome>;
  readonly end: (outcome: Outcome | undefined) => void;
}

/** Waiting calls, and the expiry of each request; in memory, next to the rows. */
export interface Waiting extends Disposable {
  /** Starts to wait before the row is written, so that no decision is missed. */
  wait(digest: string, signal: AbortSignal): Waiter;
  /** Watches a stored request until it is settled. */
  watch(request: Watched): void;
  settle(requestId: string, digest: string, outcome: Outcome): void;
  /** Whether any call with this digest waits. */
  isWaited(digest: string): boolean;
  isWatched(requestId: string): boolean;
  /** Watched requests of one conversation. */
  of(conversationRef: string): Watched[];
  all(): Watched[];
}

export interface Watched {
  readonly id: string;
  readonly digest: string;
  readonly agentId: string;
  readonly conversationRef: string;
  readonly origin: TurnOrigin;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  /** See `NewRequest`. */
  readonly turnJson: string | null;
  readonly chatJson: string | null;
}

export function createWaiting({ clock, onDue }: { readonly clock: Clock; readonly onDue: (request: Watched) => void }): Waiting {
  const standing = new Map<string, Set<Standing>>();
  const watched = new Map<string, { readonly request: Watched; readonly cancel: () => void }>();

  return {
    wait(digest, signal) {
      const { promise, resolve } = Promise.withResolvers<Outcome | undefined>();
      const all = standing.get(digest) ?? new Set<Standing>();
      standing.set(digest, all);
      const onAbort = () => self.end(undefined);
      const leave = () => {
        signal.removeEventListener('abort', onAbort);
        all.delete(self);
        if (all.size === 0 && standing.get(digest) === all) standing.delete(digest);
      };
      const self: Standing = {
        requestId: undefined,
        early: new Map(),
        end(outcome) {
          leave();
          resolve(outcome);
        },
      };
      all.add(self);
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
      return {
        outcome: promise,
        leave,
        joins(requestId) {
          self.requestId = requestId;
          const outcome = self.early.get(requestId);
          if (outcome !== undefined) self.end(outcome);
        },
      };
    },

    watch(request) {
      // Never longer than its timeout, even if the clock went back since.
      const leftMs = Math.min(request.expiresAtMs - request.createdAtMs, Math.max(0, request.expiresAtMs - clock.ageNow()));
      const cancel = clock.after(leftMs, () => onDue(request));
      watched.set(request.id, { request, cancel });
    },

    settle(requestId, digest, outcome) {
      watched.get(requestId)?.cancel();
      watched.delete(requestId);
      for (const one of standing.get(digest) ?? []) {
        if (one.requestId === requestId) one.end(outcome);
        else if (one.requestId === undefined) one.early.set(requestId, outcome);
      }
    },

    isWaited: (digest) => standing.has(digest),
    isWatched: (requestId) => watched.has(requestId),
    all: () => [...watched.values()].map(({ request }) => request),
    of: (conversationRef) => [...watched.values()].flatMap(({ request }) => (request.conversationRef === conversationRef ? [request] : [])),

    [Symbol.dispose]() {
      for (const { cancel } of watched.values()) cancel();
      watched.clear();
    },
  };
}
