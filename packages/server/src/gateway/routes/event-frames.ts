import type { EventGap } from '@gatehouse/contract';
import type { LoggedEvent } from '../../features/operations/events/api.ts';

/** How long a disconnected reader waits before it reconnects. */
const retryMs = 3_000;

/** The first bytes of a stream. An id without data creates no event, but a reader that reconnects before the first event reports its position. */
export function openingFrame(id: number | undefined): string {
  return `retry: ${retryMs}\n${id === undefined ? '' : `id: ${id}\n`}\n`;
}

/** Formats an event; transient ones have no id. */
export function eventFrame({ id, kind, json = 'null' }: LoggedEvent): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${kind}\ndata: ${json}\n\n`;
}

export function gapFrame(gap: EventGap): string {
  return `id: ${gap.to}\nevent: gap\ndata: ${JSON.stringify(gap)}\n\n`;
}

export function pingFrame(atMs: number): string {
  return `event: ping\ndata: {"timestamp":${atMs}}\n\n`;
}

/** The last frame before a stop. */
export const byeFrame = `retry: ${retryMs}\nevent: bye\ndata: {"reason":"shutdown"}\n\n`;
