import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type CallParams, isKnownCall, readCall } from './fake-telegram-calls.ts';
import { TelegramChats } from './fake-telegram-chats.ts';
import { Refused, type TelegramPerson } from './fake-telegram-messages.ts';

export type { TelegramPerson } from './fake-telegram-messages.ts';

export interface FakeTelegramOptions {
  readonly token?: string;
  /** Privacy mode is off: of groups the bot gets everything. */
  readonly seesAll?: boolean;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

/** What goes wrong with one call; `cutAfter` and `hangAfter`: the fake has acted, and the answer does not arrive. */
export type TelegramFault =
  | 'cutBefore'
  | 'cutAfter'
  | 'hang'
  | 'hangAfter'
  | { readonly code: number; readonly description: string; readonly retryAfter?: number }
  /** Sent as it is. */
  | { readonly status: number; readonly body: string };

export interface TelegramCall {
  readonly method: string;
  readonly params: CallParams;
  /** The status of the answer; undefined when there was none. */
  status: number | undefined;
}

interface Waiting {
  readonly answer: (result: readonly object[]) => void;
  readonly conflict: () => void;
  readonly limit: number;
}

const conflict = 'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running';
const webhookSet = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
const maxBody = 52_428_800;
const usual = ['message', 'edited_message', 'channel_post', 'edited_channel_post', 'callback_query', 'poll'];

/** The Bot API of one bot on 127.0.0.1, strict about what it is asked, with a journal of what people see (`chats`). */
export class FakeTelegram implements AsyncDisposable {
  readonly token: string;
  readonly bot: TelegramPerson & { readonly username: string };
  readonly chats: TelegramChats;
  /** Every call, oldest first. */
  readonly calls: TelegramCall[] = [];
  /** Polls get nothing, whatever is kept for them. */
  withholdsUpdates = false;
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly #sockets = new Set<Socket>();
  readonly #faults: (readonly [string, TelegramFault])[] = [];
  readonly #limits = new Map<number, number>();
  readonly #seesAll: boolean;
  readonly #now: () => number;
  readonly #timers = new Set<NodeJS.Timeout>();
  #updates: { readonly update_id: number }[] = [];
  #lastUpdate = 500;
  #allowed: readonly string[] = usual;
  #waiting: Waiting | undefined;
  #hasWebhook = false;

  constructor({ token = '4242:TEST-token_of_the_bot', seesAll = false, now = Date.now }: FakeTelegramOptions) {
    this.token = token;
    this.bot = { id: Number(token.split(':')[0]), is_bot: true, first_name: 'Gate', username: 'gate_test_bot' };
    this.#seesAll = seesAll;
    this.#now = now;
    this.chats = new TelegramChats({ bot: this.bot, seesAll, now, push: (kind, what) => this.push({ [kind]: what }) });
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async listen(port = 0): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
  }

  /** The next calls of a method fail, one after the other. */
  fail(method: string, ...faults: readonly TelegramFault[]): void {
    this.#faults.push(...faults.map((fault) => [method, fault] as const));
  }

  /** A chat accepts nothing for so many seconds of the fake's clock; chat 0: none does. */
  limit(chat: number, seconds: number): void {
    this.#limits.set(chat, this.#now() + seconds * 1_000);
  }

  /** Another program sets a webhook: nobody polls until it is deleted. */
  setWebhook(): void {
    this.#hasWebhook = true;
    this.#waiting?.conflict();
  }

