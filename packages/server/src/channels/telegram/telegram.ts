import type { ReactionTypeEmoji } from 'grammy/types';
import type { Act, Adapter, AdapterDeps, Download, Ended, MessageRef, OpenWire, OutgoingPart, Place, SendResult, Sink } from '../port.ts';
import { runAction } from './actions.ts';
import { type Access, type BotApi, createApi } from './api.ts';
import type { TelegramKeys } from './config.ts';
import { download } from './download.ts';
import { Limits } from './limits.ts';
import { failureOf, isMarkupRefusal, isUnchanged, isWithoutText, sendResultOf } from './outcome.ts';
import { messageTargetOf, targetOf } from './place.ts';
import { Poll, type PollMemory } from './poll.ts';
import { fileOf, keyboardOf, refusalOf, sendPart } from './send.ts';

export type TelegramConfig = TelegramKeys;

interface Options {
  readonly signal: AbortSignal;
}

export const openTelegram: OpenWire<TelegramConfig> = (deps) => new TelegramAdapter(deps);

const notPlace = { is: 'failed', kind: 'invalid', text: 'Not a message or chat of Telegram' } as const;

class TelegramAdapter implements Adapter {
  readonly #deps: AdapterDeps<TelegramConfig>;
  readonly #access: Access;
  readonly #api: BotApi;
  readonly #limits: Limits;
  readonly #memory: PollMemory = { isDeaf: false };

  constructor(deps: AdapterDeps<TelegramConfig>) {
    const { config, clock } = deps;
    this.#deps = deps;
    this.#access = { token: config.token, apiUrl: config.apiUrl, clock };
    this.#api = createApi(this.#access);
    this.#limits = new Limits(clock);
  }

  run(signal: AbortSignal, sink: Sink): Promise<Ended> {
    return new Poll(this.#deps, this.#api, sink, signal, this.#memory).run();
  }

  async send(part: OutgoingPart, { signal }: Options): Promise<SendResult> {
    const target = targetOf(part);
    if (target === undefined) return { is: 'rejected', kind: 'target', text: 'The conversation is not a chat of Telegram' };
    const refusal = refusalOf(part);
    if (refusal !== undefined) return { is: 'rejected', ...refusal };
    const limited = this.#limits.refusalOf(target.chat_id);
    if (limited !== undefined) return limited;
    let file: Awaited<ReturnType<typeof fileOf>> | undefined;
    try {
      file = part.attachment && (await fileOf(part.attachment));
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'Failed to read a file that was to be sent');
      return { is: 'notSent', text: 'The file could not be read' };
    }
    if (signal.aborted) return { is: 'notSent', text: 'The channel stopped' };
    try {
      return { is: 'sent', platformId: String(await sendPart(this.#api, target, part, file, signal)) };
    } catch (error) {
      const result = sendResultOf(error);
      return result.is === 'notSent' && result.retryAfterMs !== undefined ? this.#limits.add(target.chat_id, result) : result;
    }
  }

  edit(message: MessageRef, { text, markup, buttons = [] }: Pick<OutgoingPart, 'text' | 'markup' | 'buttons'>, { signal }: Options) {
    return this.#act(messageTargetOf(message), async (target) => {
      const common = { ...target, ...(buttons.length > 0 && { reply_markup: keyboardOf(buttons) }) };
      const write = async (shown: string, format: { readonly parse_mode?: 'HTML' }): Promise<unknown> => {
        try {
          return await this.#api.editMessageText({ ...common, ...format, text: shown, link_preview_options: { is_disabled: true } }, signal);
        } catch (error) {
          if (!isWithoutText(error)) throw error;
          return this.#api.editMessageCaption({ ...common, ...format, caption: shown }, signal);
        }
      };
      try {
        await (markup === undefined ? write(text, {}) : write(markup, { parse_mode: 'HTML' }));
      } catch (error) {
        if (markup !== undefined && isMarkupRefusal(error)) await write(text, {});
        else if (!isUnchanged(error)) throw error;
      }
    });
  }

  remove(message: MessageRef, { signal }: Options) {
    return this.#act(messageTargetOf(message), (target) => this.#api.deleteMessage(target, signal));
  }

  /** A bot has one reaction to a message: the new one replaces it. Telegram knows its emoji without a variation selector. */
  react(message: MessageRef, emoji: string, { signal }: Options) {
    const reaction = [{ type: 'emoji', emoji: emoji.replaceAll('\u{FE0F}', '') as ReactionTypeEmoji['emoji'] }] as const;
    return this.#act(messageTargetOf(message), (target) => this.#api.setMessageReaction({ ...target, reaction: [...reaction] }, signal));
  }

  unreact(message: MessageRef, _emoji: string, { signal }: Options) {
    return this.#act(messageTargetOf(message), (target) => this.#api.setMessageReaction({ ...target, reaction: [] }, signal));
  }

  typing(place: Place, { signal }: Options) {
    return this.#act(targetOf(place), (target) => this.#api.sendChatAction({ ...target, action: 'typing' }, signal));
  }

  download(ref: string, { signal }: Options): Promise<Download> {
    return download(this.#access, this.#api, ref, signal);
  }

  action(name: string, params: Readonly<Record<string, unknown>>, place: Place, { signal }: Options) {
    return runAction(this.#api, name, params, place, signal);
  }

  async #act<Target>(target: Target | undefined, call: (target: Target) => Promise<unknown>): Promise<Act<object>> {
    if (target === undefined) return notPlace;
    try {
      await call(target);
      return { is: 'done', value: {} };
    } catch (error) {
      return failureOf(error);
    }
  }
}
