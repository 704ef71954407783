import { hash } from 'node:crypto';
import type { RawFile } from '@discordjs/rest';
import type { Button, OutgoingPart } from '../port.ts';

/** Nothing that a model writes notifies anybody. */
export const noMentions = { allowed_mentions: { parse: [] } };

const buttonsInRow = 5;
const voiceFlag = 1 << 13;
const opusRate = 48_000;

/** Returns the nonce of a send: Discord takes 25 characters, and answers a repeat within some minutes with the first message. */
export const nonceOf = (key: string): string => hash('sha256', key).slice(0, 25);

export const contentOf = ({ text, markup }: Pick<OutgoingPart, 'text' | 'markup'>): string => markup ?? text;

/** Returns rows of buttons. */
export function componentsOf(buttons: readonly Button[]): readonly object[] {
  const rows: object[] = [];
  for (let at = 0; at < buttons.length; at += buttonsInRow)
    rows.push({
      type: 1,
      components: buttons
        .slice(at, at + buttonsInRow)
        .map(({ label, command }) => ({ type: 2, style: 2, label: label.slice(0, 80), custom_id: command })),
    });
  return rows;
}

/** Returns the request body of a message, and its files. */
export async function bodyOf(part: OutgoingPart, key: string): Promise<{ readonly body: object; readonly files: RawFile[] }> {
  const { attachment, buttons = [], replyTo } = part;
  const content = contentOf(part);
  const data = await attachment?.read();
  const seconds = attachment?.kind === 'voice' && content === '' && data !== undefined ? secondsOfOpus(data) : undefined;
  return {
    body: {
      ...(content !== '' && { content }),
      nonce: nonceOf(key),
      enforce_nonce: true,
      ...noMentions,
      ...(replyTo !== undefined && { message_reference: { message_id: replyTo, fail_if_not_exists: false } }),
      ...(buttons.length > 0 && { components: componentsOf(buttons) }),
      ...(attachment !== undefined && {
        attachments: [
          {
            id: 0,
            filename: attachment.name,
            // The form of the sound wave is only shown; a flat one will do.
            ...(seconds !== undefined && { duration_secs: seconds, waveform: Buffer.alloc(32, 64).toString('base64') }),
          },
        ],
      }),
      ...(seconds !== undefined && { flags: voiceFlag }),
    },
    files: attachment === undefined || data === undefined ? [] : [{ name: attachment.name, data, contentType: attachment.mediaType }],
  };
}

/** Returns the length of Opus in Ogg, from the position of its last page; undefined for anything else, which is sent as a file. */
export function secondsOfOpus(data: Uint8Array): number | undefined {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const page = bytes.lastIndexOf('OggS');
  if (bytes.indexOf('OpusHead') === -1 || page === -1 || page + 14 > bytes.length) return undefined;
  const seconds = Number(bytes.readBigUInt64LE(page + 6)) / opusRate;
  return seconds > 0 && seconds < 86_400 ? Math.round(seconds * 100) / 100 : undefined;
}
