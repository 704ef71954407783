import type { SpeechFormat } from '@gatehouse/contract';

export type { SpeechFormat } from '@gatehouse/contract';

/** Type and extension of each format of speech. */
export const extensionsOf: Readonly<Record<SpeechFormat, { readonly mimeType: string; readonly extension: string }>> = {
  mp3: { mimeType: 'audio/mpeg', extension: 'mp3' },
  opus: { mimeType: 'audio/ogg', extension: 'ogg' },
  wav: { mimeType: 'audio/wav', extension: 'wav' },
  aac: { mimeType: 'audio/aac', extension: 'aac' },
  flac: { mimeType: 'audio/flac', extension: 'flac' },
};
