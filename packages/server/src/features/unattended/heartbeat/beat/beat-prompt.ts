import type { QueuedEvent } from '../store.ts';
import { acknowledgement } from './answer.ts';

const builtIn = `This is a heartbeat: nobody is writing to you. Go through your checklist and the events, and do what they require now. Do not invent tasks and do not repeat finished work. When there is nothing to report, answer only ${acknowledgement}. Otherwise answer with what your user should know, without that token.`;

export interface BeatMessage {
  /** The operator's prompt, and the checklist of the workspace. */
  readonly message: string;
  /** Events with untrusted text, to be fenced. */
  readonly fenced?: { readonly text: string; readonly source: string; readonly clean: boolean };
}

/** Returns the message of a beat. */
export function beatMessage(of: {
  readonly prompt: string | undefined;
  readonly checklist: string | undefined;
  readonly events: readonly QueuedEvent[];
  readonly nowMs: number;
}): BeatMessage {
  const { prompt, checklist, events, nowMs } = of;
  const parts = [
    prompt === undefined ? builtIn : `${prompt}\n\nWhen there is nothing to report, answer only ${acknowledgement}.`,
    `It is ${atMinute(nowMs)} (UTC).`,
  ];
  if (checklist !== undefined) parts.push(`# Your checklist (HEARTBEAT.md)\n${checklist}`);
  if (events.length > 0) parts.push('# Events since the last beat\nThey follow.');
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
