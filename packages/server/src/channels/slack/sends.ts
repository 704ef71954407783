import { hash } from 'node:crypto';
import * as z from 'zod';
import { createFetch, RequestFailed } from '../http.ts';
import type { Act, Button, LookUp, MessageRef, OutgoingAttachment, OutgoingPart, SendResult, WireClock } from '../port.ts';
import { type Answer, failureOf, isUnauthorized, type NotOk, refusalText, type SlackClient } from './client.ts';
import { isTrustedHost } from './hosts.ts';
import { type PageMessage, readPage } from './history.ts';
import { isOwn, type Identity } from './message.ts';
import { escapeText, withoutMentions } from './text.ts';
import { Ts } from './tracker.ts';

const eventType = 'gatehouse_send';
/** Longest text of a block. */
const blockText = 3_000;
const mostButtons = 25;
const longestLabel = 75;
const uploadMs = 10 * 60_000;
const maxUploadAnswer = 65_536;
/** Our clock and that of Slack differ by less. */
const skewMs = 60_000;
const lookedUpAtOnce = 100;
const mostPages = 5;
const unauthorizedMs = 60_000;
const mostUploads = 200;

const Posted = z.object({ ts: Ts });
const UploadUrl = z.object({ upload_url: z.url(), file_id: z.string().regex(/^F[A-Z0-9]{1,31}$/) });
const Marked = z.object({ metadata: z.object({ event_type: z.literal(eventType), event_payload: z.object({ op: z.string() }) }) });
const Shared = z.object({ files: z.array(z.object({ id: z.string() })) });

export interface SendsDeps {
  readonly client: SlackClient;
  readonly clock: WireClock;
  readonly apiUrl: string;
  readonly identity: () => Identity | undefined;
}

interface SendOptions {
  readonly key: string;
  readonly signal: AbortSignal;
}

/** Messages to Slack: posted once, with a mark by which they are found again. */
export class Sends {
  readonly #deps: SendsDeps;
  readonly #upload: typeof fetch;
  /** Files of sends by their marks: a shared file has none. */
  readonly #uploads = new Map<string, string>();

  constructor(deps: SendsDeps) {
    this.#deps = deps;
    this.#upload = createFetch({ clock: deps.clock, timeoutMs: uploadMs, maxBytes: maxUploadAnswer });
  }

