import type { Result } from '@gatehouse/contract';
import { plainText, shorten } from './plain.ts';
import { renderTime } from './table.ts';

export type Waiting = NonNullable<Result<'cron.runs'>['runs'][number]['waiting']>;

const indent = '    ';
const waitsFor: Readonly<Record<Waiting['kind'], string>> = {
  provider: 'its model provider',
  approval: 'an approval',
  agent: 'its agent, which is suspended or busy',
  conversation: 'an earlier run of its conversation',
};

/** Returns why something failed, or what it waits for; undefined when neither is known. */
export function causeNote({ cause, waiting }: { readonly cause?: string | undefined; readonly waiting?: Waiting | undefined }): string | undefined {
  if (cause !== undefined) return `cause: ${cause}`;
  if (waiting === undefined) return undefined;
  const { kind, untilMs, retryAtMs, approvalId, cause: why } = waiting;
  const what = approvalId === undefined ? waitsFor[kind] : `${waitsFor[kind]} (${approvalId})`;
  const next = retryAtMs === undefined ? '' : `, next try at ${renderTime(retryAtMs)}`;
  return `waiting for ${what} until ${renderTime(untilMs)}${next}${why === undefined ? '' : `: ${why}`}`;
}

/** Returns a status with the calls that were not approved: "completed, 2 effects refused". */
export const withRefusals = (status: string, effectsRefused: number | undefined): string =>
  effectsRefused === undefined ? status : `${status}, ${effectsRefused} ${effectsRefused === 1 ? 'effect' : 'effects'} refused`;

/** Adds a line below each row of a table that has a note, shortened to `width`. */
export function withNotes(table: string, notes: readonly (string | undefined)[], width: number | undefined): string {
  const [head = '', ...rows] = table.split('\n');
  const lines = rows.flatMap((row, at) => {
    const note = notes[at];
    if (note === undefined) return [row];
    const line = `${indent}${plainText(note)}`;
    return [row, width === undefined ? line : shorten(line, width)];
  });
  return [head, ...lines].join('\n');
}
