import { hash } from 'node:crypto';
import type { Act, Adapter, AdapterDeps, Ended, OpenWire, OutgoingAttachment, OutgoingPart, Place, SendResult, Sink } from '../port.ts';
import { type ActionResult, runAction } from './actions.ts';
import { MatrixApi } from './api.ts';
import { Calls } from './calls.ts';
import type { MatrixKeys } from './config.ts';
import { fileContent, fits, messageContent } from './content.ts';
import { MediaConfig, SentEvent, Uploaded, WhoAmI } from './events.ts';
import { actFailure, sendFailure, uploadFailure } from './evidence.ts';
import { isEventId, isRoomId, isUserId, parseMxc } from './ids.ts';
import type { Seen } from './message.ts';
import { Recent } from './recent.ts';
import { Rooms } from './rooms.ts';
import { Sync } from './sync.ts';

export type MatrixConfig = MatrixKeys;

export const openMatrix: OpenWire<MatrixConfig> = (deps) => new MatrixAdapter(deps);

/** Events whose sender and thread are remembered. */
const maxSeen = 5_000;
const maxWarned = 1_000;

/** Whether it can be a header of a request. */
const isMediaType = (text: string): boolean => /^[\w.+-]{1,127}\/[\w.+-]{1,127}(?:; ?[\w-]+=[\w.+-]+)*$/.test(text);

type CallOptions = { readonly signal: AbortSignal };

class MatrixAdapter implements Adapter {
  readonly #deps: AdapterDeps<MatrixConfig>;
  readonly #api: MatrixApi;
  readonly #calls: Calls;
  readonly #rooms = new Rooms();
  readonly #seen = new Recent<Seen>(maxSeen);
  readonly #warned = new Recent<true>(maxWarned);
  #mostUpload: number | undefined;

  constructor(deps: AdapterDeps<MatrixConfig>) {
    const { config, clock } = deps;
    this.#deps = deps;
    this.#api = new MatrixApi({ ...config, clock });
    this.#calls = new Calls({ api: this.#api, whoAmI: (signal) => this.#whoAmI(signal) });
  }