  async send(part: OutgoingPart, { key, signal }: SendOptions): Promise<SendResult> {
    if (!isChannel(part.conversationId)) return { is: 'rejected', kind: 'target', text: 'Not the id of a conversation of Slack' };
    if (part.attachment !== undefined) return this.#share(part, part.attachment, markOf(key), signal);
    if (part.text === '') return { is: 'rejected', kind: 'no_text', text: 'The text is empty' };
    const answer = await this.#deps.client.call(
      'chat.postMessage',
      {
        channel: part.conversationId,
        ...contentOf(part),
        ...(part.threadId !== undefined && { thread_ts: part.threadId }),
        unfurl_links: false,
        unfurl_media: false,
        metadata: { event_type: eventType, event_payload: { op: markOf(key) } },
      },
      signal,
    );
    if (answer.is !== 'ok') return resultOf(answer);
    const posted = Posted.safeParse(answer.data);
    return posted.success ? { is: 'sent', platformId: posted.data.ts } : { is: 'ambiguous', text: 'The answer does not name the message' };
  }

  async edit(
    { conversationId, messageId }: MessageRef,
    part: Pick<OutgoingPart, 'text' | 'markup' | 'buttons'>,
    signal: AbortSignal,
  ): Promise<Act<object>> {
    const blocks = part.buttons === undefined || part.buttons.length === 0 ? { blocks: [] } : {};
    const answer = await this.#deps.client.call('chat.update', { channel: conversationId, ts: messageId, ...blocks, ...contentOf(part) }, signal);
    return answer.is === 'ok' ? { is: 'done', value: {} } : failureOf(answer);
  }

  /** Finds out by the history whether a send arrived. */
  async lookUp(part: OutgoingPart, { key, signal, sinceMs }: SendOptions & { readonly sinceMs: number }): Promise<LookUp> {
    const mark = markOf(key);
    const fileId = this.#uploads.get(mark);
    if (part.attachment !== undefined && fileId === undefined)
      return { is: 'unclear', text: 'A file that an earlier process sent cannot be identified', retry: false };
    const isIt = ({ message, raw }: PageMessage): boolean => {
      const self = this.#deps.identity();
      if (self !== undefined && !isOwn(message, self)) return false;
      return fileId === undefined ? hasMark(raw, mark) : hasFile(raw, fileId);
    };
    const oldest = `${Math.floor(Math.max(0, sinceMs - skewMs) / 1_000)}.000000`;
    let cursor: string | undefined;
    for (let pages = 0; pages < mostPages; pages += 1) {
      const page = await readPage(
        this.#deps.client,
        { channel: part.conversationId, threadTs: part.threadId },
        { oldest, limit: lookedUpAtOnce, withMetadata: true, cursor },
        signal,
      );
      if (page.is !== 'ok') return unclear(page);
      const found = page.messages.find(isIt);
      if (found !== undefined) return { is: 'found', platformId: found.message.ts };
      if (page.next === undefined) return { is: 'absent' };
      cursor = page.next;
    }
    return { is: 'unclear', text: 'Too many messages came since', retry: false };
  }

  /** Nobody sees a file before its upload is completed: all failures before leave nothing behind. */
  async #share(part: OutgoingPart, attachment: OutgoingAttachment, mark: string, signal: AbortSignal): Promise<SendResult> {
    const { client } = this.#deps;
    const prepared = await client.call('files.getUploadURLExternal', { filename: attachment.name, length: attachment.bytes }, signal);
    if (prepared.is !== 'ok') return notSentOf(resultOf(prepared));
    const target = UploadUrl.safeParse(prepared.data);
    if (!target.success || !isTrustedHost(target.data.upload_url, this.#deps.apiUrl))
      return { is: 'notSent', text: 'Slack named no address for the file' };
    const failed = await this.#write(target.data.upload_url, attachment, signal);
    if (failed !== undefined) return failed;
    const { file_id: fileId } = target.data;
    this.#remember(mark, fileId);
    const { buttons = [] } = part;
    const answer = await client.call(
      'files.completeUploadExternal',
      {
        files: [{ id: fileId, title: attachment.name }],
        channel_id: part.conversationId,
        ...(part.threadId !== undefined && { thread_ts: part.threadId }),
        ...(buttons.length > 0 ? { blocks: blocksOf(part, buttons) } : part.text !== '' && { initial_comment: markupOf(part) }),
      },
      signal,
    );
    return answer.is === 'ok' ? { is: 'sent' } : resultOf(answer);
  }

  async #write(url: string, attachment: OutgoingAttachment, signal: AbortSignal): Promise<SendResult | undefined> {
    let bytes: Uint8Array;
    try {
      bytes = await attachment.read();
    } catch {
      return { is: 'rejected', kind: 'unreadable', text: 'The file cannot be read' };
    }
    try {
      const response = await this.#upload(url, {
        method: 'POST',
        body: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) as Buffer<ArrayBuffer>,
        headers: { 'content-type': 'application/octet-stream', 'user-agent': 'gatehouse' },
        signal,
      });
      return response.status === 200 ? undefined : { is: 'notSent', text: `Slack answered the upload with ${response.status}` };
    } catch (error) {
      return { is: 'notSent', text: error instanceof RequestFailed ? error.message : 'The upload failed' };
    }
  }

  #remember(mark: string, fileId: string): void {
    this.#uploads.set(mark, fileId);
    const [oldest] = this.#uploads.keys();
    if (this.#uploads.size > mostUploads && oldest !== undefined) this.#uploads.delete(oldest);
  }
}

