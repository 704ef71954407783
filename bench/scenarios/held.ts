import { setTimeout as sleep } from 'node:timers/promises';
import { startHolder } from '../lib/holder.ts';
import type { Measures } from '../lib/measures.ts';
import { rssMb } from '../lib/proc.ts';
import type { Subject, Target } from '../lib/targets.ts';

export const heldKinds = ['sse', 'ws'] as const;
export type HeldKind = (typeof heldKinds)[number];

/** The raw request that opens an event stream or a WebSocket. */
export function openingRequest(kind: HeldKind, { url, headers }: Pick<Target, 'url' | 'headers'>, query = ''): string {
  const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'Z2F0ZWhvdXNlLWJlbmNoIQ==' };
  const lines = Object.entries({ host: new URL(url).host, ...headers, ...(kind === 'ws' && upgrade) }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return `GET ${kind === 'ws' ? '/ws' : '/api/events'}${query} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

/**
 * Resident memory that an idle connection takes, in MB per 1000: the mean of two steps, on a fresh server that already
 * holds half a step. Garbage is collected before each reading.
 */
export async function runHeld(
  options: { readonly subject: Subject; readonly kind: HeldKind; readonly rounds: number; readonly step: number; readonly settleMs: number },
  measures: Measures,
): Promise<void> {
  const { subject, kind, rounds, step, settleMs } = options;
  for (let round = 0; round < rounds; round += 1) {
    const running = await subject.start({ probe: true });
    const { url, headers } = subject.target(running);
    const request = openingRequest(kind, { url, headers });
    const holder = startHolder();
    try {
      const held = { url, request, mark: 'event: ' };
      await holder.hold({ ...held, count: step / 2 });
      const rss: number[] = [];
      for (const more of [0, step, step]) {
        if (more > 0) await holder.hold({ ...held, count: more });
        await sleep(settleMs);
        await running.ask('collect');
        rss.push(rssMb(running.pid));
      }
      const { open } = await holder.state();
      const asked = 2.5 * step;
      if (open !== asked) throw new Error(`${subject.name}: ${open} of ${asked} idle ${kind} connections are open`);
      const [first = NaN, , last = NaN] = rss;
      measures.add(`idle ${kind} mb/1000`, ((last - first) / (2 * step)) * 1000);
    } finally {
      await holder.stop();
      await running.stop();
    }
  }
}
