import { Agent } from 'node:http';
import { contract, type MethodName, type Route, routes, RpcReply, type TokenScope } from '@gatehouse/contract';
import { freePort } from '@gatehouse/testkit/free-port';
import { type Daemon, startDaemon } from './lib/daemon.ts';
import { exampleOf } from './lib/examples.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { askWith, nonceOf, proofConfig, startEchoProvider } from './lib/provider.ts';
import { openSocket, type Reply, rpcCall, type RpcSocket } from './lib/rpc.ts';

/**
 * R23: each method and each route against each kind of token, over `/rpc`, batches and `/ws` alike. The expectation is
 * written here a second time from the rules (decisions §2), so that a mistake in the product's own table shows.
 */
export interface R23Report {
  readonly cells: Readonly<Record<string, number>>;
  /** Cells with an unexpected outcome, each in one line. */
  readonly wrong: readonly string[];
}

interface Column {
  readonly name: string;
  /** Absent: no credential at all. */
  readonly secret?: string;
  /** Undefined for callers without a valid token. */
  readonly scopes?: readonly string[];
}

const secretOf = (name: string) => `matrix-token-${name}-${'x'.repeat(32)}`;
const granted: Readonly<Record<string, readonly TokenScope[]>> = {
  rpc: ['rpc'],
  api: ['api'],
  ws: ['ws'],
  'mcp-client': ['mcp-client'],
  admin: ['admin'],
  star: ['*'],
  empty: [],
  'ws-api': ['ws', 'api'],
};
const columns: readonly Column[] = [
  { name: 'none' },
  { name: 'wrong', secret: secretOf('wrong') },
  ...Object.entries(granted).map(([name, scopes]) => ({ name, secret: secretOf(name), scopes })),
];
const proven = columns.filter((column): column is Required<Column> => column.scopes !== undefined);

/** An empty list means all; `*` contains admin, admin contains rpc, nothing else contains anything. */
function holds(scopes: readonly string[], needed: string): boolean {
  if (scopes.length === 0 || scopes.includes('*')) return true;
  return scopes.includes(needed) || (needed === 'rpc' && scopes.includes('admin'));
}
const opensCompat = (scopes: readonly string[]) => scopes.length === 0 || scopes.some((scope) => scope === 'rpc' || scope === 'api' || scope === '*');
const opensSocket = (scopes: readonly string[]) => holds(scopes, 'ws') || holds(scopes, 'rpc');

/** What a route requires, by its path alone (http-gateway.md §5; decisions §2). */
function opens(route: Route, scopes: readonly string[]): boolean {
  if (route.path.startsWith('/v1/')) return opensCompat(scopes);
  if (route.path === '/ws') return opensSocket(scopes);
  if (route.path === '/mcp') return holds(scopes, 'mcp-client');
  // REST, events, media and metrics alike.
  return route.path === '/rpc' || holds(scopes, 'rpc');
}
const openToAll: Readonly<Record<string, number>> = {
  '/health': 200,
  '/api/health': 200,
  '/openapi.json': 200,
  '/openrpc.json': 200,
  '/asyncapi.json': 200,
  '/': 200,
  '/frame': 200,
  // No file has this name; the dashboard's own are known to its page alone.
  '/assets/*file': 404,
  // A state that was not made here is worth nothing, whatever token comes with it.
  '/oauth/callback': 400,
  // No token replaces the signature of a webhook.
  '/hooks/webhook': 401,
  '/hooks/*path': 401,
};

/** A mapping that accepts every signed delivery. */
const webhooks = { token: 'secret-of-the-webhooks-of-the-proving-suite', mappings: [{ id: 'all' }] };

/** Methods whose scope the spec or the decisions print; the registry must not be wider. */
const printedAdmin: readonly string[] = [
  'session.delete',
  'session.reset_conversation',
  'memory.store',
  'tools.list',
  'memory.delete',
  'memory.flush',
  'memory.export',
  'gateway.status',
  'gateway.restart',
  'daemon.setLogLevel',
];
const printedRpc: readonly string[] = [
  ...['status', 'history', 'list', 'export', 'reset', 'search', 'compact'].map((name) => `session.${name}`),
  ...['search', 'browse', 'embeddingCache', 'inspect', 'stats'].map((name) => `memory.${name}`),
  'context.conversations',
  'context.tree',
];

