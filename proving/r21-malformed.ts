import { Agent } from 'node:http';
import { contract, type Route, routes, RpcReply } from '@gatehouse/contract';
import { freePort } from '@gatehouse/testkit/free-port';
import fc from 'fast-check';
import { type Daemon, startDaemon } from './lib/daemon.ts';
import { damaged, fromSchema } from './lib/from-schema.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { malformed } from './lib/malformed.ts';
import { ailmentOf, rssMb } from './lib/process.ts';
import { proofConfig, startEchoProvider } from './lib/provider.ts';
import { inParallel, rawRequest, statusesOf } from './lib/raw.ts';
import { randomFrom } from './lib/random.ts';
import { openSocket, type RpcSocket } from './lib/rpc.ts';

/** R21: nothing that a client sends makes the daemon fail, hang or crash: not as bytes, not as JSON, on no route and no method. */
export interface R21Report {
  readonly raw: Readonly<Record<string, number>>;
  readonly json: Readonly<Record<string, number>>;
  /** Answers by status, and by JSON-RPC error code. */
  readonly answers: Readonly<Record<string, number>>;
  /** Requests that were refused because the machine was too slow for them, which is not a failure. */
  readonly shed: number;
  /** Failures of the server, hangs and broken answers, each in one line. */
  readonly wrong: readonly string[];
  /** Empty while the daemon lives and is as before. */
  readonly ailment: string;
}

const hangMs = 10_000;
/** Would stop the observed process; R23 covers whether it may be called. */
const leftOut: readonly string[] = ['gateway.restart'];

