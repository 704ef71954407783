import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { accountOf, type MatrixAccount, type ShownMessage, shownMessages } from './fake-matrix-people.ts';
import { messagesPage, positionIn, relationsPage, shownEvent, syncAnswer, type SyncFilter } from './fake-matrix-sync.ts';
import { type Content, type FakeEvent, type FakeRoom, FakeWorld, MatrixError } from './fake-matrix-world.ts';

/** What happens to a request instead of its answer. */
export type MatrixFault =
  | { readonly is: 'answer'; readonly status: number; readonly body?: object; readonly headers?: Readonly<Record<string, string>> }
  /** The connection ends before the homeserver acts, or after. */
  | { readonly is: 'cutBefore' | 'cutAfter' }
  /** No answer comes; `hangAfter`: the homeserver has acted. */
  | { readonly is: 'hang' | 'hangAfter' };

export interface MatrixRequest {
  readonly method: string;
  /** Decoded. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** A homeserver of Matrix on 127.0.0.1, with the client-server API that bots use. */
export interface FakeMatrix extends AsyncDisposable {
  readonly url: string;
  /** Requests in their order, without tokens. */
  readonly requests: readonly MatrixRequest[];
  /** Requests to endpoints that it does not have. */
  readonly unknown: readonly string[];
  account(name: string, displayName?: string): MatrixAccount;
  /** Makes the next requests fail whose `METHOD /path` matches. */
  fault(on: RegExp, fault: MatrixFault, times?: number): void;
  /** Forgets faults that have not happened yet. */
  clearFaults(): void;
  /** Answers all long polls with nothing, as at the end of their time. */
  endPolls(): void;
  /** Number of pending long polls. */
  readonly polls: number;
  revoke(token: string): void;
  /** Forgets all positions that clients have. */
  forgetPositions(): void;
  /** Messages of a room as people see them: changed, without those that are deleted. */
  shown(roomId: string): readonly ShownMessage[];
  /** Members of a room by user. */
  members(roomId: string): Readonly<Record<string, string>>;
  /** Users who are shown as writing, with the room. */
  readonly typing: readonly string[];
  topic(roomId: string): string | undefined;
  /** Why somebody left a room. */
  reason(roomId: string, userId: string): string | undefined;
}

export interface FakeMatrixOptions {
  /** Largest file. */
  readonly uploadSize?: number;
  /** It knows only the older paths of files. */
  readonly isOld?: boolean;
}

interface Session {
  readonly userId: string;
  readonly deviceId: string;
  readonly token: string;
}

interface Context {
  readonly session: Session;
  readonly query: URLSearchParams;
  readonly params: readonly string[];
  readonly body: Content;
  readonly raw: Buffer;
  readonly headers: IncomingMessage['headers'];
}
type Handler = (context: Context) => unknown;

const file = (bytes: Uint8Array, mediaType: string) => ({ bytes, mediaType });

export async function startFakeMatrix({ uploadSize = 1_000_000, isOld = false }: FakeMatrixOptions = {}): Promise<FakeMatrix> {
  const world = new FakeWorld();
  const sessions = new Map<string, Session>();
  const transactions = new Map<string, string>();
  const filters: SyncFilter[] = [];
  const files = new Map<string, ReturnType<typeof file>>();
  const requests: MatrixRequest[] = [];
  const unknown: string[] = [];
  const typing: string[] = [];
  const faults: { readonly on: RegExp; readonly fault: MatrixFault; left: number }[] = [];
  const polls = new Set<() => void>();
  let oldest = 0;

  /** The same transaction of the same device is one event. */
  const once = ({ session, params }: Context, type: string, send: (transactionId: string) => FakeEvent): object => {
    const transactionId = params.at(-1) ?? '';
    const key = [session.token, type, params[0], transactionId].join(' ');
    const eventId = transactions.get(key) ?? send(transactionId).event_id;
    transactions.set(key, eventId);
    return { event_id: eventId };
  };
  const memberRoom = (context: Context): FakeRoom => {
    const room = world.room(context.params[0] ?? '');
    if (room.membership(context.session.userId) !== 'join') throw new MatrixError(403, 'M_FORBIDDEN', 'You are not in this room');
    return room;
  };
  const textIn = (body: Content, name: string): string => {
    const value = body[name];
    if (typeof value !== 'string') throw new MatrixError(400, 'M_BAD_JSON', `${name} is missing`);
    return value;
  };
  const reasonIn = ({ reason }: Content): Content => (typeof reason === 'string' ? { reason } : {});
  const ownOnly = ({ session, params }: Context, at = 0): void => {
    if (params[at] !== session.userId) throw new MatrixError(403, 'M_FORBIDDEN', 'Not your account');
  };
  const store = (bytes: Uint8Array, mediaType: string): string => {
    const id = randomBytes(12).toString('hex');
    files.set(id, file(bytes, mediaType));
    return `mxc://fake.test/${id}`;
  };

  async function sync({ session, query }: Context): Promise<object> {
    const since = positionIn(query.get('since'));
    if (since !== undefined && since < oldest) throw new MatrixError(400, 'M_UNKNOWN_POS', 'Unknown position');
    const name = query.get('filter') ?? '{}';
    const filter = name.startsWith('{') ? (JSON.parse(name) as SyncFilter) : filters[Number(name)];
    if (filter === undefined) throw new MatrixError(404, 'M_NOT_FOUND', 'No such filter');
    const isFull = query.get('full_state') === 'true' || since === undefined;
    const answer = () => syncAnswer(world, { userId: session.userId, since, isFull, filter });
    const timeoutMs = isFull ? 0 : Number(query.get('timeout') ?? 0);
    for (let isOver = timeoutMs === 0; ;) {
      const { isEmpty, body } = answer();
      if (!isEmpty || isOver) return body;
      await new Promise<void>((resolve) => {
        const end = () => {
          isOver = true;
          wake();
        };
        const timer = setTimeout(end, timeoutMs);
        const cancel = world.onChange(() => wake());
        polls.add(end);
        function wake(): void {
          clearTimeout(timer);
          cancel();
          polls.delete(end);
          resolve();
        }
      });
      if (!sessions.has(session.token)) throw new MatrixError(401, 'M_UNKNOWN_TOKEN', 'Unknown access token');
    }
  }

  const download: Handler = ({ params }) => {
    const stored = params[0] === 'fake.test' ? files.get(params[1] ?? '') : undefined;
    if (stored === undefined) throw new MatrixError(404, 'M_NOT_FOUND', 'No such file');
    return stored;
  };
  const join: Handler = ({ session, params }) => ({ room_id: world.join(params[0] ?? '', session.userId).id });
  const expel =
    (membership: 'leave' | 'ban'): Handler =>
    ({ session, params, body }) => {
      world.expel(params[0] ?? '', session.userId, textIn(body, 'user_id'), membership, reasonIn(body));
      return {};
    };
  const relations: Handler = (context) =>
    relationsPage(memberRoom(context), context.params[1] ?? '', context.params[2], context.params[3], context.query);
  const media = (path: string, handler: Handler): [string, Handler][] => [
    ...(isOld ? [] : [[`GET client/v1/media/${path}`, handler] satisfies [string, Handler]]),
    [`GET media/v3/${path}`, handler],
  ];

  const handlers: readonly [string, Handler][] = [
    ['GET client/v3/account/whoami', ({ session: { userId, deviceId } }) => ({ user_id: userId, device_id: deviceId, is_guest: false })],
    ['GET client/v3/capabilities', () => ({ capabilities: { 'm.room_versions': { default: '10', available: { '10': 'stable' } } } })],
    ['GET client/v3/pushrules/', () => ({ global: { override: [], content: [], room: [], sender: [], underride: [] } })],
    ['GET client/v3/voip/turnServer', () => ({})],
    ['POST client/v3/user/*/filter', (context) => (ownOnly(context), { filter_id: String(filters.push(context.body) - 1) })],
    [
      'GET client/v3/user/*/filter/*',
      (context) => {
        ownOnly(context);
        const found = filters[Number(context.params[1])];
        if (found === undefined) throw new MatrixError(404, 'M_NOT_FOUND', 'No such filter');
        return found;
      },
    ],
    [
      'GET client/v3/user/*/account_data/*',
      (context) => {
        ownOnly(context);
        const found = world.account(context.session.userId).data.get(context.params[1] ?? '');
        if (found === undefined) throw new MatrixError(404, 'M_NOT_FOUND', 'Account data not found');
        return found.content;
      },
    ],
    [
      'PUT client/v3/user/*/account_data/*',
      (context) => {
        ownOnly(context);
        world.setAccountData(context.session.userId, context.params[1] ?? '', context.body);
        return {};
      },
    ],
    ['GET client/v3/profile/*', ({ params }) => ({ displayname: world.account(params[0] ?? '').displayName })],
    ['GET client/v3/profile/*/displayname', ({ params }) => ({ displayname: world.account(params[0] ?? '').displayName })],
    ['GET client/v3/sync', sync],
    ['POST client/v3/join/*', join],
    ['POST client/v3/rooms/*/join', join],
    ['POST client/v3/rooms/*/leave', ({ session, params, body }) => (world.leave(params[0] ?? '', session.userId, reasonIn(body)), {})],
    ['POST client/v3/rooms/*/invite', ({ session, params, body }) => (world.invite(params[0] ?? '', session.userId, textIn(body, 'user_id')), {})],
    ['POST client/v3/rooms/*/kick', expel('leave')],
    ['POST client/v3/rooms/*/ban', expel('ban')],
    [
      'GET client/v3/rooms/*/joined_members',
      (context) => {
        const members = [...memberRoom(context).stateAt().values()].filter(
          ({ type, content }) => type === 'm.room.member' && content['membership'] === 'join',
        );
        return {
          joined: Object.fromEntries(members.map(({ state_key: userId = '', content }) => [userId, { display_name: content['displayname'] }])),
        };
      },
    ],
    [
      'GET client/v3/rooms/*/members',
      (context) => {
        const room = memberRoom(context);
        return { chunk: [...room.stateAt().values()].filter(({ type }) => type === 'm.room.member').map((event) => shownEvent(room, event)) };
      },
    ],
    [
      'PUT client/v3/rooms/*/state/*/*',
      ({ session, params: [roomId = '', type = '', stateKey = ''], body }) => ({
        event_id: world.send(roomId, session.userId, { type, stateKey, content: body }).event_id,
      }),
    ],
    [
      'GET client/v3/rooms/*/state/*/*',
      (context) => {
        const found = memberRoom(context).stateAt().get(`${context.params[1]} ${context.params[2]}`);
        if (found === undefined) throw new MatrixError(404, 'M_NOT_FOUND', 'State not found');
        return found.content;
      },
    ],
    [
      'PUT client/v3/rooms/*/send/*/*',
      (context) =>
        once(context, 'send', (transactionId) => {
          const [roomId = '', type = ''] = context.params;
          if (type === 'm.room.message' && (typeof context.body['msgtype'] !== 'string' || typeof context.body['body'] !== 'string'))
            throw new MatrixError(400, 'M_BAD_JSON', 'A message has a msgtype and a body');
          return world.send(roomId, context.session.userId, { type, content: context.body, transactionId });
        }),
    ],
    [
      'PUT client/v3/rooms/*/redact/*/*',
      (context) =>
        once(context, 'redact', (transactionId) => {
          const [roomId = '', redacts = ''] = context.params;
          return world.send(roomId, context.session.userId, { type: 'm.room.redaction', content: reasonIn(context.body), redacts, transactionId });
        }),
    ],
    [
      'PUT client/v3/rooms/*/typing/*',
      (context) => {
        ownOnly(context, 1);
        typing.push(`${context.session.userId} ${memberRoom(context).id}`);
        return {};
      },
    ],
    ['POST client/v3/rooms/*/receipt/*/*', (context) => (memberRoom(context), {})],
    ['POST client/v3/rooms/*/read_markers', (context) => (memberRoom(context), {})],
    ['GET client/v3/rooms/*/messages', (context) => messagesPage(memberRoom(context), context.query)],
    [
      'GET client/v3/rooms/*/event/*',
      (context) => {
        const room = memberRoom(context);
        return shownEvent(room, room.find(context.params[1] ?? ''));
      },
    ],
    [
      'GET client/v3/rooms/*/context/*',
      (context) => {
        const room = memberRoom(context);
        const event = room.find(context.params[1] ?? '');
        const [start, end] = [`s${event.position - 1}`, `s${event.position}`];
        return { event: shownEvent(room, event), events_before: [], events_after: [], start, end, state: [] };
      },
    ],
    ['GET client/v1/rooms/*/relations/*', relations],
    ['GET client/v1/rooms/*/relations/*/*', relations],
    ['GET client/v1/rooms/*/relations/*/*/*', relations],
    [
      'POST media/v3/upload',
      ({ raw, headers }) => {
        if (raw.byteLength > uploadSize) throw new MatrixError(413, 'M_TOO_LARGE', 'The file is too large');
        return { content_uri: store(raw, headers['content-type'] ?? 'application/octet-stream') };
      },
    ],
    ...media('config', () => ({ 'm.upload.size': uploadSize })),
    ...media('download/*/*', download),
  ];
  const routes = handlers.map(([route, handler]) => ({ pattern: new RegExp(`^${route.replaceAll('*', '([^/]*)')}$`), handler }));

  function handle(method: string, path: string, query: URLSearchParams, raw: Buffer, headers: IncomingMessage['headers']): unknown {
    if (method === 'GET' && path === '/_matrix/client/versions')
      return { versions: isOld ? ['v1.1', 'v1.6'] : ['v1.1', 'v1.6', 'v1.11'], unstable_features: {} };
    const at = `${method} ${path.replace(/^\/_matrix\//, '')}`;
    const found = routes.find(({ pattern }) => pattern.test(at));
    if (found === undefined) {
      unknown.push(at);
      throw new MatrixError(404, 'M_UNRECOGNIZED', 'Unrecognized request');
    }
    const token = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1];
    if (token === undefined) throw new MatrixError(401, 'M_MISSING_TOKEN', 'Missing access token');
    const session = sessions.get(token);
    if (session === undefined) throw new MatrixError(401, 'M_UNKNOWN_TOKEN', 'Unknown access token', { soft_logout: false });
    const params = (found.pattern.exec(at) ?? []).slice(1).map(decodeURIComponent);
    const isJson = raw.byteLength > 0 && !path.endsWith('/upload');
    return found.handler({ session, query, params, raw, headers, body: isJson ? parseBody(raw) : {} });
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const url = new URL(request.url ?? '/', 'http://127.0.0.1');
    const method = request.method ?? '';
    const path = decodeURIComponent(url.pathname);
    requests.push({ method, path, query: url.searchParams });
    const scripted = faults.find(({ on, left }) => left > 0 && on.test(`${method} ${path}`));
    if (scripted !== undefined) scripted.left -= 1;
    const fault = scripted?.fault;
    if (fault?.is === 'hang') return;
    if (fault?.is === 'cutBefore') return void request.socket.destroy();
    if (fault?.is === 'answer') return answer(response, fault.status, fault.body ?? {}, fault.headers);
    try {
      const body = await handle(method, url.pathname, url.searchParams, Buffer.concat(chunks), request.headers);
      if (fault?.is === 'cutAfter') return void request.socket.destroy();
      if (fault?.is === 'hangAfter') return;
      answer(response, 200, body);
    } catch (error) {
      if (!(error instanceof MatrixError)) throw error;
      answer(response, error.status, error.body);
    }
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      if (!response.headersSent && !response.destroyed) answer(response, 500, { errcode: 'M_UNKNOWN', error: String(error) });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    unknown,
    typing,
    account(name, displayName = name) {
      const userId = world.addAccount(name, displayName);
      const token = `syt_${randomBytes(18).toString('base64url')}`;
      sessions.set(token, { userId, deviceId: `D${name.toUpperCase()}`, token });
      return accountOf(world, store, userId, token);
    },
    fault: (on, fault, times = 1) => void faults.push({ on, fault, left: times }),
    clearFaults: () => void faults.splice(0),
    endPolls() {
      for (const end of polls) end();
    },
    get polls() {
      return polls.size;
    },
    revoke(token) {
      sessions.delete(token);
      world.wake();
    },
    forgetPositions: () => void (oldest = world.position + 1),
    shown: (roomId) => shownMessages(world.room(roomId)),
    members: (roomId) =>
      Object.fromEntries(
        [...world.room(roomId).stateAt().values()]
          .filter(({ type }) => type === 'm.room.member')
          .map(({ state_key: userId = '', content }) => [userId, String(content['membership'])]),
      ),
    topic: (roomId) => world.room(roomId).stateAt().get('m.room.topic ')?.content['topic'] as string | undefined,
    reason: (roomId, userId) => world.room(roomId).stateAt().get(`m.room.member ${userId}`)?.content['reason'] as string | undefined,
    async [Symbol.asyncDispose]() {
      for (const end of polls) end();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function parseBody(raw: Buffer): Content {
  let value: unknown;
  try {
    value = JSON.parse(raw.toString());
  } catch {
    throw new MatrixError(400, 'M_NOT_JSON', 'Content not JSON');
  }
  if (typeof value !== 'object' || value === null) throw new MatrixError(400, 'M_BAD_JSON', 'Content must be an object');
  return value as Content;
}

function answer(response: ServerResponse, status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
  if (typeof body === 'object' && body !== null && 'bytes' in body && 'mediaType' in body) {
    response.writeHead(status, { 'content-type': String(body.mediaType) });
    response.end(body.bytes);
    return;
  }
  response.writeHead(status, { 'content-type': 'application/json', 'access-control-allow-origin': '*', ...headers });
  response.end(JSON.stringify(body));
}
