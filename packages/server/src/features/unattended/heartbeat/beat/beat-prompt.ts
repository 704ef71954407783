import type { QueuedEvent } from '../store.ts';
import { acknowledgement } from './answer.ts';

const builtIn = `This is a heartbeat: nobody is writing to you. Go through your checklist and what has happened, and do what they ask of you now. Do not make up tasks of your own and do not repeat what is done. When nobody needs to be told of anything, answer ${acknowledgement} alone. Otherwise answer with what the person you work for should know, and without that word.`;

export interface BeatMessage {
  /** The operator's own words, and the checklist of the workspace. */
  readonly message: string;
  /** What has happened, in the words of others: to be fenced. */
  readonly fenced?: { readonly text: string; readonly source: string; readonly clean: boolean };
}

/** What the agent is told in a beat. */
export function beatMessage(of: {
  readonly prompt: string | undefined;
  readonly checklist: string | undefined;
  readonly events: readonly QueuedEvent[];
  readonly nowMs: number;
}): BeatMessage {
  const { prompt, checklist, events, nowMs } = of;
  const parts = [
    prompt === undefined ? builtIn : `${prompt}\n\nWhen nobody needs to be told of anything, answer ${acknowledgement} alone.`,
    `It is ${atMinute(nowMs)} (UTC).`,
  ];
  if (checklist !== undefined) parts.push(`# Your checklist (HEARTBEAT.md)\n${checklist}`);
  if (events.length > 0) parts.push('# What has happened since the last beat\nIt follows.');
  return {
    message: parts.join('\n\n'),
    ...(events.length > 0 && {
      fenced: {
        text: events.map(lineOf).join('\n\n'),
        source: [...new Set(events.map(({ source }) => source))].join(', '),
        clean: events.every(({ tainted }) => tainted === 0),
      },
    }),
  };
}

const lineOf = ({ createdAtMs, source, repeats, text }: QueuedEvent) =>
  `[${atMinute(createdAtMs)}, ${source}${repeats > 1 ? `, ${repeats} times` : ''}] ${text}`;

const atMinute = (ms: number) => Temporal.Instant.fromEpochMilliseconds(ms).toString({ smallestUnit: 'minute' });