export async function proveMalformed(options: {
  readonly raw: number;
  readonly json: number;
  readonly seed: number;
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}): Promise<R21Report> {
  const provider = await startEchoProvider();
  const home = await makeHome();
  const port = await freePort();
  await writeConfig(home, proofConfig(provider.url, { embedding: { provider: 'local', model: 'fake-embedding' } }));
  let daemon: Daemon | undefined;
  try {
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    const attack = new Attack(daemon, options.seed);
    const before = rssMb(daemon.pid);
    await attack.bytes(options.raw);
    options.progress?.(`R21: ${options.raw} raw requests, ${attack.wrong.length} wrong`);
    await attack.values(options.json);
    const ailment = await ailmentOf(daemon, before, 400);
    options.progress?.(`R21: ${options.json} requests of JSON, ${attack.wrong.length} wrong in all${ailment === '' ? '' : `; ${ailment}`}`);
    return { raw: attack.raw, json: attack.json, answers: attack.answers, shed: attack.shed, wrong: attack.wrong, ailment };
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}

class Attack {
  readonly raw: Record<string, number> = {};
  readonly json: Record<string, number> = {};
  readonly answers: Record<string, number> = {};
  readonly wrong: string[] = [];
  shed = 0;
  readonly #daemon: Daemon;
  /** Requests over the socket that are not answered yet, by id. */
  readonly #frames = new Map<string, string>();
  readonly #seed: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 16 });
  #counter = 0;

  constructor(daemon: Daemon, seed: number) {
    this.#daemon = daemon;
    this.#seed = seed;
  }

  #note(where: string, key: string, text: string, sent: string): void {
    this.answers[key] = (this.answers[key] ?? 0) + 1;
    const failed = /^5\d\d$/.test(key) || key === 'hang' || key === 'broken' || (key === '-32603' && !text.includes('Insufficient scope'));
    if (!failed) return;
    if (/has more work than it can do|server is nearly out of memory/.test(text)) this.shed += 1;
    else if (this.wrong.length < 200)
      this.wrong.push(`${where} (seed ${this.#seed}): ${key} ${text.slice(0, 200)} for ${JSON.stringify(sent.slice(0, 400))}`);
  }

  async bytes(count: number): Promise<void> {
    const kinds = Object.entries(malformed);
    await inParallel(
      Array.from({ length: count }, (_, n) => n),
      64,
      async (n) => {
        const [kind, make] = kinds[n % kinds.length] as (typeof kinds)[number];
        this.raw[kind] = (this.raw[kind] ?? 0) + 1;
        const random = randomFrom(this.#seed + n * 7919);
        const bytes = make(random, this.#daemon.token);
        // One of many waits for the server to end an incomplete request.
        const reply = await rawRequest({
          port: this.#daemon.port,
          bytes,
          half: random.int(40) !== 0,
          // Damaged secrets are wrong ones; a few of them would lock out an address.
          localAddress: `127.${10 + (n >> 14)}.${(n >> 7) & 127}.${1 + (n & 127)}`,
          timeoutMs: hangMs,
          until: (text) => /^HTTP\/1\.1 (101|426)|\r\ncontent-type: text\/event-stream|\r\nconnection: keep-alive/i.test(text),
        });
        const statuses = statusesOf(reply.text);
        for (const status of statuses) this.#note(kind, String(status), reply.text, bytes.toString('latin1'));
        if (statuses.length === 0 && reply.text !== '') this.#note(kind, 'broken', reply.text, bytes.toString('latin1'));
        if (statuses.length === 0 && !reply.closed) this.#note(kind, 'hang', 'neither answered nor closed', bytes.toString('latin1'));
      },
    );
  }

  async values(count: number): Promise<void> {
    const methods = Object.entries(contract).filter(([name]) => !leftOut.includes(name));
    const bodies = Object.values(routes).flatMap((route: Route) =>
      route.body !== undefined && route.path !== '/rpc' ? [[route.path, route.body()] as const] : [],
    );
    const reads = Object.values(routes).filter(
      (route: Route) => route.method !== 'POST' && (/[:*]/.test(route.path) || 'query' in route) && route.path !== '/ws',
    );
    // Half of all over HTTP and WebSocket to methods, the other half to routes.
    const perMethod = Math.ceil(count / 2 / methods.length / 2);
    const perRoute = Math.ceil(count / 2 / (bodies.length + reads.length));
    const socket = await openSocket({
      port: this.#daemon.port,
      token: this.#daemon.token,
      onReply: (reply) =>
        this.#note('WebSocket', String(reply.error?.code ?? 'ok'), JSON.stringify(reply), this.#frames.get(String(reply.id)) ?? String(reply.id)),
    });
    const work: (() => Promise<void>)[] = [];
    for (const [name, method] of methods) {
      const valid = fromSchema(method.params);
      for (const params of this.#sample(this.#texts(valid), perMethod * 2, name)) {
        const viaSocket = work.length % 2 === 0;
        work.push(() => this.#call(name, params, viaSocket ? socket : undefined));
      }
    }
    for (const [path, body] of bodies)
      for (const text of this.#sample(this.#texts(fromSchema(body)), perRoute, path)) work.push(() => this.#post(path, text, 'routes with a body'));
    const part = fc.oneof(
      fc.webPath(),
      fc.string({ unit: 'binary-ascii' }),
      fc.constantFrom('..', '%2e%2e', '%', '%ff', '%00', 'a%2fb', '../../health', 'x'.repeat(3_000)),
    );
    for (const route of reads) {
      const query = fc.dictionary(fc.constantFrom(...Object.keys('query' in route ? route.query : {}), 'x'), part);
      for (const [value, params] of this.#sample(fc.tuple(part, query), perRoute, route.path)) work.push(() => this.#read(route, value, params));
    }
    await inParallel(work, 16, (run) => run());
    socket.close();
    this.#agent.destroy();
  }

  /** Two of five are valid. */
  #texts(valid: fc.Arbitrary<unknown>): fc.Arbitrary<string> {
    return fc.oneof({ arbitrary: valid.map((value) => JSON.stringify(value) ?? 'null'), weight: 2 }, { arbitrary: damaged(valid), weight: 3 });
  }

  #sample<T>(arbitrary: fc.Arbitrary<T>, count: number, name: string): T[] {
    const salt = [...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) | 0, 7);
    return fc.sample(arbitrary, { numRuns: count, seed: this.#seed ^ salt });
  }

  async #call(method: string, params: string, socket: RpcSocket | undefined): Promise<void> {
    const id = `n${(this.#counter += 1)}`;
    const frame = `{"jsonrpc":"2.0","id":"${id}","method":"${method}","params":${params}}`;
    const kind = socket === undefined ? 'methods over HTTP' : 'methods over WebSocket';
    if (socket === undefined) return this.#post('/rpc', this.#counter % 5 === 0 ? `[${frame},${frame}]` : frame, kind);
    this.json[kind] = (this.json[kind] ?? 0) + 1;
    const behind = { jsonrpc: '2.0', id: `${id}-behind`, method: 'system.ping' } as const;
    // A request without its id is answered without one; the answer to the call after it shows that it was processed.
    this.#frames.set(id, frame);
    const answered = socket.sendText(frame, id);
    const done = keepsId(frame, id) ? answered : socket.send(behind);
    answered.catch(() => undefined);
    try {
      if ((await withTimeout(done)) === undefined) this.#note(method, 'hang', 'no reply', frame);
    } catch (error) {
      this.#note(method, 'broken', String(error), frame);
    } finally {
      this.#frames.delete(id);
    }
  }

  async #post(path: string, text: string, kind: string): Promise<void> {
    this.json[kind] = (this.json[kind] ?? 0) + 1;
    const headers = { ...bearer(this.#daemon.token), ...(this.#counter % 7 === 0 && { accept: 'text/event-stream' }) };
    try {
      const reply = await http({ port: this.#daemon.port, path, body: text, headers, agent: this.#agent, timeoutMs: hangMs });
      this.#note(path, String(reply.status), reply.text, text);
      if (path === '/rpc' && reply.status === 200)
        for (const one of RpcReply()
          .array()
          .parse([JSON.parse(reply.text)].flat()))
          this.#note(path, String(one.error?.code ?? 'ok'), JSON.stringify(one), text);
    } catch (error) {
      this.#note(path, 'broken', String(error), text);
    }
  }

  async #read(route: Route, value: string, params: Readonly<Record<string, string>>): Promise<void> {
    this.json['routes that read'] = (this.json['routes that read'] ?? 0) + 1;
    // Requests that Node's own client would not send are not tested here.
    const safe = value.replace(/[^\x21-\x7e]/g, (letter) => encodeURIComponent(letter));
    const path = `${route.path.replace(/[:*]\w+/, () => safe)}?${new URLSearchParams(params).toString()}`;
    const gone = new AbortController();
    try {
      const reply = await http({
        port: this.#daemon.port,
        method: route.method,
        path,
        headers: bearer(this.#daemon.token),
        agent: this.#agent,
        timeoutMs: hangMs,
        signal: gone.signal,
        // The stream of events has no end.
        onData: () => route.path === '/api/events' && gone.abort(),
      });
      this.#note(route.path, String(reply.status), reply.text, path);
    } catch (error) {
      if (!gone.signal.aborted) this.#note(route.path, 'broken', String(error), path);
    }
  }
}

/** Whether a frame can be answered under its id. */
function keepsId(frame: string, id: string): boolean {
  try {
    const read: unknown = JSON.parse(frame);
    // Nesting and keys that the server refuses are invalid JSON to it.
    return typeof read === 'object' && read !== null && Reflect.get(read, 'id') === id && !/__proto__|\\u005f_|\[{65}/.test(frame);
  } catch {
    return false;
  }
}

async function withTimeout<T>(work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), hangMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