  /** Queues an update as it is; one of a kind that the bot did not ask for is not created. */
  push(update: object): void {
    const given = 'update_id' in update ? Number(update.update_id) : undefined;
    if (given !== undefined || Object.keys(update).some((kind) => this.#allowed.includes(kind))) {
      this.#lastUpdate = Math.max(this.#lastUpdate + 1, given ?? 0);
      this.#updates.push({ ...update, update_id: given ?? this.#lastUpdate });
    }
    const waiting = this.#waiting;
    if (waiting !== undefined && this.#updates.length > 0 && !this.withholdsUpdates) waiting.answer(this.#updates.slice(0, waiting.limit));
  }

  /** Ends the pending poll without updates, as its time does. */
  endPoll(): void {
    this.#waiting?.answer([]);
  }

  /** Cuts every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Updates that are not confirmed. */
  pending(): readonly number[] {
    return this.#updates.map(({ update_id }) => update_id);
  }

  isPolled(): boolean {
    return this.#waiting !== undefined;
  }

  callsOf(method: string): readonly TelegramCall[] {
    return this.calls.filter((call) => call.method === method);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const path = decodeURIComponent(request.url ?? '');
      if (path.startsWith('/file/bot')) return this.#serveFile(path, response);
      const [, token, method = ''] = /^\/bot([^/]+)\/(\w+)$/.exec(path) ?? [];
      const body = await bodyOf(request);
      if (token === undefined || !/^\d+:[\w-]+$/.test(token)) return refuse(response, new Refused(404, 'Not Found'));
      if (token !== this.token) return refuse(response, new Refused(401, 'Unauthorized'));
      if (!isKnownCall(method)) return refuse(response, new Refused(404, 'Not Found: method not found'));
      const params = body === undefined ? 'Bad Request: the body cannot be read' : readCall(method, body);
      const call: TelegramCall = { method, params: typeof params === 'string' ? {} : params, status: undefined };
      this.calls.push(call);
      response.once('finish', () => (call.status = response.statusCode));
      if (typeof params === 'string') return refuse(response, new Refused(400, params));
      return this.#answer(method, params, response);
    } catch {
      response.destroy();
    }
  }

  #serveFile(path: string, response: ServerResponse): void {
    const at = `/file/bot${this.token}/`;
    const bytes = path.startsWith(at) ? this.chats.fileAt(path.slice(at.length)) : undefined;
    const fault = this.#faultOf('file');
    if (fault === 'cutAfter' && bytes !== undefined) {
      response.writeHead(200, { 'content-length': bytes.byteLength + 1 });
      return void response.write(bytes, () => response.destroy());
    }
    if (bytes === undefined) return refuse(response, new Refused(404, 'Not Found'));
    response.writeHead(200, { 'content-type': 'application/octet-stream' });
    response.end(bytes);
  }

  #answer(method: string, params: CallParams, response: ServerResponse): void {
    const fault = this.#faultOf(method);
    if (fault === 'hang') return;
    if (fault === 'cutBefore') return void response.destroy();
    if (typeof fault === 'object' && 'body' in fault) return void response.writeHead(fault.status).end(fault.body);
    try {
      if (fault !== undefined && typeof fault === 'object') throw refusalOf(fault);
      this.#checkLimit(method, params);
      if (method === 'getUpdates') return this.#poll(params, response);
      const result = this.#call(method, params);
      if (fault === 'cutAfter') return void response.destroy();
      if (fault === 'hangAfter') return;
      send(response, 200, { ok: true, result });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      refuse(response, error);
    }
  }

