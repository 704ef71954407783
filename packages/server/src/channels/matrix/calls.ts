import { randomUUID } from 'node:crypto';
import type { Act, Download, FetchedMessage, MessageRef, OutgoingPart, Place } from '../port.ts';
import type { MatrixApi, Outcome } from './api.ts';
import { editContent, fits } from './content.ts';
import { EventContext, EventPage, type MatrixEvent, parseEvents, relationOf, SentEvent, textIn } from './events.ts';
import { actFailure } from './evidence.ts';
import { isEventId, isRoomId, parseMxc } from './ids.ts';
import { withoutFallback } from './mention.ts';
import { Recent } from './recent.ts';

export interface CallsDeps {
  readonly api: MatrixApi;
  /** Returns our id; asks for it when it is not known yet. */
  readonly whoAmI: (signal: AbortSignal) => Promise<Act<string>>;
}

interface CallOptions {
  readonly signal: AbortSignal;
}

const maxReactions = 1_000;
const longestKey = 64;
const pageSize = 100;
const mostPages = 5;
export const typingMs = 30_000;
const relationsBase = '_matrix/client/v1';
const done = { is: 'done', value: {} } as const;
const invalid = (text: string) => ({ is: 'failed', kind: 'invalid', text }) as const;

/** Calls other than a send; none is repeated. */
export class Calls {
  readonly #deps: CallsDeps;
  /** Events of our reactions, by message and key. */
  readonly #reactions = new Recent<string>(maxReactions);

  constructor(deps: CallsDeps) {
    this.#deps = deps;
  }

  async edit(message: MessageRef, part: Pick<OutgoingPart, 'text' | 'markup'>, { signal }: CallOptions): Promise<Act<object>> {
    const wrong = checkMessage(message);
    if (wrong !== undefined) return wrong;
    const content = editContent(message.messageId, part);
    if (part.text === '' || !fits(content)) return invalid('The text is empty or too long');
    const outcome = await this.#put(message.conversationId, 'm.room.message', content, signal);
    return outcome.is === 'done' ? done : actFailure(outcome);
  }

  async remove(message: MessageRef, { signal }: CallOptions): Promise<Act<object>> {
    const wrong = checkMessage(message);
    if (wrong !== undefined) return wrong;
    const outcome = await this.#redact(message.conversationId, message.messageId, signal);
    return outcome.is === 'done' ? done : actFailure(outcome);
  }

  async react(message: MessageRef, emoji: string, { signal }: CallOptions): Promise<Act<object>> {
    const wrong = checkMessage(message) ?? checkKey(emoji);
    if (wrong !== undefined) return wrong;
    const content = { 'm.relates_to': { rel_type: 'm.annotation', event_id: message.messageId, key: emoji } };
    const outcome = await this.#put(message.conversationId, 'm.reaction', content, signal);
    // It is there already.
    if (outcome.is === 'refused' && outcome.errcode === 'M_DUPLICATE_ANNOTATION') return done;
    if (outcome.is !== 'done') return actFailure(outcome);
    const sent = SentEvent.safeParse(outcome.body);
    if (sent.success) this.#reactions.set(reactionKey(message, emoji), sent.data.event_id);
    return done;
  }

  async unreact(message: MessageRef, emoji: string, { signal }: CallOptions): Promise<Act<object>> {
    const wrong = checkMessage(message) ?? checkKey(emoji);
    if (wrong !== undefined) return wrong;
    const key = reactionKey(message, emoji);
    const known = this.#reactions.get(key);
    const found: Act<string> = known === undefined ? await this.#findReaction(message, emoji, signal) : { is: 'done', value: known };
    if (found.is !== 'done') return found;
    const outcome = await this.#redact(message.conversationId, found.value, signal);
    if (outcome.is !== 'done') return actFailure(outcome);
    this.#reactions.delete(key);
    return done;
  }

  async typing({ conversationId }: Place, { signal }: CallOptions): Promise<Act<object>> {
    if (!isRoomId(conversationId)) return invalid('Not the id of a room');
    const us = await this.#deps.whoAmI(signal);
    if (us.is !== 'done') return us;
    const body = { typing: true, timeout: typingMs };
    const outcome = await this.#deps.api.request('PUT', ['rooms', conversationId, 'typing', us.value], { body, signal });
    return outcome.is === 'done' ? done : actFailure(outcome);
  }

  /** Returns messages, the newest first; those of a thread alone when the place has one. */
  async fetch(
    place: Place,
    { signal, limit, before }: CallOptions & { readonly limit: number; readonly before?: string | undefined },
  ): Promise<Act<readonly FetchedMessage[]>> {
    const { conversationId, threadId } = place;
    const wrong = checkMessage({ conversationId, messageId: before ?? threadId ?? '$' }, before === undefined && threadId === undefined);
    if (wrong !== undefined) return wrong;
    const start = before === undefined ? undefined : await this.#positionOf(conversationId, before, signal);
    if (start !== undefined && start.is !== 'done') return start;
    const messages: FetchedMessage[] = [];
    let from = start?.value;
    for (let page = 0; page < mostPages && messages.length < limit; page += 1) {
      const outcome = await this.#readPage(place, from, signal);
      if (outcome.is !== 'done') return actFailure(outcome, true);
      const answer = EventPage.safeParse(outcome.body).data;
      if (answer === undefined) return { is: 'failed', kind: 'unavailable', text: 'The answer of the homeserver is not a list of messages' };
      messages.push(...parseEvents(answer.chunk).flatMap((event) => fetched(event, before)));
      from = threadId === undefined ? answer.end : answer.next_batch;
      if (from === undefined || answer.chunk.length === 0) break;
    }
    return { is: 'done', value: messages.slice(0, limit) };
  }

