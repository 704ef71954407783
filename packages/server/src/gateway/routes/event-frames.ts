import type { EventGap } from '@gatehouse/contract';
import type { LoggedEvent } from '../../features/operations/events/api.ts';

/** What a reader that lost its connection waits before it comes back. */
const retryMs = 3_000;

/** The first bytes of a stream. The id without data makes no event, but a reader that comes back before the first one says where it stood. */
export function openingFrame(id: number | undefined): string {
  return `retry: ${retryMs}\n${id === undefined ? '' : `id: ${id}\n`}\n`;
}

/** Without an id for what is transient. */
export function eventFrame({ id, kind, json = 'null' }: LoggedEvent): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${kind}\ndata: ${json}\n\n`;
}

export function gapFrame(gap: EventGap): string {
  return `id: ${gap.to}\nevent: gap\ndata: ${JSON.stringify(gap)}\n\n`;
}

export function pingFrame(atMs: number): string {
  return `event: ping\ndata: {"timestamp":${atMs}}\n\n`;
}

/** The last one before a stop. */
export const byeFrame = `retry: ${retryMs}\nevent: bye\ndata: {"reason":"shutdown"}\n\n`;
