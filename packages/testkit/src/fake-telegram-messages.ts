import { parseTelegramHtml, type TelegramEntity } from './fake-telegram-html.ts';

export interface TelegramPerson {
  readonly id: number;
  readonly first_name: string;
  readonly last_name?: string;
  readonly username?: string;
  readonly is_bot?: boolean;
}

export type TelegramFileKind = 'photo' | 'document' | 'voice' | 'audio' | 'video' | 'video_note' | 'animation' | 'sticker';

/** A message as people see it. */
export interface ShownMessage {
  readonly messageId: number;
  readonly threadId: number | undefined;
  readonly from: number;
  /** Or the caption. */
  readonly text: string;
  readonly entities: readonly TelegramEntity[];
  readonly file: { readonly kind: TelegramFileKind; readonly name: string; readonly bytes: Uint8Array } | undefined;
  readonly poll: readonly string[] | undefined;
  /** Labels. */
  readonly buttons: readonly (readonly string[])[];
  readonly replyTo: number | undefined;
  /** Emoji of the bot. */
  readonly reactions: readonly string[];
  readonly isEdited: boolean;
  readonly hasPreview: boolean;
}

export interface Button {
  readonly text: string;
  readonly callback_data: string;
}

/** A message as the fake keeps it. */
export interface Message extends Omit<ShownMessage, 'buttons'> {
  readonly date: number;
  readonly keyboard: readonly (readonly Button[])[];
  readonly extra: object;
}

/** A refusal of the Bot API. */
export class Refused extends Error {
  readonly code: number;
  readonly parameters: object | undefined;

  constructor(code: number, description: string, parameters?: object) {
    super(description);
    this.code = code;
    this.parameters = parameters;
  }
}

export const bad = (what: string): Refused => new Refused(400, `Bad Request: ${what}`);
export const userOf = ({ is_bot = false, ...person }: TelegramPerson): object => ({ is_bot, ...person });

export function parsed(value: unknown, mode: unknown): { readonly text: string; readonly entities: readonly TelegramEntity[] } {
  const text = String(value);
  if (mode === undefined) return { text: text.trim(), entities: [] };
  if (mode !== 'HTML') throw bad('unsupported parse_mode');
  const html = parseTelegramHtml(text);
  if ('refusal' in html) throw new Refused(400, html.refusal);
  return html;
}

export function keyboardOf(markup: unknown): readonly (readonly Button[])[] {
  const rows = ((markup ?? {}) as { readonly inline_keyboard?: readonly (readonly Partial<Button>[])[] }).inline_keyboard ?? [];
  return rows.map((row) =>
    row.map(({ text = '', callback_data: data = '' }) => {
      if (text === '') throw bad('text buttons are unallowed in the inline keyboard');
      if (data === '' || Buffer.byteLength(data) > 64) throw bad('BUTTON_DATA_INVALID');
      return { text, callback_data: data };
    }),
  );
}

/** Returns the fields of a message that describe a file; a photo has several sizes. */
export function fileFields(
  id: string,
  file: { readonly kind: TelegramFileKind; readonly name?: string; readonly type?: string; readonly bytes: Uint8Array } | undefined,
): object {
  if (file === undefined) return {};
  const { kind, name, type, bytes } = file;
  const base = { file_id: id, file_unique_id: `u${id}`, file_size: bytes.byteLength };
  const details = { ...base, ...(name !== undefined && name !== '' && { file_name: name }), ...(type !== undefined && { mime_type: type }) };
  switch (kind) {
    case 'photo':
      return {
        photo: [
          { ...base, file_id: `${id}-small`, file_size: 9, width: 90, height: 60 },
          { ...base, width: 900, height: 600 },
        ],
      };
    case 'sticker':
      return { sticker: { ...base, type: 'regular', width: 512, height: 512, is_animated: false, is_video: false, emoji: '👋' } };
    case 'video_note':
      return { video_note: { ...base, length: 240, duration: 3 } };
    case 'animation':
      return { animation: { ...details, width: 1, height: 1, duration: 1 }, document: details };
    case 'voice':
    case 'audio':
      return { [kind]: { ...details, duration: 3 } };
    case 'video':
      return { video: { ...details, width: 1, height: 1, duration: 3 } };
    case 'document':
      return { document: details };
  }
}

export const isImage = (bytes: Uint8Array): boolean =>
  [
    [0x89, 0x50, 0x4e, 0x47],
    [0xff, 0xd8, 0xff],
    [0x52, 0x49, 0x46, 0x46],
  ].some((magic) => magic.every((byte, at) => bytes[at] === byte));
