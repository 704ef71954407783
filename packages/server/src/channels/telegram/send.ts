import { InputFile } from 'grammy';
import type { InlineKeyboardMarkup } from 'grammy/types';
import type { Button, OutgoingAttachment, OutgoingPart } from '../port.ts';
import type { BotApi } from './api.ts';
import { isMarkupRefusal, isMediaRefusal, migratedTo } from './outcome.ts';
import { idOf, type Target } from './place.ts';

const maxText = 4_096;
const maxCaption = 1_024;
const maxPhoto = 10_000_000;
const maxFile = 50_000_000;
const maxCommand = 64;
/** Labels up to this length share a row. */
const shortLabel = 16;
const rowLength = 3;

type Payload<Method extends keyof BotApi> = Parameters<BotApi[Method]>[0];
type Common = Omit<Payload<'sendMessage'>, 'text'>;
type Kind = 'photo' | 'document' | 'voice' | 'audio' | 'video';

interface File {
  readonly kind: Kind;
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Returns why a part cannot be sent as it is: kind and text. */
export function refusalOf({ text, buttons = [], attachment, replyTo }: OutgoingPart): { readonly kind: string; readonly text: string } | undefined {
  if (replyTo !== undefined && idOf(replyTo) === undefined) return { kind: 'target', text: 'The answered message has no id of Telegram' };
  if (text.trim() === '' && attachment === undefined) return { kind: 'no_text', text: 'The text is empty' };
  const most = attachment === undefined ? maxText : maxCaption;
  if (text.length > most) return { kind: 'too_long', text: `The text is longer than ${most} UTF-16 units` };
  if (attachment !== undefined && attachment.bytes > maxFile) return { kind: 'too_large', text: `The file is larger than ${maxFile} bytes` };
  if (buttons.some(({ command }) => Buffer.byteLength(command) > maxCommand))
    return { kind: 'button', text: `The command of a button is longer than ${maxCommand} bytes` };
  return undefined;
}

/** Reads the file of a part; rejects when it cannot be read. */
export async function fileOf(attachment: OutgoingAttachment): Promise<File> {
  return { kind: kindOf(attachment), name: fileName(attachment.name), bytes: await attachment.read() };
}

/**
 * Sends a part; returns the id of the message. A complete refusal proves that nothing was sent, so what Telegram refuses only as it is goes out
 * once more: to the supergroup that the group became, without markup, as a document.
 */
export async function sendPart(api: BotApi, target: Target, part: OutgoingPart, file: File | undefined, signal: AbortSignal): Promise<number> {
  let [to, isPlain, sent] = [target, part.markup === undefined, file];
  for (;;) {
    try {
      const { message_id: id } = await sendOnce(
        api,
        { ...commonOf(part), ...to },
        { ...part, markup: isPlain ? undefined : part.markup },
        sent,
        signal,
      );
      return id;
    } catch (error) {
      const moved = migratedTo(error);
      if (moved !== undefined && to === target) to = { ...target, chat_id: moved };
      else if (isMarkupRefusal(error) && !isPlain) isPlain = true;
      else if (isMediaRefusal(error) && sent !== undefined && sent.kind !== 'document') sent = { ...sent, kind: 'document' };
      else throw error;
    }
  }
}

function commonOf({ replyTo, buttons }: OutgoingPart): Omit<Common, 'chat_id'> {
  return {
    ...(replyTo !== undefined && { reply_parameters: { message_id: Number(replyTo), allow_sending_without_reply: true } }),
    ...(buttons !== undefined && buttons.length > 0 && { reply_markup: keyboardOf(buttons) }),
  };
}

function sendOnce(api: BotApi, common: Common, { text, markup }: OutgoingPart, file: File | undefined, signal: AbortSignal) {
  const format = markup === undefined ? {} : { parse_mode: 'HTML' as const };
  const shown = markup ?? text;
  if (file === undefined) return api.sendMessage({ ...common, ...format, text: shown, link_preview_options: { is_disabled: true } }, signal);
  const payload = { ...common, ...format, ...(shown !== '' && { caption: shown }) };
  const input = new InputFile(file.bytes, file.name);
  switch (file.kind) {
    case 'photo':
      return api.sendPhoto({ ...payload, photo: input }, signal);
    case 'voice':
      return api.sendVoice({ ...payload, voice: input }, signal);
    case 'audio':
      return api.sendAudio({ ...payload, audio: input }, signal);
    case 'video':
      return api.sendVideo({ ...payload, video: input }, signal);
    case 'document':
      return api.sendDocument({ ...payload, document: input }, signal);
  }
}

/** Returns the buttons below a message: short ones share rows. */
export function keyboardOf(buttons: readonly Button[]): InlineKeyboardMarkup {
  const length = buttons.every(({ label }) => label.length <= shortLabel) ? rowLength : 1;
  const all = buttons.map(({ label, command }) => ({ text: label, callback_data: command }));
  return { inline_keyboard: Array.from({ length: Math.ceil(all.length / length) }, (_, row) => all.slice(row * length, (row + 1) * length)) };
}

/** What Telegram shows as something else than a file, it takes in these types only. */
function kindOf({ kind, mediaType, bytes }: OutgoingAttachment): Kind {
  const isType = (...types: readonly string[]) => types.includes(mediaType.split(';')[0]?.trim().toLowerCase() ?? '');
  switch (kind) {
    case 'image':
      return bytes <= maxPhoto && isType('image/jpeg', 'image/png', 'image/webp') ? 'photo' : 'document';
    case 'voice':
      return isType('audio/ogg', 'audio/opus', 'audio/mpeg', 'audio/mp4', 'audio/x-m4a') ? 'voice' : 'document';
    case 'audio':
      return isType('audio/mpeg', 'audio/mp4', 'audio/x-m4a') ? 'audio' : 'document';
    case 'video':
      return isType('video/mp4') ? 'video' : 'document';
    case 'file':
      return 'document';
  }
}

/** A name for people: no path, no control characters. */
const fileName = (name: string): string =>
  name
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}"\\/]/gu, '_')
    .slice(0, 128) || 'file';
