import { randomBytes } from 'node:crypto';
import { Agent } from 'node:http';
import type { TokenScope } from '@gatehouse/contract';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { closeEstate, type Estate, makeEstate, secretsOf } from './lib/estate.ts';
import { freePort, makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { type Ask, type Kind, namedThings, type Place, readsWithoutIds } from './lib/named-things.ts';
import { proofConfig, startReviewingProvider } from './lib/provider.ts';
import { type Random, randomFrom } from './lib/random.ts';
import { openSocket, type RpcSocket } from './lib/rpc.ts';
import { apart } from './lib/statistics.ts';

/**
 * R24: whoever asks for what belongs to somebody else gets the answer that he gets for what is not there, byte for byte and
 * as fast. The places are walked from the registry and the routes, so that a method that is added is asked too.
 */
export interface R24Report {
  /** Answers that were compared, by what is named. */
  readonly cells: Readonly<Record<string, number>>;
  /** Answers that show the test is not about nothing: the owner, and operators where they may, do reach the thing. */
  readonly controls: number;
  /** Comparisons of time, and the largest differences. */
  readonly timed: { readonly places: number; readonly pairs: number; readonly widestMs: number; readonly widestT: number };
  readonly wrong: readonly string[];
}

/** As much as this between the medians of foreign and unknown tells them apart, when Welch's t says that it is no accident. */
const tellingMs = 1;
const tellingT = 4.5;
/** What a machine that does other work too lets a daemon say. */
const overload = 'more work than it can do in time';

interface Column {
  readonly name: string;
  readonly secret?: string;
  readonly scopes?: readonly TokenScope[];
  readonly agents?: readonly string[];
}

const secretOf = (name: string): string => `owner-token-${name}-${'x'.repeat(32)}`;
const proven = (name: string, scopes: readonly TokenScope[], agents?: readonly string[]): Column => ({
  name,
  secret: secretOf(name),
  scopes,
  ...(agents !== undefined && { agents }),
});
const owner = proven('owner', ['rpc']);
/** Operators first: a key that strangers have used too means several conversations to them. */
const columns: readonly Column[] = [
  proven('admin', ['admin']),
  proven('star', ['*']),
  proven('empty', []),
  { name: 'none' },
  { name: 'wrong', secret: secretOf('wrong') },
  proven('rpc', ['rpc']),
  proven('api', ['api']),
  proven('ws', ['ws']),
  proven('mcp-client', ['mcp-client']),
  proven('rpc-of-agent', ['rpc'], ['elsewhere']),
  proven('admin-of-agent', ['admin'], ['elsewhere']),
];
const isOperator = ({ scopes, agents }: Column): boolean =>
  scopes !== undefined && agents === undefined && (scopes.length === 0 || scopes.includes('*') || scopes.includes('admin'));
const opensSocket = ({ scopes }: Column): boolean =>
  scopes !== undefined && (scopes.length === 0 || scopes.some((one) => ['ws', 'rpc', 'admin', '*'].includes(one)));

/** What operators see of everybody. Stored responses and receipts are the caller's alone. */
const seenByOperators: readonly Kind[] = [
  'conversation',
  'key',
  'medium',
  'memory',
  'summary',
  'approval',
  'job',
  'run',
  'held run',
  'root',
  'lease',
  'graph',
  'held graph',
  'saved graph',
];

/** What is expected: the same as for what is not there, or the thing itself. Undefined: nothing follows from who asks. */
function expected({ kind, risk }: Place, column: Column): 'same' | 'reaches' | undefined {
  if (kind === 'agent') return column.agents === undefined ? undefined : 'same';
  // Media belong to no agent: an admin sees them all.
  if (kind === 'medium' && column.name === 'admin-of-agent') return undefined;
  if (!isOperator(column) || !seenByOperators.includes(kind)) return 'same';
  return risk === 'read' ? 'reaches' : undefined;
}

export async function proveCrossOwner(options: {
  /** Pairs of a foreign and an unknown id whose times are compared, at each place. */
  readonly pairs: number;
  readonly seed: number;
  /** Only places whose name begins so, and neither lists nor controls; all otherwise. */
  readonly only?: string;
  readonly broken?: string;
}): Promise<R24Report> {
  const provider = await startReviewingProvider();
  const home = await makeHome();
  const port = await freePort();
  const tokens = [owner, ...columns].flatMap(({ name, secret, scopes, agents }) =>
    scopes === undefined ? [] : [{ id: `owner-${name}`, secret, scopes, ...(agents !== undefined && { agents }) }],
  );
  const agents = {
    default: {
      model: 'local/test-model',
      maxConcurrentRuns: 1000,
      tools: { profile: 'coding' },
      memory: { review: { minMessages: 1, maxSessionsPerRun: 1000, dedupThreshold: 1 } },
    },
    elsewhere: { model: 'local/test-model' },
  };
  await writeConfig(home, {
    ...proofConfig(provider.url, { gateway: { tokens }, agents, approvals: { rules: [{ tools: ['ls'], action: 'ask' }] } }),
    security: { agentToAgent: { subagentContext: { maxChildrenPerAgent: 20, maxQueuedPerAgent: 1000 } } },
  });
  let daemon: Daemon | undefined;
  try {
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    const matrix = new Matrix(daemon, randomFrom(options.seed), options);
    await matrix.run();
    return matrix;
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}

interface Answer {
  readonly status: number;
  readonly headers: string;
  readonly text: string;
}

class Matrix implements R24Report {
  readonly cells: Record<string, number> = {};
  controls = 0;
  timed = { places: 0, pairs: 0, widestMs: 0, widestT: 0 };
  readonly wrong: string[] = [];
  readonly #daemon: Daemon;
  readonly #random: Random;
  readonly #pairs: number;
  readonly #only: string | undefined;
  readonly #agent = new Agent({ keepAlive: true });
  /** The same unknown id for all calls of a token: what its calls have made under it they have also made under the foreign one. */
  readonly #unknown = new Map<string, string>();
  #counter = 0;

  constructor(daemon: Daemon, random: Random, { pairs, only }: { readonly pairs: number; readonly only?: string }) {
    this.#daemon = daemon;
    this.#random = random;
    this.#pairs = pairs;
    this.#only = only;
  }

  async run(): Promise<void> {
    const { places: all, unlisted } = namedThings();
    const places = all.filter(({ name }) => name.startsWith(this.#only ?? ''));
    this.wrong.push(...unlisted);
    const estate = await this.#estate();
    for (const column of columns) {
      const socket = opensSocket(column)
        ? await openSocket({ port: this.#daemon.port, ...(column.secret !== undefined && { token: column.secret }) })
        : undefined;
      for (const place of places) {
        const id = estate.ids[place.kind];
        if (id !== undefined) await this.#compare(place, column, id, estate, socket);
      }
      socket?.close();
      if (column.scopes !== undefined && !isOperator(column) && this.#only === undefined) await this.#readNothing(column, estate);
    }
    for (const place of places) await this.#time(place, estate);
    for (const place of this.#only === undefined ? places : []) await this.#control(place, estate);
    this.#agent.destroy();
  }

  #estate(): Promise<Estate> {
    return makeEstate(this.#owner, (this.#counter += 1));
  }

  get #owner() {
    const { home, port, token: operator } = this.#daemon;
    return { home, port, token: owner.secret ?? '', operator, agent: this.#agent };
  }

  async #compare(place: Place, column: Column, id: string, estate: Estate, socket: RpcSocket | undefined): Promise<void> {
    const wish = expected(place, column);
    if (wish === undefined) return;
    const unknown = this.#alike(id, column);
    const roads = [
      { road: 'http', go: (asked: string) => this.#ask(place.ask(asked), column) },
      ...(socket !== undefined && place.ask(id).method !== undefined
        ? [{ road: 'socket', go: (asked: string) => this.#askSocket(place.ask(asked), socket) }]
        : []),
    ];
    for (const { road, go } of roads) {
      const cell = `${place.name} ${place.param} × ${column.name} (${road})`;
      const [foreign, absent] = [await go(id), await go(unknown)];
      const [one, other] = [plain(foreign, id), plain(absent, unknown)];
      if (wish === 'reaches') {
        this.controls += 1;
        if (one === other || failed(foreign)) this.wrong.push(`${cell}: an operator does not reach it: ${one.slice(0, 200)}`);
        continue;
      }
      this.cells[place.kind] = (this.cells[place.kind] ?? 0) + 1;
      if (one !== other) this.wrong.push(`${cell}: foreign and unknown differ:\n      ${one.slice(0, 300)}\n      ${other.slice(0, 300)}`);
      this.#tells(cell, foreign.text.replaceAll(id, ''), estate);
    }
  }

  /** What a caller is told without naming anything holds nothing of the owner's. */
  async #readNothing(column: Column, estate: Estate): Promise<void> {
    for (const ask of readsWithoutIds(estate.word)) {
      this.cells['lists'] = (this.cells['lists'] ?? 0) + 1;
      const { text } = await this.#ask(ask, column);
      this.#tells(`${ask.method ?? ask.path} × ${column.name}`, column.name === 'admin-of-agent' ? withoutOwn(text, estate) : text, estate);
    }
  }

  #tells(cell: string, text: string, estate: Estate): void {
    const told = secretsOf(estate).find((secret) => text.includes(secret));
    if (told !== undefined) this.wrong.push(`${cell}: tells ${told} of the owner: ${text.slice(0, 300)}`);
  }

  /** Foreign and unknown in turn, in an order of chance, by the token that is let in: the plainest stranger. */
  async #time(place: Place, estate: Estate): Promise<void> {
    const id = estate.ids[place.kind];
    const column = columns.find(({ name }) => name === (place.kind === 'agent' ? 'rpc-of-agent' : 'rpc'));
    if (id === undefined || column === undefined || this.#pairs === 0) return;
    // Where an unknown name makes something new, nothing is given away by time.
    const unknown = this.#alike(id, column);
    if (place.risk !== 'read' && !failed(await this.#ask(place.ask(unknown), column))) return;
    const times = { foreign: [] as number[], unknown: [] as number[] };
    const one = async (which: 'foreign' | 'unknown', asked: string): Promise<void> => {
      const ask = place.ask(asked);
      const from = performance.now();
      await this.#ask(ask, column);
      times[which].push(performance.now() - from);
    };
    const pair = [() => one('foreign', id), () => one('unknown', unknown)];
    const go = async (pairs: number): Promise<void> => {
      for (let n = 0; n < pairs; n += 1) for (const ask of this.#random.int(2) === 0 ? pair : pair.toReversed()) await ask();
    };
    await go(3);
    times.foreign.length = times.unknown.length = 0;
    await go(this.#pairs);
    // What the machine did meanwhile goes away with more pairs; what the daemon tells does not.
    while (Math.abs(apart(times.foreign, times.unknown).medians) >= tellingMs && times.foreign.length < 8 * this.#pairs) await go(this.#pairs);
    const { medians, t } = apart(times.foreign, times.unknown);
    this.timed = {
      places: this.timed.places + 1,
      pairs: this.timed.pairs + times.foreign.length,
      widestMs: Math.max(this.timed.widestMs, Math.abs(medians)),
      widestT: Math.max(this.timed.widestT, Math.abs(t)),
    };
    if (Math.abs(medians) >= tellingMs && Math.abs(t) >= tellingT)
      this.wrong.push(`${place.name} ${place.param}: foreign takes ${medians.toFixed(2)} ms more than unknown (t ${t.toFixed(1)})`);
  }

  /** The owner reaches his own, with an estate of its own where the call changes it: else all would be alike because nothing works. */
  async #control(place: Place, shared: Estate): Promise<void> {
    if (place.kind === 'agent') return;
    const estate = place.risk === 'read' ? shared : await this.#estate();
    const id = estate.ids[place.kind];
    if (id === undefined) {
      this.wrong.push(`${place.name} ${place.param}: there is no ${place.kind} to ask for`);
      return;
    }
    const answer = await this.#ask(place.ask(id), owner);
    const denied = answer.text.includes('Insufficient scope') || answer.text.includes('only an admin may name it');
    const { text, status } = denied ? await this.#ask(place.ask(id), { name: 'operator', secret: this.#daemon.token }) : answer;
    if (estate !== shared) await closeEstate(this.#owner, estate);
    this.controls += 1;
    // A key that was used for another request is found, too.
    if (failed({ text, status }) && !(place.kind === 'receipt' && status === 409))
      this.wrong.push(`${place.name} ${place.param}: the owner does not reach it: ${text.slice(0, 300)}`);
  }

  async #ask(ask: Ask, column: Column): Promise<Answer> {
    for (let tries = 0; ; tries += 1) {
      const answer = await this.#askOnce(ask, column);
      if (!answer.text.includes(overload) || tries === 20) return answer;
      await pause(250);
    }
  }

  async #askOnce(ask: Ask, column: Column): Promise<Answer> {
    const frame = ask.method === undefined ? undefined : { jsonrpc: '2.0', id: 1, method: ask.method, params: ask.params };
    const body = frame ?? ask.body;
    const stranger = column.scopes === undefined && column.name !== 'operator';
    const { status, headers, text } = await http({
      port: this.#daemon.port,
      path: ask.path ?? '/rpc',
      method: ask.verb ?? 'POST',
      headers: { ...(column.secret !== undefined && bearer(column.secret)), ...ask.headers },
      ...(body !== undefined && { body }),
      // Failed logins are throttled by address.
      ...(stranger ? { localAddress: this.#address() } : { agent: this.#agent }),
    });
    return { status, headers: JSON.stringify(Object.entries(headers).filter(([name]) => !ownHeaders.has(name))), text };
  }

  async #askSocket(ask: Ask, socket: RpcSocket): Promise<Answer> {
    const reply = await socket.send({ jsonrpc: '2.0', id: `s${(this.#counter += 1)}`, method: ask.method, params: ask.params });
    return { status: 200, headers: '', text: JSON.stringify({ ...reply, id: 1 }) };
  }

  #alike(id: string, column: Column): string {
    const known = this.#unknown.get(`${column.name} ${id}`) ?? alike(id);
    this.#unknown.set(`${column.name} ${id}`, known);
    return known;
  }

  #address(): string {
    const n = (this.#counter += 1);
    return `127.${101 + (n >> 14)}.${(n >> 7) & 127}.${1 + (n & 127)}`;
  }
}

/** What an admin of one agent is told rightly: media, which belong to no agent, and what it has named itself in calls that are audited. */
const withoutOwn = (text: string, { ids }: Estate): string =>
  [ids.medium, ids.root, ids.lease].reduce<string>((left, id) => left.replaceAll(id ?? '\0', ''), text);

/** Headers that tell of the request, not of what was asked for. */
const ownHeaders: ReadonlySet<string> = new Set(['date', 'x-request-id', 'ratelimit-remaining', 'ratelimit-reset']);

/** An answer without what is of its own each time: the id that was asked for, names of requests, traces and new things, times. */
function plain({ status, headers, text }: Answer, id: string): string {
  const same = text
    .replaceAll(id, '<id>')
    .replaceAll(encodeURIComponent(id), '<id>')
    .replaceAll(/\b(req|cv|tn|resp|msg|md|chatcmpl|ar|ap|sr|gr|sg|ls)_[A-Za-z0-9_-]+/g, '<$1>')
    .replaceAll(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b|\b[0-9a-f]{32}\b/g, '<uuid>')
    .replaceAll(/~[0-9a-f]{12}\b/g, '<fork>')
    .replaceAll(/\b1[0-9]{9}([0-9]{3})?\b/g, '<time>');
  return `${status} ${same} ${headers}`;
}

function failed({ status, text }: Pick<Answer, 'status' | 'text'>): boolean {
  return status >= 400 || /^\{"jsonrpc":"2\.0",(?:"id":1,)?"error"/.test(text);
}

/** Another id of the same form and length, that nothing has: the end of it is another one. */
function alike(id: string): string {
  const end = id.lastIndexOf('.') === -1 ? id.length : id.lastIndexOf('.');
  const letters = randomBytes(12).toString('hex').replaceAll(/[0-9]/g, 'c');
  return [...id].map((char, at) => (at < end - 12 || at >= end || !/[A-Za-z0-9]/.test(char) ? char : (letters[end - at] ?? 'd'))).join('');
}
