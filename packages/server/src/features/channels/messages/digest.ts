import { isDeepStrictEqual } from 'node:util';
import { headOf } from '../../../kernel/cut-text.ts';
import type { MessageWork } from './run-message.ts';

/** A late message waits this long for others of its sender, which are answered together with it. */
export const gatherMs = 5_000;
/** Messages and characters of one digest; more begin another one. */
const maxLater = 100;
const maxCharacters = 65_536;
const maxFiles = 10;

/** Returns the work with a new text of one of its messages, that of the first one without `id`; undefined when that is not among them. */
export function withText(work: MessageWork, id: string | undefined, text: string): MessageWork | undefined {
  if (id === undefined) return { ...work, text };
  const { later = [] } = work;
  return later.some((one) => one.id === id) ? { ...work, later: later.map((one) => (one.id === id ? { ...one, text } : one)) } : undefined;
}

/** Whether everything that was to be answered was deleted. */
export const isEmpty = ({ text, later = [], files = [] }: MessageWork): boolean =>
  text === '' && later.every((one) => one.text === '') && (later.length === 0 || files.length === 0);

/** Returns the work of a digest with one message more; undefined when they are not answered together. */
export function withLater(
  digest: MessageWork,
  { id, sentAtMs, work }: { readonly id: string; readonly sentAtMs: number; readonly work: MessageWork },
): MessageWork | undefined {
  if (digest.sentAtMs === undefined || !isDeepStrictEqual(audienceOf(digest), audienceOf(work))) return undefined;
  const { later = [], files = [] } = digest;
  const length = digest.text.length + later.reduce((sum, { text }) => sum + text.length, 0);
  if (later.length >= maxLater || length + work.text.length > maxCharacters) return undefined;
  const all = [...files, ...(work.files ?? [])];
  const left = all.length - Math.max(maxFiles, files.length);
  const note = left > 0 ? `[${left} more files are not shown: at most ${maxFiles} of messages that are answered together are]` : '';
  const text = [work.text, note].filter((part) => part !== '').join('\n\n');
  return {
    ...digest,
    later: [...later, { id, sentAtMs, text }],
    ...(all.length > 0 && { files: all.slice(0, Math.max(maxFiles, files.length)) }),
  };
}

/** Who wrote a message, with which authority, and where its answer goes. */
const audienceOf = ({ target, to, senderId, trust, subject, isForwarded, isBot }: MessageWork) => ({
  ref: target.ref,
  to,
  senderId,
  trust,
  subject: subject ?? null,
  isForwarded: isForwarded === true,
  isBot: isBot === true,
});

/** Returns the texts of late messages as one, each with its time. */
export function digestText({ sentAtMs, text, later = [] }: Pick<MessageWork, 'sentAtMs' | 'text' | 'later'>): string {
  if (sentAtMs === undefined) return text;
  const all = [{ sentAtMs, text }, ...later].filter((one) => one.text !== '');
  const intro =
    all.length > 1
      ? `[${all.length} messages that come late. Answer them together, as things are now.]`
      : '[This message comes late. Answer it as things are now.]';
  return [intro, ...all.map((one) => `[${timeOf(one.sentAtMs)}] ${one.text}`)].join('\n\n');
}

/** A platform may name any time. */
function timeOf(atMs: number): string {
  const at = new Date(atMs);
  return Number.isNaN(at.getTime()) ? 'at an unknown time' : `${headOf(at.toISOString(), 16).replace('T', ' ')} UTC`;
}
