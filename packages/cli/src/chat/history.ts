import { appendFileSync, chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Io } from '../io.ts';

/** Messages that were written in the terminal, for the arrow keys. */
export interface History {
  /** Oldest first. */
  readonly entries: readonly string[];
  add(text: string): void;
}

const maxEntries = 500;
const maxEntryLength = 10_000;

/**
 * Opens the history in the home folder of the user, readable by that user only; `GATEHOUSE_HISTORY` names another file, and
 * keeps none when it is empty. A history that cannot be read or written never disturbs the chat.
 */
export function openHistory(io: Pick<Io, 'env' | 'userHome'>): History {
  const file = io.env['GATEHOUSE_HISTORY'] ?? join(io.userHome, '.gatehouse_history');
  if (file === '') return { entries: [], add: () => undefined };
  const entries = readEntries(file);
  let last = entries.at(-1);
  return {
    entries,
    add(text) {
      if (text === last || text.length > maxEntryLength || text.startsWith(' ')) return;
      last = text;
      try {
        appendFileSync(file, `${JSON.stringify(text)}\n`, { mode: 0o600 });
        // An existing file keeps its mode.
        chmodSync(file, 0o600);
      } catch {
        // The chat does not depend on it.
      }
    },
  };
}

function readEntries(file: string): readonly string[] {
  try {
    const lines = readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '');
    const kept = lines.slice(-maxEntries);
    // Rewritten rarely: two chats may append at the same time.
    if (lines.length > 2 * maxEntries) writeFileSync(file, kept.map((line) => `${line}\n`).join(''), { mode: 0o600 });
    return kept.flatMap((line) => parseEntry(line) ?? []);
  } catch {
    return [];
  }
}

function parseEntry(line: string): string | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