const unregistered: readonly string[] = [
  'context.inspect',
  'context.searchByConversation',
  'tool.invoke',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'system.ping ',
  'SYSTEM.PING',
  '',
];

const victim = { agentId: 'victim', tokenId: 'victim', sessionKey: 'victim:desk', memoryId: '' };
const nobody = { agentId: 'nobody', tokenId: 'nobody', sessionKey: 'nobody:desk', memoryId: '00000000-0000-4000-8000-000000000000' };

export async function proveAuthorityMatrix(
  options: {
    readonly broken?: string;
    /** Only whether this method is denied to the tokens that may not call it; everything by default. */
    readonly only?: MethodName;
    readonly progress?: (line: string) => void;
  } = {},
): Promise<R23Report> {
  const provider = await startEchoProvider();
  const home = await makeHome();
  const port = await freePort();
  const tokens = Object.entries(granted).map(([name, scopes]) => ({ id: `matrix-${name}`, secret: secretOf(name), scopes }));
  await writeConfig(home, proofConfig(provider.url, { gateway: { tokens }, embedding: { provider: 'local', model: 'fake-embedding' }, webhooks }));
  let daemon: Daemon | undefined;
  try {
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    const matrix = new Matrix(daemon, () => provider.served());
    await (options.only === undefined ? matrix.run() : matrix.runDenied(options.only));
    const total = Object.values(matrix.cells).reduce((sum, count) => sum + count, 0);
    options.progress?.(
      `R23: ${total} cells (${Object.entries(matrix.cells)
        .map(([name, count]) => `${name} ${count}`)
        .join(', ')}), ${matrix.wrong.length} wrong`,
    );
    return { cells: matrix.cells, wrong: matrix.wrong };
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}

class Matrix {
  readonly cells: Record<string, number> = {};
  readonly wrong: string[] = [];
  readonly #daemon: Daemon;
  readonly #served: () => number;
  readonly #agent = new Agent({ keepAlive: true });
  #counter = 0;

  constructor(daemon: Daemon, served: () => number) {
    this.#daemon = daemon;
    this.#served = served;
  }

  async run(): Promise<void> {
    this.#declared();
    await this.#prepare();
    const before = await this.#traces();
    await this.#unproven();
    for (const column of proven) await this.#methods(column, false);
    await this.#declaredScopesAreIgnored();
    const after = await this.#traces();
    this.#expect('traces', 'denied calls leave no trace', before === after, `before ${before}\nafter ${after}`);
    for (const column of proven) await this.#methods(column, true);
    await this.#unregisteredNames();
    await this.#routes();
    this.#agent.destroy();
  }

  /** The denied calls of one method. */
  async runDenied(method: MethodName): Promise<void> {
    await this.#prepare();
    const before = await this.#traces();
    for (const column of proven) await this.#methods(column, false, [method]);
    const after = await this.#traces();
    this.#expect('traces', 'denied calls leave no trace', before === after, `before ${before}\nafter ${after}`);
    this.#agent.destroy();
  }

  #expect(kind: string, cell: string, good: boolean, found: string): void {
    this.cells[kind] = (this.cells[kind] ?? 0) + 1;
    if (!good) this.wrong.push(`${kind}: ${cell}: ${found}`);
  }

  #declared(): void {
    for (const [name, method] of Object.entries(contract)) {
      const scope: string = method.scope;
      this.#expect('declared', name, scope === 'rpc' || scope === 'admin', `declares ${scope}`);
      if (printedAdmin.includes(name)) this.#expect('declared', name, scope === 'admin', `declares ${scope}, the spec prints admin`);
      if (printedRpc.includes(name)) this.#expect('declared', name, scope === 'rpc', `declares ${scope}, the spec prints rpc`);
    }
  }

  /** Things that a denied call would change if it had an effect. */
  async #prepare(): Promise<void> {
    await this.#operator('agents.create', { agentId: victim.agentId, config: { model: 'local/test-model' } });
    await this.#operator('tokens.create', { id: victim.tokenId, scopes: ['rpc'] });
    await this.#operator('agent.execute', { message: askWith(nonceOf(['victim'])), sessionKey: victim.sessionKey });
    victim.memoryId = ((await this.#operator('memory.store', { content: 'What the victim remembers.' })) as { id: string }).id;
  }

  async #traces(): Promise<string> {
    const tokens = (await this.#operator('tokens.list', {})) as { tokens: { id: string; scopes: string[]; createdAt?: number }[] };
    const status = (await this.#operator('gateway.status', {})) as { pid: number };
    const memories = (await this.#operator('memory.export', {})) as { entries: { id: string }[] };
    return JSON.stringify([
      await this.#operator('agents.list', {}),
      await this.#operator('agents.get', { agentId: victim.agentId }),
      tokens.tokens.map(({ id, scopes, createdAt }) => [id, scopes, createdAt]).sort(),
      await this.#operator('session.history', { sessionKey: victim.sessionKey }),
      await this.#operator('session.list', {}),
      await this.#operator('config.read', {}),
      memories.entries.map(({ id }) => id),
      status.pid,
      this.#served(),
    ]);
  }

  #operator(method: string, params: unknown): Promise<unknown> {
    return rpcCall({ port: this.#daemon.port, token: this.#daemon.token, agent: this.#agent }, method, params);
  }

  /** No token, or an invalid one: nothing passes authentication, on either transport. Each from a separate address: failed logins are throttled. */
  async #unproven(): Promise<void> {
    const strangers = columns.filter((column) => column.scopes === undefined);
    for (const method of Object.keys(contract)) {
      for (const { name, secret } of strangers) {
        const frame = this.#frame(method, paramsOf(method, true, 'x'));
        const reply = await http({
          port: this.#daemon.port,
          path: '/rpc',
          body: frame,
          localAddress: this.#address(),
          ...(secret !== undefined && { headers: bearer(secret) }),
        });
        this.#expect('rpc', `${method} × ${name}`, reply.status === 401 && !reply.text.includes('"result"'), `HTTP ${reply.status} ${reply.text}`);
        const socket = await openSocket({
          port: this.#daemon.port,
          localAddress: this.#address(),
          via: 'query',
          ...(secret !== undefined && { token: secret }),
        });
        const answered = await Promise.race([
          socket.send(frame).then(
            (sent) => JSON.stringify(sent),
            () => '',
          ),
          socket.closed.then(() => ''),
        ]);
        const { code } = await socket.closed;
        this.#expect('ws', `${method} × ${name}`, code === 4001 && answered === '', `closed with ${code}, answer ${answered}`);
      }
    }
  }

  /** One row of methods for one token; denied cells with parameters that would work, allowed ones without harm. */
  async #methods(column: Required<Column>, allowed: boolean, among = Object.keys(contract)): Promise<void> {
    const names = among.filter((name) => holds(column.scopes, contract[name as MethodName].scope) === allowed);
    const socket = await this.#socketOf(column, !allowed);
    const check = (kind: string, method: string, reply: Reply | undefined) => {
      const scope = contract[method as MethodName].scope;
      const good = allowed
        ? reply !== undefined && passed(reply)
        : reply?.error?.code === -32603 && reply.error.message === `Insufficient scope: requires '${scope}'` && reply.result === undefined;
      this.#expect(kind, `${method} × ${column.name}`, good, (JSON.stringify(reply) ?? 'no reply').slice(0, 300));
    };
    for (const method of names) {
      check(
        'rpc',
        method,
        await this.#one({
          path: '/rpc',
          headers: bearer(column.secret),
          body: this.#frame(method, paramsOf(method, !allowed, `r${(this.#counter += 1)}`)),
        }),
      );
      if (socket !== undefined) check('ws', method, await socket.send(this.#frame(method, paramsOf(method, !allowed, `w${(this.#counter += 1)}`))));
    }
    const frames = names.map((method) => this.#frame(method, paramsOf(method, !allowed, `b${(this.#counter += 1)}`)));
    for (let at = 0; at < frames.length; at += 40) {
      const part = frames.slice(at, at + 40);
      const replies = await this.#batch(column, part);
      for (const { id, method } of part)
        check(
          'batch',
          method,
          replies.find((one) => one.id === id),
        );
    }
    socket?.close();
  }

  /** A socket for tokens that may open one; for the others the proof that they may not. */
  async #socketOf(column: Required<Column>, count: boolean): Promise<RpcSocket | undefined> {
    const socket = await openSocket({ port: this.#daemon.port, token: column.secret, via: 'header' });
    if (opensSocket(column.scopes)) return socket;
    const frame = this.#frame('system.ping', {});
    void socket.send(frame).catch(() => undefined);
    const { code } = await socket.closed;
    if (!count) return undefined;
    // A token that opens no socket is refused there for every method alike.
    for (const method of Object.keys(contract)) this.#expect('ws', `${method} × ${column.name}`, code === 4003, `closed with ${code}`);
    return undefined;
  }

  /** A caller's claims about its authority are not believed, wherever it makes them. */
  async #declaredScopesAreIgnored(): Promise<void> {
    const { port } = this.#daemon;
    const secret = secretOf('rpc');
    const admin = Object.keys(contract).filter((name) => contract[name as MethodName].scope === 'admin' && name !== 'gateway.restart');
    const socket = await openSocket({ port, token: secret, via: 'query', headers: { 'x-scopes': '*', 'x-gatehouse-scopes': '*' } });
    for (const method of admin) {
      const params = paramsOf(method, true, `d${(this.#counter += 1)}`);
      const frame = this.#frame(method, params);
      const claims: Record<string, () => Promise<Reply | undefined>> = {
        query: () => this.#one({ path: '/rpc?scopes=*&scope=admin', headers: bearer(secret), body: frame }),
        header: () =>
          this.#one({ path: '/rpc', headers: { ...bearer(secret), 'x-scopes': '*', 'x-gatehouse-scopes': '*', scope: 'admin' }, body: frame }),
        params: () =>
          this.#one({
            path: '/rpc',
            headers: bearer(secret),
            body: { ...frame, params: { ...params, _scopes: ['*'], _identity: { scopes: ['*'] }, _callerScopes: ['*'] } },
          }),
        frame: () => this.#one({ path: '/rpc', headers: bearer(secret), body: { ...frame, scopes: ['*'], identity: { scopes: ['*'] } } }),
        'ws frame': () => socket.send({ ...frame, scopes: ['*'], params: { ...params, _scopes: ['*'] } }),
      };
      for (const [where, run] of Object.entries(claims)) {
        const reply = await run();
        this.#expect(
          'claimed',
          `${method}, scopes claimed in ${where}`,
          reply?.error?.code === -32603 && reply.error.message === "Insufficient scope: requires 'admin'",
          JSON.stringify(reply) ?? 'no reply',
        );
      }
    }
    socket.close();
  }

  async #unregisteredNames(): Promise<void> {
    for (const column of proven) {
      const socket = opensSocket(column.scopes) ? await openSocket({ port: this.#daemon.port, token: column.secret }) : undefined;
      for (const method of unregistered) {
        const frame = this.#frame(method, {});
        const reply = await this.#one({ path: '/rpc', headers: bearer(column.secret), body: frame });
        this.#expect(
          'unregistered',
          `/rpc ${JSON.stringify(method)} × ${column.name}`,
          reply?.error?.code === -32601,
          JSON.stringify(reply) ?? 'no reply',
        );
        if (socket === undefined) continue;
        const framed = await socket.send(frame);
        this.#expect('unregistered', `/ws ${JSON.stringify(method)} × ${column.name}`, framed.error?.code === -32601, JSON.stringify(framed));
      }
      socket?.close();
    }
  }

  async #routes(): Promise<void> {
    const { port } = this.#daemon;
    for (const [name, declared] of Object.entries(routes)) {
      const route: Route = declared;
      for (const { name: token, secret, scopes } of columns) {
        for (const asQuery of secret === undefined ? [false] : [false, true]) {
          const sample = samplePath(name, route);
          const asked = `${sample.includes('?') ? '&' : '?'}token=${secret}&access_token=${secret}&api_key=${secret}`;
          const path = asQuery ? sample + asked : sample;
          const reply = await http({
            port,
            method: route.method,
            path,
            localAddress: this.#address(),
            headers: {
              ...(secret !== undefined && !asQuery && bearer(secret)),
              ...(route.path === '/mcp' && { accept: 'application/json, text/event-stream' }),
            },
            endless: name === 'events',
            ...(route.method === 'POST' && { body: sampleBody(name, this.#frame('system.ping', {})) }),
          });
          const known = asQuery ? undefined : scopes;
          let expected: number | 'not refused' = 401;
          const open = openToAll[route.path];
          if (open !== undefined) expected = open;
          else if (known !== undefined) expected = opens(route, known) ? 'not refused' : 403;
          const good =
            expected === 'not refused'
              ? reply.status < 300 ||
                reply.status === 426 ||
                (reply.status === 404 && (namesNothing(route.path) || isUnconfigured(reply.text))) ||
                asksForSession(name, reply.text)
              : reply.status === expected && (expected !== 401 || !reply.text.includes('"result"'));
          this.#expect(
            'routes',
            `${route.method} ${path} × ${token}`,
            good && familyFits(route, reply.status, reply.text),
            `HTTP ${reply.status} instead of ${expected}: ${reply.text.slice(0, 200)}`,
          );
        }
      }
    }
    // A name that is missing in the table belongs to no one, not even to the operator.
    for (const path of [
      '/admin',
      '/api/tokens',
      '/v1',
      '/v1/unknown',
      '/rpc/',
      '/rpcx',
      '//rpc',
      '/config.yaml',
      '/token',
      '/v1/../rpc',
      '/health/../rpc',
      '/.env',
    ]) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const reply = await http({ port, method, path, headers: bearer(this.#daemon.token), localAddress: this.#address() });
        this.#expect('undeclared routes', `${method} ${path}`, reply.status === 404, `HTTP ${reply.status} ${reply.text.slice(0, 100)}`);
      }
    }
  }

  async #one(request: {
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: unknown;
  }): Promise<Reply | undefined> {
    const reply = await http({ port: this.#daemon.port, agent: this.#agent, ...request });
    return reply.status === 200 ? RpcReply().parse(JSON.parse(reply.text)) : undefined;
  }

  async #batch(column: Required<Column>, frames: readonly object[]): Promise<Reply[]> {
    const reply = await http({ port: this.#daemon.port, agent: this.#agent, path: '/rpc', headers: bearer(column.secret), body: frames });
    return reply.status === 200 ? RpcReply().array().parse(JSON.parse(reply.text)) : [];
  }

  #frame(method: string, params: object) {
    return { jsonrpc: '2.0', id: `m${(this.#counter += 1)}`, method, params };
  }

  /** Addresses of the loopback net, ten requests each at most per minute. */
  #address(): string {
    const n = (this.#counter += 1);
    return `127.${1 + (n >> 14)}.${(n >> 7) & 127}.${1 + (n & 127)}`;
  }
}

/** The gate was passed: a result, or an error about the parameters or the thing named. */
function passed(reply: Reply): boolean {
  if (reply.error === undefined) return reply.result !== undefined;
  return reply.error.code === -32602 || (reply.error.code <= -32001 && reply.error.code >= -32004);
}

/**
 * Parameters of a cell: the registry's own example; `harmful` ones name things that exist, so that a call that slips
 * through leaves a trace, the others name nothing and pass the gate nevertheless.
 */
function paramsOf(method: string, harmful: boolean, unique: string): Record<string, unknown> {
  const target = harmful ? victim : nobody;
  switch (method) {
    case 'agent.execute':
    case 'agent.stream':
      return { message: askWith(nonceOf(['matrix', unique])), sessionKey: harmful ? victim.sessionKey : `matrix:${unique}` };
    case 'agents.create':
      return { agentId: `matrix-${unique}`, config: { model: 'local/test-model' } };
    case 'agents.update':
      return { agentId: target.agentId, config: { name: `changed ${unique}` } };
    case 'agents.get':
    case 'agents.delete':
    case 'agents.suspend':
    case 'agents.resume':
    case 'agent.getOperationModels':
      return { agentId: target.agentId };
    case 'tokens.create':
      return { id: `matrix-${unique}`, scopes: ['rpc'] };
    case 'tokens.revoke':
    case 'tokens.rotate':
      return { id: target.tokenId };
    case 'session.delete':
    case 'session.history':
    case 'session.export':
    case 'session.reset':
    case 'session.stop':
    case 'session.reset_conversation':
    case 'session.compact':
    case 'session.fork':
    case 'session.suggest_title':
      return { sessionKey: target.sessionKey };
    case 'session.steer':
      return { sessionKey: target.sessionKey, message: 'x' };
    case 'session.update':
      return { sessionKey: target.sessionKey, shelf: 'list' };
    case 'memory.delete':
      return { ids: [target.memoryId] };
    case 'session.status':
      return {};
    // Few are allowed per minute, and refused ones are not counted.
    case 'env.set':
      return { key: harmful ? `MATRIX_${unique.replaceAll(/\W/g, '_').toUpperCase()}` : '', value: 'a value' };
    case 'env.list':
      return { limit: harmful ? 1 : 0 };
    // For owners alone, and a key that is set counts as a secret.
    case 'providers.set':
      return { id: harmful ? `matrix-${unique}` : '', type: 'ollama' };
    case 'providers.remove':
      return { provider: harmful ? 'local' : '' };
    case 'daemon.setLogLevel':
      return { level: 'info' };
    case 'gateway.restart':
      return harmful ? {} : { unknown: true };
    default:
      return { ...exampleOf(method) };
  }
}

function samplePath(name: string, route: Route): string {
  // An id of a medium has no colon, and is refused before any lookup.
  if (route.path.startsWith('/media/')) return route.path.replace(':id', 'none.png');
  if (route.path === '/api/memory/search') return `${route.path}?q=anything`;
  return name === 'model' ? '/v1/models/local/test-model' : route.path;
}

/** A path with its variable part as declared: past the gate it refers to nothing. */
function namesNothing(path: string): boolean {
  return path.includes('/:');
}

/** Past the gate a route of media asks for its provider, which the home of the proof has none of. */
function isUnconfigured(text: string): boolean {
  return text.includes('Nothing is configured for this route');
}

/** Past the gate there is no session: none of the columns started one. */
function asksForSession(name: string, text: string): boolean {
  return (name === 'mcpStream' || name === 'mcpEnd') && text.includes('Mcp-Session-Id: expected the session');
}

function sampleBody(name: string, ping: object): object {
  if (name === 'chatCompletions') return { model: 'local/test-model', messages: [{ role: 'user', content: 'hello' }] };
  if (name === 'messages') return { model: 'local/test-model', max_tokens: 100, messages: [{ role: 'user', content: 'hello' }] };
  if (name === 'countTokens') return { model: 'local/test-model', messages: [{ role: 'user', content: 'hello' }] };
  if (name === 'apiChat' || name === 'apiChatStream') return { message: 'hello' };
  if (name === 'createResponse' || name === 'compactResponse' || name === 'responseTokens') return { model: 'local/test-model', input: 'hello' };
  if (name === 'embeddings') return { model: 'fake-embedding', input: 'hello' };
  if (name === 'mcp')
    return {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'matrix', version: '1' } },
    };
  return ping;
}

/** A refusal has the shape of its route family. */
function familyFits(route: Route, status: number, text: string): boolean {
  if (status !== 401 && status !== 403) return true;
  const body = JSON.parse(text) as { error?: { type?: string; code?: unknown }; code?: string };
  if (route.family === 'v1' || route.family === 'messages')
    return body.error?.type === (status === 401 ? 'authentication_error' : 'permission_error') && body.error.code === null;
  if (route.family === 'rpc') return typeof body.error?.code === 'number';
  return typeof body.code === 'string';
}