  async run(signal: AbortSignal, sink: Sink): Promise<Ended> {
    if (signal.aborted) return { ended: 'stopped', text: 'Stopped' };
    const ending = new AbortController();
    const { clock, log, config } = this.#deps;
    const shared = { api: this.#api, rooms: this.#rooms, seen: this.#seen, warned: this.#warned };
    const sync = new Sync({ ...shared, clock, log, allowed: config.joinInvitesFrom }, AbortSignal.any([signal, ending.signal]), sink);
    try {
      return await sync.run();
    } finally {
      ending.abort();
      await sync.settled();
    }
  }

  async send(part: OutgoingPart, { key, signal }: CallOptions & { readonly key: string }): Promise<SendResult> {
    const wrong = this.#check(part);
    if (wrong !== undefined) return wrong;
    const file = part.attachment === undefined ? undefined : await this.#upload(part.attachment, signal);
    if (typeof file === 'object') return file;
    const content = part.attachment === undefined || file === undefined ? messageContent(part) : fileContent(part, part.attachment, file);
    if (!fits(content)) return { is: 'rejected', kind: 'too_long', text: 'The text does not fit into an event' };
    // The homeserver returns the event that it has when it knows the transaction.
    const path = ['rooms', part.conversationId, 'send', 'm.room.message', `g${hash('sha256', key).slice(0, 40)}`];
    const outcome = await this.#api.request('PUT', path, { body: content, signal });
    if (outcome.is !== 'done') return sendFailure(outcome);
    const id = SentEvent.safeParse(outcome.body).data?.event_id;
    if (id === undefined) return { is: 'ambiguous', text: 'The answer of the homeserver does not name the event' };
    this.#seen.set(id, { sender: this.#rooms.userId, threadId: part.threadId });
    return { is: 'sent', platformId: id };
  }

  edit: NonNullable<Adapter['edit']> = (...args) => this.#calls.edit(...args);
  remove: NonNullable<Adapter['remove']> = (...args) => this.#calls.remove(...args);
  react: NonNullable<Adapter['react']> = (...args) => this.#calls.react(...args);
  unreact: NonNullable<Adapter['unreact']> = (...args) => this.#calls.unreact(...args);
  typing: NonNullable<Adapter['typing']> = (...args) => this.#calls.typing(...args);
  fetch: NonNullable<Adapter['fetch']> = (...args) => this.#calls.fetch(...args);
  download: NonNullable<Adapter['download']> = (...args) => this.#calls.download(...args);

  async action(name: string, params: Readonly<Record<string, unknown>>, place: Place, { signal }: CallOptions): Promise<ActionResult> {
    if (name !== 'sendTyping') return runAction(this.#api, name, params, place, signal);
    const shown = await this.#calls.typing(place, { signal });
    return shown.is === 'done' ? { is: 'done', value: { typing: true, roomId: place.conversationId } } : shown;
  }

  #check({ conversationId, threadId, replyTo, text, attachment }: OutgoingPart): SendResult | undefined {
    if (!isRoomId(conversationId)) return { is: 'rejected', kind: 'target', text: 'Not the id of a room' };
    if (![threadId, replyTo].every((id) => id === undefined || isEventId(id)))
      return { is: 'rejected', kind: 'target', text: 'Not the id of a message' };
    if (text === '' && attachment === undefined) return { is: 'rejected', kind: 'no_text', text: 'The text is empty' };
    // People would take it for a protected message.
    if (this.#rooms.isEncrypted(conversationId)) return { is: 'rejected', kind: 'encrypted', text: 'The room is encrypted' };
    return undefined;
  }

  /** Uploads a file and returns its address. An upload without a message is seen by nobody. */
  async #upload({ name, mediaType, bytes, read }: OutgoingAttachment, signal: AbortSignal): Promise<string | SendResult> {
    const most = await this.#mostBytes(signal);
    if (most !== undefined && bytes > most) return { is: 'rejected', kind: 'too_large', text: `The homeserver takes files of ${most} bytes at most` };
    let data: Uint8Array<ArrayBuffer>;
    try {
      data = new Uint8Array(await read());
    } catch {
      return { is: 'notSent', text: 'The file could not be read' };
    }
    const outcome = await this.#api.upload(data, name, isMediaType(mediaType) ? mediaType : 'application/octet-stream', signal);
    if (outcome.is !== 'done') return uploadFailure(outcome);
    const url = Uploaded.safeParse(outcome.body).data?.content_uri ?? '';
    return parseMxc(url) === undefined ? { is: 'notSent', text: 'The answer of the homeserver does not name the file' } : url;
  }

  /** Returns the size of the largest file; undefined when the homeserver does not say. */
  async #mostBytes(signal: AbortSignal): Promise<number | undefined> {
    if (this.#mostUpload !== undefined) return this.#mostUpload;
    let outcome = await this.#api.request('GET', ['config'], { base: '_matrix/client/v1/media', signal });
    if (outcome.is === 'refused' && outcome.status !== 429)
      outcome = await this.#api.request('GET', ['config'], { base: '_matrix/media/v3', signal });
    if (outcome.is === 'done') this.#mostUpload = MediaConfig.safeParse(outcome.body).data?.['m.upload.size'];
    return this.#mostUpload;
  }

  async #whoAmI(signal: AbortSignal): Promise<Act<string>> {
    if (this.#rooms.userId !== '') return { is: 'done', value: this.#rooms.userId };
    const outcome = await this.#api.request('GET', ['account', 'whoami'], { signal });
    if (outcome.is !== 'done') return actFailure(outcome, true);
    const userId = WhoAmI.safeParse(outcome.body).data?.user_id ?? '';
    return isUserId(userId) ? { is: 'done', value: userId } : { is: 'failed', kind: 'unavailable', text: 'The homeserver did not name the account' };
  }
}
