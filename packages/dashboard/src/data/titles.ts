import type { Client } from '@gatehouse/client';
import { createStore, type Store } from './store.ts';

const storageKey = 'gatehouse.titles';
const maxTitles = 500;
/** A batch takes so many. Each counts against the request limit of the token, so only what is on the screen is asked for, and once per tab. */
const batchSize = 40;
const maxLength = 90;

/** First words of conversations, by reference. */
export type Titles = ReadonlyMap<string, string>;

export interface TitleStore {
  readonly titles: Store<Titles>;
  /** Asks for those of `refs` that are not known; a conversation's first words never change. */
  want(refs: readonly string[]): Promise<void>;
  put(ref: string, text: string): void;
  /** Keeps nothing from then on: an answer may come after its session ended. */
  close(): void;
}

export function createTitles(client: Client): TitleStore {
  const titles = createStore<Titles>(restore());
  const asked = new Set<string>();
  let closed = false;

  function putAll(found: readonly (readonly [string, string])[]): void {
    const next = new Map([...titles.get(), ...found]);
    for (const ref of next.keys()) {
      if (next.size <= maxTitles) break;
      next.delete(ref);
    }
    titles.set(next);
    if (closed) return;
    sessionStorage.setItem(storageKey, JSON.stringify([...next]));
  }

  return {
    titles,
    async want(refs) {
      const unknown = refs.filter((ref) => !titles.get().has(ref) && !asked.has(ref)).slice(0, batchSize);
      if (unknown.length === 0) return;
      for (const ref of unknown) asked.add(ref);
      const calls = unknown.map((ref) => ({ method: 'session.history', params: { conversationRef: ref, limit: 1 } }) as const);
      const outcomes = await client.batch(calls).catch((error: unknown) => {
        for (const ref of unknown) asked.delete(ref);
        throw error;
      });
      putAll(
        outcomes.flatMap((outcome, index) => {
          const ref = unknown[index];
          const first = outcome.ok ? outcome.result.messages[0] : undefined;
          return ref === undefined || first === undefined ? [] : [[ref, titleOf(first.content)] as const];
        }),
      );
    },
    put(ref, text) {
      if (!titles.get().has(ref)) putAll([[ref, titleOf(text)]]);
    },
    close: () => void (closed = true),
  };
}

export function titleOf(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, ' ');
  return line.length > maxLength ? `${line.slice(0, maxLength - 1)}…` : line;
}

function restore(): Titles {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(storageKey) ?? '[]');
    return new Map(Array.isArray(stored) ? stored.filter(isTitle) : []);
  } catch {
    return new Map();
  }
}

function isTitle(value: unknown): value is [string, string] {
  return Array.isArray(value) && typeof value[0] === 'string' && typeof value[1] === 'string';
}
