import type { MediaInfo, MessageAttachment } from '@gatehouse/contract';
import type { Adapter, Download, ReceivedAttachment } from '../../../channels/port.ts';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { TurnsApi } from '../../conversations/turns/api.ts';
import type { MediaLibrary } from '../../environment/media/api.ts';
import type { Voice } from './voice.ts';

export interface FetchFilesDeps {
  readonly voice: Pick<Voice, 'hear'>;
  readonly media: Pick<MediaLibrary, 'save' | 'maxFileBytes'>;
  readonly turns: Pick<TurnsApi, 'attach'>;
}

/** Files of a message, as far as its agent takes them. */
export interface FetchedFiles {
  readonly attachments: readonly MessageAttachment[];
  /** A line for each file that the agent does not get. */
  readonly notes: readonly string[];
  /** What the sender said in voice notes. */
  readonly said: readonly string[];
  /** What is said in other recordings: the words of anybody. */
  readonly recordings: readonly string[];
}

/** A file could not be fetched now; the message is tried again. */
export class FileUnavailable extends Error {}

/**
 * Fetches the files of a message into the media store, where they belong to its sender. What cannot be had becomes a note, with `isLastTry` also
 * what the platform does not hand out now; otherwise that throws `FileUnavailable`.
 */
export async function fetchFiles(
  files: readonly ReceivedAttachment[],
  {
    adapter,
    agentId,
    conversationRef,
    isLastTry,
    call,
  }: {
    readonly adapter: Adapter | undefined;
    readonly agentId: string;
    readonly conversationRef: string;
    readonly isLastTry: boolean;
    readonly call: CallContext;
  },
  { media, turns, voice }: FetchFilesDeps,
): Promise<FetchedFiles> {
  const notes: string[] = [];
  const said: string[] = [];
  const recordings: string[] = [];
  const names = new Map<string, string>();
  for (const file of files) {
    const saved = await fetchFile(file, adapter, media, call);
    if ('mediaId' in saved) {
      const heard = await voice.hear(saved, { agentId, conversationRef, call });
      if (heard === undefined) names.set(saved.mediaId, file.name);
      else if ('why' in heard) notes.push(`[The recording "${file.name}" (${saved.mediaId}) was not understood: ${heard.why}]`);
      else (file.isVoice === true ? said : recordings).push(heard.text);
    } else if (saved.isFinal || isLastTry) notes.push(noteOf(file.name, saved.text));
    else throw new FileUnavailable(saved.text);
  }
  if (names.size === 0) return { attachments: [], notes, said, recordings };
  const { attachments, refused } = await turns.attach(agentId, [...names.keys()], call);
  for (const { mediaId, reason } of refused) notes.push(noteOf(names.get(mediaId) ?? mediaId, reason));
  return { attachments, notes, said, recordings };
}

type Saved = Pick<MediaInfo, 'mediaId' | 'contentType'> | { readonly text: string; readonly isFinal: boolean };

async function fetchFile(file: ReceivedAttachment, adapter: Adapter | undefined, media: FetchFilesDeps['media'], call: CallContext): Promise<Saved> {
  const { ref, name, mediaType, bytes = 0 } = file;
  if (bytes > media.maxFileBytes) return { text: `it is larger than ${media.maxFileBytes} bytes`, isFinal: true };
  const download: Download = (await adapter?.download?.(ref, { signal: call.signal })) ?? { is: 'unavailable', text: 'the channel is not connected' };
  if (download.is !== 'opened') return { text: download.text, isFinal: download.is === 'gone' };
  try {
    const { mediaId, contentType } = await media.save({ body: download.stream, contentType: mediaType, fileName: name }, call);
    return { mediaId, contentType };
  } catch (error) {
    if (!(error instanceof AppError)) return { text: 'the connection ended', isFinal: false };
    return { text: error.message, isFinal: error.code === 'payload_too_large' || error.code === 'invalid_params' };
  }
}

const noteOf = (name: string, why: string): string => `[The file "${name}" is not shown: ${why}]`;