/** A mark is short, and says nothing about the key. */
const markOf = (key: string): string => hash('sha256', key).slice(0, 32);
const isChannel = (id: string): boolean => /^[A-Z][A-Z0-9]{1,31}$/.test(id);

const markupOf = ({ text, markup }: Pick<OutgoingPart, 'text' | 'markup'>): string =>
  markup === undefined ? escapeText(text) : withoutMentions(markup);

/** Text and buttons, such that nothing in them notifies anybody. */
function contentOf(part: Pick<OutgoingPart, 'text' | 'markup' | 'buttons'>): Readonly<Record<string, unknown>> {
  const { markup, buttons = [] } = part;
  return {
    text: markupOf(part),
    mrkdwn: markup !== undefined,
    parse: 'none',
    link_names: false,
    ...(buttons.length > 0 && { blocks: blocksOf(part, buttons) }),
  };
}

function blocksOf(part: Pick<OutgoingPart, 'text' | 'markup'>, buttons: readonly Button[]): object[] {
  const isMarkup = part.markup !== undefined;
  const sections = slicesOf(isMarkup ? markupOf(part) : part.text).map((text) => ({
    type: 'section',
    text: { type: isMarkup ? 'mrkdwn' : 'plain_text', text, ...(isMarkup && { verbatim: true }) },
  }));
  const elements = buttons.slice(0, mostButtons).map(({ label, command }, index) => ({
    type: 'button',
    action_id: `gatehouse_${index}`,
    text: { type: 'plain_text', text: label.slice(0, longestLabel) },
    value: command,
  }));
  return [...sections, { type: 'actions', elements }];
}

/** Cuts a text into texts of blocks, at line breaks where it can. */
function slicesOf(text: string): string[] {
  const slices: string[] = [];
  let rest = text;
  while (rest.length > blockText) {
    const line = rest.lastIndexOf('\n', blockText);
    const end = line > 0 ? line : blockText - (/[\uD800-\uDBFF]/.test(rest[blockText - 1] ?? '') ? 1 : 0);
    slices.push(rest.slice(0, end));
    rest = rest.slice(end).replace(/^\n/, '');
  }
  return rest === '' ? slices : [...slices, rest];
}

/** Decides by the evidence whether a message was posted. */
function resultOf(answer: Exclude<Answer, { readonly is: 'ok' }>): Exclude<SendResult, { readonly is: 'sent' }> {
  switch (answer.is) {
    case 'limited':
      return { is: 'notSent', text: 'Slack limits the rate of messages', retryAfterMs: answer.retryAfterMs };
    case 'failed':
      return answer.maybeSent ? { is: 'ambiguous', text: answer.text } : { is: 'notSent', text: answer.text };
    case 'refused':
      return isUnauthorized(answer.error)
        ? { is: 'notSent', text: refusalText(answer.error), retryAfterMs: unauthorizedMs, scope: 'instance' }
        : { is: 'rejected', kind: answer.error, text: refusalText(answer.error) };
  }
}

/** Returns the end of a step that nobody sees: what may have happened has not been posted. */
const notSentOf = (result: Exclude<SendResult, { readonly is: 'sent' }>): SendResult =>
  result.is === 'ambiguous' ? { is: 'notSent', text: result.text } : result;

function unclear(answer: NotOk): LookUp {
  if (answer.is === 'refused') return { is: 'unclear', text: refusalText(answer.error), retry: isUnauthorized(answer.error) };
  return { is: 'unclear', text: answer.is === 'limited' ? 'Slack limits the rate of calls' : answer.text, retry: true };
}

function hasMark(raw: unknown, mark: string): boolean {
  const marked = Marked.safeParse(raw);
  return marked.success && marked.data.metadata.event_payload.op === mark;
}

function hasFile(raw: unknown, fileId: string): boolean {
  const shared = Shared.safeParse(raw);
  return shared.success && shared.data.files.some(({ id }) => id === fileId);
}
