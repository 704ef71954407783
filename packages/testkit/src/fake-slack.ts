import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { slackMethods } from './fake-slack-methods.ts';
import { FakeSocket } from './fake-slack-socket.ts';
import {
  botUser,
  type FakeSlackChannel,
  type FakeSlackKind,
  type FakeSlackMessage,
  homeWorkspace,
  type SeenMessage,
  SlackFailure,
  Workspace,
} from './fake-slack-workspace.ts';

/** What happens to the next call of a method instead of an answer. */
export type SlackFault =
  | { readonly is: 'error'; readonly error: string }
  | { readonly is: 'limited'; readonly seconds?: number }
  | { readonly is: 'status'; readonly status: number }
  /** Text of something between us and Slack, under status 200. */
  | { readonly is: 'page'; readonly text: string }
  | { readonly is: 'cutBefore' }
  | { readonly is: 'cutAfter' }
  | { readonly is: 'hang' }
  /** Slack has acted, and no answer comes. */
  | { readonly is: 'hangAfter' };

export interface SlackCall {
  readonly method: string;
  readonly params: Readonly<Record<string, string>>;
  readonly userAgent: string;
}

export interface FakeSlackOptions {
  /** Time of the messages. */
  readonly now?: () => number;
}

interface WriteOptions {
  readonly threadTs?: string;
  readonly file?: { readonly name: string; readonly mediaType: string; readonly bytes: Uint8Array; readonly isVoice?: boolean };
  readonly atMs?: number;
}

interface Envelope {
  readonly id: string;
  readonly type: 'events_api' | 'interactive';
  readonly payload: object;
  attempts: number;
}

const maxBody = 64 * 1024 * 1024;

/** Slack with one workspace and one app: Web API, socket mode, and the people who write there. */
export class FakeSlack implements AsyncDisposable {
  readonly botToken = 'xoxb-fake-bot';
  readonly appToken = 'xapp-fake-app';
  readonly botUser = botUser;
  /** Calls of the Web API, oldest first. */
  readonly calls: SlackCall[] = [];
  /** Ids of acknowledged envelopes. */
  readonly acknowledged: string[] = [];
  /** Connections that were greeted. */
  connections = 0;
  /** Events are neither sent nor sent again. */
  withholdsEvents = false;
  readonly #workspace: Workspace;
  readonly #server = createServer((request, response) => void this.#serve(request, response).catch(() => response.destroy()));
  readonly #sockets = new Set<Socket>();
  readonly #webSockets: FakeSocket[] = [];
  readonly #waiting = new Map<string, Envelope>();
  readonly #faults = new Map<string, SlackFault[]>();
  readonly #tickets = new Set<string>();
  readonly #uploads = new Map<string, { readonly name: string; readonly length: number; bytes: Buffer | undefined }>();
  #port = 0;

