import { EventGap, type EventKind, events, once } from '@gatehouse/contract';
import * as z from 'zod';
import { parseJson } from '../../../kernel/json.ts';
import type { LoggedEvent } from './api.ts';
import type { BatchText } from './store.ts';

export type KeptEvent = LoggedEvent & { readonly id: number };
export type LogEntry = KeptEvent | EventGap;

export function isGap(entry: LoggedEvent | EventGap): entry is EventGap {
  return 'reason' in entry;
}

/** Returns a reader's position after an entry. */
export function endOf(entry: LogEntry): number {
  return isGap(entry) ? entry.to : entry.id;
}

/** Visibility is decided by the head, so that payloads of invisible events are not read. */
const Head = once(() =>
  z.union([
    z.tuple([z.int(), z.string(), z.int(), z.string().nullable(), z.string().nullable()]),
    z.tuple([z.int(), z.literal(0), z.int(), EventGap.shape.reason]),
  ]),
);
const Heads = once(() => z.array(Head()));

/** The entries as stored in a row. */
export function encodeEntries(entries: readonly LogEntry[]): BatchText {
  const heads: z.input<ReturnType<typeof Heads>> = entries.map((entry) =>
    isGap(entry) ? [entry.to, 0, entry.from, entry.reason] : [entry.id, entry.kind, entry.atMs, entry.owner ?? null, entry.agentId ?? null],
  );
  // JSON contains no line breaks.
  return { heads: JSON.stringify(heads), bodies: entries.map((entry) => (isGap(entry) ? '' : (entry.json ?? ''))).join('\n') };
}

/** Parses the entries of a row; skips kinds that this program does not know. */
export function decodeEntries({ heads, bodies }: BatchText): LogEntry[] {
  const lines = bodies.split('\n');
  return Heads()
    .parse(parseJson(heads))
    .flatMap((head, index): LogEntry[] => {
      if (head[1] === 0) return [{ from: head[2], to: head[0], reason: head[3] }];
      const [id, kind, atMs, owner, agentId] = head;
      if (!isKnown(kind)) return [];
      return [{ id, kind, atMs, owner: owner ?? undefined, agentId: agentId ?? undefined, json: lines[index] || undefined }];
    });
}

export function isKnown(kind: string): kind is EventKind {
  return Object.hasOwn(events, kind);
}