  #faultOf(method: string): TelegramFault | undefined {
    const at = this.#faults.findIndex(([name]) => name === method);
    return at === -1 ? undefined : this.#faults.splice(at, 1)[0]?.[1];
  }

  #checkLimit(method: string, { chat_id: chat }: CallParams): void {
    if (typeof chat !== 'number' || !/^(?:send|edit)/.test(method)) return;
    const waitMs = Math.max(this.#limits.get(chat) ?? 0, this.#limits.get(0) ?? 0) - this.#now();
    if (waitMs > 0) throw refusalOf({ code: 429, description: '', retryAfter: Math.ceil(waitMs / 1_000) });
  }

  #call(method: string, params: CallParams): unknown {
    switch (method) {
      case 'getMe':
        return { ...this.bot, can_join_groups: true, can_read_all_group_messages: this.#seesAll, supports_inline_queries: false };
      case 'getWebhookInfo':
        return { url: this.#hasWebhook ? 'https://example.org/' : '', has_custom_certificate: false, pending_update_count: this.#updates.length };
      case 'deleteWebhook':
        this.#hasWebhook = false;
        if (params['drop_pending_updates'] === true) this.#updates = [];
        return true;
      default:
        return this.chats.call(method, params);
    }
  }

  /** Confirms what is below the offset, and answers with what is there, or waits. */
  #poll(params: CallParams, response: ServerResponse): void {
    if (this.#hasWebhook) throw new Refused(409, webhookSet);
    const { offset, limit = 100, timeout = 0, allowed_updates: allowed } = params;
    if (Array.isArray(allowed)) this.#allowed = allowed.length === 0 ? usual : (allowed as string[]);
    if (typeof offset === 'number' && offset > 0) this.#updates = this.#updates.filter((update) => update.update_id >= offset);
    if (typeof offset === 'number' && offset < 0) this.#updates = this.#updates.slice(offset);
    this.#waiting?.conflict();
    const most = Math.min(100, Math.max(1, Number(limit)));
    const offered = this.withholdsUpdates ? [] : this.#updates.slice(0, most);
    if (offered.length > 0 || timeout === 0) return send(response, 200, { ok: true, result: offered });
    const end = (): void => {
      clearTimeout(timer);
      this.#timers.delete(timer);
      if (this.#waiting === waiting) this.#waiting = undefined;
    };
    const waiting: Waiting = {
      limit: most,
      answer: (result) => {
        end();
        send(response, 200, { ok: true, result });
      },
      conflict: () => {
        end();
        refuse(response, new Refused(409, this.#hasWebhook ? webhookSet : conflict));
      },
    };
    const timer = setTimeout(() => waiting.answer([]), Number(timeout) * 1_000);
    this.#timers.add(timer);
    this.#waiting = waiting;
    response.once('close', end);
  }
}

/** Starts a fake on a free port. */
export async function startFakeTelegram(options: FakeTelegramOptions = {}): Promise<FakeTelegram> {
  const telegram = new FakeTelegram(options);
  await telegram.listen();
  return telegram;
}

const refusalOf = ({
  code,
  description,
  retryAfter,
}: {
  readonly code: number;
  readonly description: string;
  readonly retryAfter?: number;
}): Refused =>
  retryAfter === undefined
    ? new Refused(code, description)
    : new Refused(429, `Too Many Requests: retry after ${retryAfter}`, { retry_after: retryAfter });

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

const refuse = (response: ServerResponse, { code, message, parameters }: Refused): void =>
  send(response, code, { ok: false, error_code: code, description: message, ...(parameters && { parameters }) });

/** Returns the fields of a call; undefined when its body cannot be read. */
async function bodyOf(request: IncomingMessage): Promise<Readonly<Record<string, unknown>> | undefined> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.byteLength;
    if (size > maxBody) return undefined;
    parts.push(part);
  }
  const body = Buffer.concat(parts);
  const type = request.headers['content-type'] ?? '';
  try {
    if (type.includes('multipart/form-data')) return await fieldsOf(body, type);
    return body.byteLength === 0 ? {} : (JSON.parse(body.toString()) as Readonly<Record<string, unknown>>);
  } catch {
    return undefined;
  }
}

async function fieldsOf(body: Buffer, type: string): Promise<Readonly<Record<string, unknown>>> {
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData();
  const files: Record<string, unknown> = {};
  const texts: Record<string, string> = {};
  for (const [name, value] of form)
    if (typeof value === 'string') texts[name] = value;
    else files[name] = { name: value.name, bytes: new Uint8Array(await value.arrayBuffer()) };
  // A field may name the part that has its file.
  const attached = Object.entries(texts).filter(([, text]) => text.startsWith('attach://'));
  for (const [name, text] of attached) {
    const part = text.slice('attach://'.length);
    files[name] = files[part];
    Reflect.deleteProperty(files, part);
    Reflect.deleteProperty(texts, name);
  }
  return { ...texts, ...files };
}