  async download(ref: string, { signal }: CallOptions): Promise<Download> {
    const mxc = parseMxc(ref);
    if (mxc === undefined) return { is: 'gone', text: 'Not the address of a file of Matrix' };
    const { api } = this.#deps;
    const path = ['download', mxc.server, mxc.media];
    let answer = await api.download('_matrix/client/v1/media', path, signal);
    // Homeservers before 1.11 know only the older path.
    if (answer.is === 'refused' && (answer.errcode === 'M_UNRECOGNIZED' || answer.status === 405))
      answer = await api.download('_matrix/media/v3', path, signal);
    if (answer.is === 'done') return { is: 'opened', stream: streamOf(answer.bytes) };
    const isGone = answer.is === 'refused' && [400, 403, 404, 410, 413].includes(answer.status);
    return { is: isGone ? 'gone' : 'unavailable', text: answer.text };
  }

  #put(roomId: string, type: string, body: object, signal: AbortSignal): Promise<Outcome> {
    return this.#deps.api.request('PUT', ['rooms', roomId, 'send', type, randomUUID()], { body, signal });
  }

  #redact(roomId: string, eventId: string, signal: AbortSignal): Promise<Outcome> {
    return this.#deps.api.request('PUT', ['rooms', roomId, 'redact', eventId, randomUUID()], { body: {}, signal });
  }

  async #findReaction({ conversationId, messageId }: MessageRef, emoji: string, signal: AbortSignal): Promise<Act<string>> {
    const us = await this.#deps.whoAmI(signal);
    if (us.is !== 'done') return us;
    const path = ['rooms', conversationId, 'relations', messageId, 'm.annotation', 'm.reaction'];
    let from: string | undefined;
    for (let page = 0; page < mostPages; page += 1) {
      const query = { limit: String(pageSize), ...(from !== undefined && { from }) };
      const outcome = await this.#deps.api.request('GET', path, { base: relationsBase, query, signal });
      if (outcome.is !== 'done') return actFailure(outcome, true);
      const answer = EventPage.safeParse(outcome.body).data;
      const own = parseEvents(answer?.chunk ?? []).find((event) => event.sender === us.value && relationOf(event).key === emoji);
      if (own?.event_id !== undefined && isEventId(own.event_id)) return { is: 'done', value: own.event_id };
      from = answer?.next_batch;
      if (from === undefined) break;
    }
    return { is: 'failed', kind: 'not_found', text: 'The message has no such reaction of this account' };
  }

  async #positionOf(roomId: string, eventId: string, signal: AbortSignal): Promise<Act<string>> {
    const outcome = await this.#deps.api.request('GET', ['rooms', roomId, 'context', eventId], { query: { limit: '0' }, signal });
    if (outcome.is !== 'done') return actFailure(outcome, true);
    const start = EventContext.safeParse(outcome.body).data?.start;
    return start === undefined
      ? { is: 'failed', kind: 'unavailable', text: 'The homeserver did not name the position' }
      : { is: 'done', value: start };
  }

  #readPage({ conversationId, threadId }: Place, from: string | undefined, signal: AbortSignal): Promise<Outcome> {
    const query = { dir: 'b', limit: String(pageSize), ...(from !== undefined && { from }) };
    if (threadId !== undefined)
      return this.#deps.api.request('GET', ['rooms', conversationId, 'relations', threadId, 'm.thread'], { base: relationsBase, query, signal });
    const filter = JSON.stringify({ types: ['m.room.message'] });
    return this.#deps.api.request('GET', ['rooms', conversationId, 'messages'], { query: { ...query, filter }, signal });
  }
}

function checkMessage({ conversationId, messageId }: Pick<MessageRef, 'conversationId' | 'messageId'>, isRoomAlone = false) {
  if (!isRoomId(conversationId)) return invalid('Not the id of a room');
  return isRoomAlone || isEventId(messageId) ? undefined : invalid('Not the id of a message');
}

const checkKey = (emoji: string) => (emoji === '' || emoji.length > longestKey ? invalid('The reaction is empty or too long') : undefined);

const reactionKey = ({ conversationId, messageId }: MessageRef, emoji: string): string => `${conversationId} ${messageId} ${emoji}`;

function fetched(event: MatrixEvent, before: string | undefined): FetchedMessage[] {
  const { event_id: id, sender, content, origin_server_ts: sentAtMs = 0 } = event;
  const latest = parseEvents([event.unsigned?.['m.relations']?.['m.replace']])[0];
  const changed = latest?.sender === sender ? latest.content['m.new_content'] : undefined;
  const isChanged = typeof changed === 'object' && changed !== null;
  const body = (isChanged ? textIn(changed as Readonly<Record<string, unknown>>, 'body') : undefined) ?? textIn(content, 'body');
  // A deleted message has no text, and a new version is shown with its message.
  if (id === undefined || id === before || body === undefined || relationOf(event).type === 'm.replace') return [];
  const text = relationOf(event).replyTo === undefined ? body : withoutFallback(body).text;
  return [{ messageId: id, senderId: sender, text, sentAtMs }];
}

async function* streamOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
