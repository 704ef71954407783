import { EventGap, type EventKind, events } from '@gatehouse/contract';
import * as z from 'zod';
import { parseJson } from '../../../kernel/json.ts';
import type { LoggedEvent } from './api.ts';
import type { BatchText } from './store.ts';

export type KeptEvent = LoggedEvent & { readonly id: number };
export type LogEntry = KeptEvent | EventGap;

export function isGap(entry: LoggedEvent | EventGap): entry is EventGap {
  return 'reason' in entry;
}

/** The id that a reader stands at behind an entry. */
export function endOf(entry: LogEntry): number {
  return isGap(entry) ? entry.to : entry.id;
}

/** Who may see an event is told by its head, so that those who may not cost no look at its payload. */
const Head = z.union([
  z.tuple([z.int(), z.string(), z.int(), z.string().nullable(), z.string().nullable()]),
  z.tuple([z.int(), z.literal(0), z.int(), EventGap.shape.reason]),
]);
const Heads = z.array(Head);

/** What a row holds of its entries. */
export function encodeEntries(entries: readonly LogEntry[]): BatchText {
  const heads: z.input<typeof Heads> = entries.map((entry) =>
    isGap(entry) ? [entry.to, 0, entry.from, entry.reason] : [entry.id, entry.kind, entry.atMs, entry.owner ?? null, entry.agentId ?? null],
  );
  // JSON has no line breaks of its own.
  return { heads: JSON.stringify(heads), bodies: entries.map((entry) => (isGap(entry) ? '' : (entry.json ?? ''))).join('\n') };
}

/** The entries of a row; kinds that this program does not know are passed over. */
export function decodeEntries({ heads, bodies }: BatchText): LogEntry[] {
  const lines = bodies.split('\n');
  return Heads.parse(parseJson(heads)).flatMap((head, index): LogEntry[] => {
    if (head[1] === 0) return [{ from: head[2], to: head[0], reason: head[3] }];
    const [id, kind, atMs, owner, agentId] = head;
    if (!isKnown(kind)) return [];
    return [{ id, kind, atMs, owner: owner ?? undefined, agentId: agentId ?? undefined, json: lines[index] || undefined }];
  });
}

function isKnown(kind: string): kind is EventKind {
  return Object.hasOwn(events, kind);
}