  constructor({ now = Date.now }: FakeSlackOptions) {
    this.#workspace = new Workspace(now);
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => {});
    });
    this.#server.on('upgrade', (request, socket) => this.#upgrade(request, socket));
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The value of `apiUrl`. */
  get apiUrl(): string {
    return `${this.url}/api/`;
  }

  /** Open WebSockets. */
  get open(): number {
    return this.#webSockets.length;
  }

  /** Answers of clients to pings. */
  get pongs(): number {
    return this.#webSockets.reduce((sum, { pongs }) => sum + pongs, 0);
  }

  /** Envelopes that nobody acknowledged. */
  get unacknowledged(): number {
    return this.#waiting.size;
  }

  async listen(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.listen(this.#port, '127.0.0.1', resolve);
    await promise;
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Nobody listens until `listen`. */
  async stop(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    for (const socket of this.#sockets) socket.destroy();
    await promise;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** The next calls of a method, of `upload` or of `file` end in these ways. */
  fault(method: string, ...faults: readonly SlackFault[]): void {
    this.#faults.set(method, [...(this.#faults.get(method) ?? []), ...faults]);
  }

  callsOf(method: string): SlackCall[] {
    return this.calls.filter((call) => call.method === method);
  }

  /** Returns the id of a new person. */
  person(name: string, { workspace = homeWorkspace, isBot = false } = {}): string {
    const id = this.#workspace.newId('U');
    this.#workspace.users.set(id, { id, name, workspace, isBot });
    return id;
  }

  /** Returns the id of a new conversation, of which the app is a member. */
  channel(name: string, kind: FakeSlackKind = 'channel', members: readonly string[] = []): string {
    return this.#workspace.addChannel(kind, name, [botUser, ...members]).id;
  }

  /** Returns the id of the direct conversation of a person with the app. */
  im(user: string): string {
    const known = [...this.#workspace.channels.values()].find(({ kind, members }) => kind === 'im' && members.has(user));
    return known?.id ?? this.channel('', 'im', [user]);
  }

  /** The app is not a member any more. */
  leave(channel: string): void {
    this.#workspace.channelOf(channel).members.delete(botUser);
  }

  /** Somebody writes; returns the id of the message. */
  write(user: string, channelId: string, text: string, { threadTs, file, atMs }: WriteOptions = {}): string {
    const channel = this.#workspace.channelOf(channelId);
    const files =
      file === undefined
        ? []
        : [{ ...file, id: this.#workspace.newId('F'), bytes: Buffer.from(file.bytes), subtype: file.isVoice === true ? 'slack_audio' : undefined }];
    for (const one of files) this.#workspace.files.set(one.id, one);
    const message: FakeSlackMessage = {
      ts: this.#workspace.nextTs(atMs),
      threadTs,
      user,
      isApp: this.#workspace.users.get(user)?.isBot === true,
      text,
      blocks: [],
      subtype: files.length > 0 ? 'file_share' : undefined,
      edited: undefined,
      metadata: undefined,
      files,
      reactions: new Map(),
    };
    channel.messages.push(message);
    this.#reportMessage(channel, message);
    return message.ts;
  }

  /** Somebody edits a message. */
  edit(channelId: string, ts: string, text: string): void {
    const channel = this.#workspace.channelOf(channelId);
    const message = this.#workspace.messageOf(channel, ts);
    const before = this.#workspace.shape(channel, message);
    message.text = text;
    message.edited = this.#workspace.nextTs();
    this.#report(channel, { subtype: 'message_changed', message: this.#workspace.shape(channel, message), previous_message: before, hidden: true });
  }

  /** Slack adds a preview: the message changes, its text does not. */
  unfurl(channelId: string, ts: string): void {
    const channel = this.#workspace.channelOf(channelId);
    const before = this.#workspace.shape(channel, this.#workspace.messageOf(channel, ts));
    this.#report(channel, { subtype: 'message_changed', message: { ...before, attachments: [{}] }, previous_message: before, hidden: true });
  }

  /** Somebody deletes a message. */
  remove(channelId: string, ts: string): void {
    const channel = this.#workspace.channelOf(channelId);
    const message = this.#workspace.messageOf(channel, ts);
    channel.messages.splice(channel.messages.indexOf(message), 1);
    this.#report(channel, { subtype: 'message_deleted', deleted_ts: ts, previous_message: this.#workspace.shape(channel, message), hidden: true });
  }

  /** Somebody joins: a message that nobody wrote. */
  join(user: string, channelId: string): void {
    const channel = this.#workspace.channelOf(channelId);
    channel.members.add(user);
    this.#report(channel, { subtype: 'channel_join', user, text: `<@${user}> has joined the channel` });
  }

  /** Somebody presses the button with this value. */
  press(user: string, channelId: string, ts: string, value: string): void {
    const channel = this.#workspace.channelOf(channelId);
    const message = this.#workspace.messageOf(channel, ts);
    if (!this.seen(channelId, message.threadTs).some((one) => one.ts === ts && one.buttons.some((button) => button.value === value)))
      throw new Error(`The message has no button ${value}`);
    const { name = '', workspace = homeWorkspace } = this.#workspace.users.get(user) ?? {};
    this.#send('interactive', {
      type: 'block_actions',
      user: { id: user, username: name.toLowerCase(), name, team_id: workspace },
      container: { type: 'message', message_ts: ts, channel_id: channelId, ...(message.threadTs !== undefined && { thread_ts: message.threadTs }) },
      channel: { id: channelId, name: channel.name },
      message: this.#workspace.shape(channel, message),
      actions: [{ type: 'button', action_id: 'gatehouse_0', block_id: 'b', value, action_ts: this.#workspace.nextTs() }],
    });
  }

  /** Returns what somebody who opens the conversation, or the thread, sees. */
  seen(channel: string, threadTs?: string): SeenMessage[] {
    return this.#workspace.seen(channel, threadTs);
  }

  channelState(id: string): Pick<FakeSlackChannel, 'topic' | 'purpose' | 'isArchived' | 'name' | 'pins' | 'bookmarks' | 'members'> {
    return this.#workspace.channelOf(id);
  }

  fileBytes(name: string): Buffer | undefined {
    return [...this.#workspace.files.values()].find((file) => file.name === name)?.bytes;
  }

  /** Ids of the files of a name. */
  fileId(name: string): string {
    return [...this.#workspace.files.values()].find((file) => file.name === name)?.id ?? '';
  }

  /** Three seconds pass: what was not acknowledged comes again. */
  repeat(): void {
    for (const envelope of this.#waiting.values()) {
      envelope.attempts += 1;
      this.#deliver(envelope);
    }
  }

  /** Sends any text to the clients. */
  sendRaw(text: string): void {
    for (const socket of this.#webSockets) socket.send(text);
  }

  /** Slack asks its clients to connect again. */
  askToDisconnect(reason: 'refresh_requested' | 'warning' | 'link_disabled' = 'refresh_requested'): void {
    this.sendRaw(JSON.stringify({ type: 'disconnect', reason, debug_info: { host: 'fake' } }));
  }

  ping(): void {
    for (const socket of this.#webSockets) socket.ping();
  }

  /** Cuts all WebSockets. */
  drop(): void {
    for (const socket of this.#webSockets) socket.destroy();
  }

  /** The connections stay open, but nothing comes over them any more. */
  fallSilent(): void {
    for (const socket of this.#webSockets) socket.isSilent = true;
  }

  #reportMessage(channel: FakeSlackChannel, message: FakeSlackMessage): void {
    const shape = this.#workspace.shape(channel, message);
    this.#report(channel, shape);
    if (channel.kind !== 'im' && message.text.includes(`<@${botUser}>`)) this.#report(channel, { ...shape, type: 'app_mention' });
  }

  #report(channel: FakeSlackChannel, event: object): void {
    if (!channel.members.has(botUser)) return;
    const ts = this.#workspace.nextTs();
    this.#send('events_api', {
      token: 'verification',
      team_id: homeWorkspace,
      api_app_id: 'A00000001',
      type: 'event_callback',
      event_id: this.#workspace.newId('Ev'),
      event_time: Math.floor(Number(ts)),
      event: { type: 'message', ts, ...event, channel: channel.id, channel_type: channel.kind, event_ts: ts },
    });
  }

  #send(type: Envelope['type'], payload: object): void {
    if (this.withholdsEvents) return;
    const envelope: Envelope = { id: this.#workspace.newId('e'), type, payload, attempts: 0 };
    this.#waiting.set(envelope.id, envelope);
    this.#deliver(envelope);
  }

  #deliver({ id, type, payload, attempts }: Envelope): void {
    this.#webSockets.at(-1)?.send(
      JSON.stringify({
        envelope_id: id,
        type,
        payload,
        accepts_response_payload: type === 'interactive',
        ...(type === 'events_api' && { retry_attempt: attempts, retry_reason: attempts === 0 ? '' : 'timeout' }),
      }),
    );
  }

  #upgrade(request: IncomingMessage, socket: Duplex): void {
    const ticket = new URL(request.url ?? '', this.url).searchParams.get('ticket') ?? '';
    if (!this.#tickets.delete(ticket)) return void socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    const opened = new FakeSocket(request, socket);
    this.#webSockets.push(opened);
    opened.onText = (text) => this.#acknowledge(text);
    opened.onClose = () => this.#webSockets.splice(this.#webSockets.indexOf(opened), 1);
    this.connections += 1;
    opened.send(
      JSON.stringify({
        type: 'hello',
        num_connections: this.#webSockets.length,
        connection_info: { app_id: 'A00000001' },
        debug_info: { host: 'fake', approximate_connection_time: 18_060 },
      }),
    );
    opened.ping();
  }

  #acknowledge(text: string): void {
    const { envelope_id: id } = JSON.parse(text) as { readonly envelope_id: string };
    if (this.#waiting.delete(id)) this.acknowledged.push(id);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? '', this.url).pathname;
    const body = await bodyOf(request);
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    if (path.startsWith('/upload/v1/')) return this.#receiveFile(path.slice('/upload/v1/'.length), request, body, response);
    if (path.startsWith('/files/')) return this.#serveFile(path.slice('/files/'.length), token, response);
    if (!path.startsWith('/api/') || request.method !== 'POST') return void response.writeHead(404).end();
    const method = path.slice('/api/'.length);
    const params = Object.fromEntries(new URLSearchParams(body.toString()));
    this.calls.push({ method, params, userAgent: request.headers['user-agent'] ?? '' });
    const fault = this.#faults.get(method)?.shift();
    if (fault === undefined || fault.is === 'cutAfter' || fault.is === 'hangAfter') {
      const answer = this.#answer(method, params, token, request.headers['content-type'] ?? '');
      if (fault === undefined) return sendJson(response, answer);
      return fault.is === 'cutAfter' ? void response.destroy() : undefined;
    }
    fail(fault, response);
  }

  #answer(method: string, params: Readonly<Record<string, string>>, token: string | undefined, contentType: string): object {
    const known = Object.hasOwn(slackMethods, method) ? slackMethods[method] : undefined;
    if (known === undefined) return { ok: false, error: 'unknown_method' };
    if (token === undefined) return { ok: false, error: 'not_authed' };
    if (token !== this.botToken && token !== this.appToken) return { ok: false, error: 'invalid_auth' };
    if (token !== (known.token === 'bot' ? this.botToken : this.appToken)) return { ok: false, error: 'not_allowed_token_type' };
    const { required, optional, run } = known;
    if (!contentType.startsWith('application/x-www-form-urlencoded') && Object.keys(params).length > 0)
      return { ok: false, error: 'invalid_form_data' };
    const bad = [
      ...required.filter((name) => params[name] === undefined),
      ...Object.keys(params).filter((name) => !required.includes(name) && !optional.includes(name)),
    ];
    if (bad.length > 0) return { ok: false, error: 'invalid_arguments', response_metadata: { messages: bad.map((name) => `[ERROR] ${name}`) } };
    try {
      const answer = run(params, {
        workspace: this.#workspace,
        url: this.url,
        uploads: this.#uploads,
        openConnection: () => this.#openConnection(),
        posted: (channel, message) => this.#reportMessage(channel, message),
      });
      return { ok: true, ...answer };
    } catch (error) {
      if (error instanceof SlackFailure) return { ok: false, error: error.message };
      throw error;
    }
  }

  #openConnection(): string {
    const ticket = this.#workspace.newId('ticket-');
    this.#tickets.add(ticket);
    return `ws://127.0.0.1:${this.#port}/link/?ticket=${ticket}&app_id=A00000001`;
  }

  #receiveFile(id: string, request: IncomingMessage, body: Buffer, response: ServerResponse): void {
    const upload = this.#uploads.get(id);
    const [fault] = this.#faults.get('upload')?.splice(0, 1) ?? [];
    if (fault !== undefined) return fail(fault, response);
    const boundary = /boundary=(.+)$/.exec(request.headers['content-type'] ?? '')?.[1];
    const bytes = boundary === undefined ? body : firstPart(body, boundary);
    if (upload === undefined || bytes.length !== upload.length) return void response.writeHead(400).end('length');
    upload.bytes = bytes;
    response.writeHead(200).end(`OK - ${bytes.length}`);
  }

  #serveFile(id: string, token: string | undefined, response: ServerResponse): void {
    const file = this.#workspace.files.get(id);
    const [fault] = this.#faults.get('file')?.splice(0, 1) ?? [];
    if (fault !== undefined) return fail(fault, response);
    // As Slack does without the scope.
    if (token !== this.botToken) return void response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<html>Log in</html>');
    if (file === undefined) return void response.writeHead(404).end();
    response.writeHead(200, { 'content-type': file.mediaType, 'content-length': file.bytes.length }).end(file.bytes);
  }
}

/** Starts a fake Slack on 127.0.0.1. */
export async function startFakeSlack(options: FakeSlackOptions = {}): Promise<FakeSlack> {
  const slack = new FakeSlack(options);
  await slack.listen();
  return slack;
}

function fail(fault: SlackFault, response: ServerResponse): void {
  switch (fault.is) {
    case 'error':
      return sendJson(response, { ok: false, error: fault.error });
    case 'limited':
      response.writeHead(429, fault.seconds === undefined ? {} : { 'retry-after': String(fault.seconds) });
      return void response.end(JSON.stringify({ ok: false, error: 'ratelimited' }));
    case 'status':
      return void response.writeHead(fault.status, { 'content-type': 'text/html' }).end('<html></html>');
    case 'page':
      return void response.writeHead(200, { 'content-type': 'text/html' }).end(fault.text);
    case 'cutBefore':
    case 'cutAfter':
      return void response.destroy();
    case 'hang':
    case 'hangAfter':
  }
}

function sendJson(response: ServerResponse, body: object): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': bytes.length }).end(bytes);
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > maxBody) throw new Error('The request is too large');
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function firstPart(body: Buffer, boundary: string): Buffer {
  const start = body.indexOf('\r\n\r\n') + 4;
  return body.subarray(start, body.indexOf(`\r\n--${boundary}`, start));
}
