import * as z from 'zod';
import type { Scanner } from './canaries.ts';
import { printTo, sayTo, type Target } from './canary-transports.ts';

export interface DiagnosisPlaces {
  readonly home: string;
  readonly scan: Scanner['scan'];
  /** Expected events that did not happen. */
  readonly unprovoked: string[];
}

const Found = z.object({ rows: z.array(z.object({ traceId: z.string(), outcome: z.string().nullable(), toolCalls: z.number() })) });

/** Reads everything that explains what happened before: of every turn, as answers, and of some as the commands print it. */
export async function useDiagnosis(target: Target, { home, scan, unprovoked }: DiagnosisPlaces): Promise<void> {
  const say = sayTo(target, scan);
  const searches = [{ since: '1h' }, { since: '1h', where: 'error' }, { since: '1h', where: 'tools > 0', includeSynthetic: true }];
  const rows = [];
  for (const search of searches) {
    const answer = await say('obs.trace.search', { ...search, limit: 1000 });
    rows.push(...(Found.safeParse(parsed(answer)).data?.rows ?? []));
  }
  const traces = [...new Set(rows.map(({ traceId }) => traceId))];
  for (const traceId of traces) {
    for (const depth of ['summary', 'full']) await say('obs.explain', { traceId, depth, includeSynthetic: true });
    await say('obs.trace.get', { ref: traceId });
  }
  await say('obs.system.health', { sinceHours: 1 });
  await say('obs.diagnostics', { limit: 500 });
  const failed = rows.find(({ outcome }) => outcome === 'failed');
  const withTools = rows.find(({ toolCalls }) => toolCalls > 0);
  if (failed === undefined || withTools === undefined) unprovoked.push('no trace of a failed turn, or of one with tools');
  const print = printTo(target, home, scan, unprovoked);
  for (const one of [failed, withTools])
    if (one !== undefined)
      for (const words of [
        ['explain', one.traceId, '--full'],
        ['trace', one.traceId],
      ])
        print(words, { name: words[0] });
  // So many failures make the system degraded.
  print(['health', '--last', '1'], { statuses: [0, 1] });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
