import { randomBytes } from 'node:crypto';
import { Agent } from 'node:http';
import type { TokenScope } from '@gatehouse/contract';
import { freePort } from '@gatehouse/testkit/free-port';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { closeEstate, type Estate, makeEstate, secretsOf } from './lib/estate.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { type Ask, type Kind, type NamedInput, namedThings, readsWithoutIds } from './lib/named-things.ts';
import { proofConfig, startReviewingProvider } from './lib/provider.ts';
import { type Random, randomFrom } from './lib/random.ts';
import { openSocket, type RpcSocket } from './lib/rpc.ts';
import { apart } from './lib/statistics.ts';

/**
 * R24: a caller who names a foreign thing gets the same answer as for a nonexistent one, byte for byte and
 * as fast. The inputs are taken from the registry and the routes, so that new methods are covered too.
 */
export interface R24Report {
  /** Compared answers, by what is named. */
  readonly cells: Readonly<Record<string, number>>;
  /** Answers that show that the test is meaningful: the owner, and operators where they may, do reach the thing. */
  readonly controls: number;
  /** Comparisons of time, and the largest differences. */
  readonly timed: { readonly inputs: number; readonly pairs: number; readonly widestMs: number; readonly widestT: number };
  readonly wrong: readonly string[];
}

/** A difference of this size between the medians of foreign and unknown distinguishes them, when Welch's t says that it is not random. */
const tellingMs = 1;
const tellingT = 4.5;
/** Answers that are allowed on a loaded machine. */
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

/** Things of others that operators see. Stored responses and receipts are the caller's alone. */
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

/** Returns the expected answer: the same as for a nonexistent thing, or the thing itself. Undefined: the caller does not determine it. */
function expected({ kind, risk }: NamedInput, column: Column): 'same' | 'reaches' | undefined {
  if (kind === 'agent') return column.agents === undefined ? undefined : 'same';
  // Media belong to no agent: an admin sees them all.
  if (kind === 'medium' && column.name === 'admin-of-agent') return undefined;
  if (!isOperator(column) || !seenByOperators.includes(kind)) return 'same';
  return risk === 'read' ? 'reaches' : undefined;
}

export async function proveCrossOwner(options: {
  /** Pairs of a foreign and an unknown id whose times are compared, at each input. */
  readonly pairs: number;
  readonly seed: number;
  /** Only inputs whose name begins so, and neither lists nor controls; all otherwise. */
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
  timed = { inputs: 0, pairs: 0, widestMs: 0, widestT: 0 };
  readonly wrong: string[] = [];
  readonly #daemon: Daemon;
  readonly #random: Random;
  readonly #pairs: number;
  readonly #only: string | undefined;
  readonly #agent = new Agent({ keepAlive: true });
  /** The same unknown id for all calls of a token: things that its calls created under it they also created under the foreign one. */
  readonly #unknown = new Map<string, string>();
  #counter = 0;

  constructor(daemon: Daemon, random: Random, { pairs, only }: { readonly pairs: number; readonly only?: string }) {
    this.#daemon = daemon;
    this.#random = random;
    this.#pairs = pairs;
    this.#only = only;
  }

  async run(): Promise<void> {
    const { inputs: all, unlisted } = namedThings();
    const inputs = all.filter(({ name }) => name.startsWith(this.#only ?? ''));
    this.wrong.push(...unlisted);
    const estate = await this.#estate();
    for (const column of columns) {
      const socket = opensSocket(column)
        ? await openSocket({ port: this.#daemon.port, ...(column.secret !== undefined && { token: column.secret }) })
        : undefined;
      for (const input of inputs) {
        const id = estate.ids[input.kind];
        if (id !== undefined) await this.#compare(input, column, id, estate, socket);
      }
      socket?.close();
      if (column.scopes !== undefined && !isOperator(column) && this.#only === undefined) await this.#readNothing(column, estate);
    }
    for (const input of inputs) await this.#time(input, estate);
    for (const input of this.#only === undefined ? inputs : []) await this.#control(input, estate);
    this.#agent.destroy();
  }

  #estate(): Promise<Estate> {
    return makeEstate(this.#owner, (this.#counter += 1));
  }

  get #owner() {
    const { home, port, token: operator } = this.#daemon;
    return { home, port, token: owner.secret ?? '', operator, agent: this.#agent };
  }

  async #compare(input: NamedInput, column: Column, id: string, estate: Estate, socket: RpcSocket | undefined): Promise<void> {
    const wish = expected(input, column);
    if (wish === undefined) return;
    const unknown = this.#alike(id, column);
    const roads = [
      { road: 'http', go: (asked: string) => this.#ask(input.ask(asked), column) },
      ...(socket !== undefined && input.ask(id).method !== undefined
        ? [{ road: 'socket', go: (asked: string) => this.#askSocket(input.ask(asked), socket) }]
        : []),
    ];
    for (const { road, go } of roads) {
      const cell = `${input.name} ${input.param} × ${column.name} (${road})`;
      const [foreign, absent] = [await go(id), await go(unknown)];
      const [one, other] = [plain(foreign, id), plain(absent, unknown)];
      if (wish === 'reaches') {
        this.controls += 1;
        if (one === other || failed(foreign)) this.wrong.push(`${cell}: an operator does not reach it: ${one.slice(0, 200)}`);
        continue;
      }
      this.cells[input.kind] = (this.cells[input.kind] ?? 0) + 1;
      if (one !== other) this.wrong.push(`${cell}: foreign and unknown differ:\n      ${one.slice(0, 300)}\n      ${other.slice(0, 300)}`);
      this.#checkSecrets(cell, foreign.text.replaceAll(id, ''), estate);
    }
  }

  /** Checks that the answers to calls that name nothing contain nothing of the owner. */
  async #readNothing(column: Column, estate: Estate): Promise<void> {
    for (const ask of readsWithoutIds(estate.word)) {
      this.cells['lists'] = (this.cells['lists'] ?? 0) + 1;
      const { text } = await this.#ask(ask, column);
      this.#checkSecrets(`${ask.method ?? ask.path} × ${column.name}`, column.name === 'admin-of-agent' ? withoutOwn(text, estate) : text, estate);
    }
  }

  #checkSecrets(cell: string, text: string, estate: Estate): void {
    const leaked = secretsOf(estate).find((secret) => text.includes(secret));
    if (leaked !== undefined) this.wrong.push(`${cell}: reveals ${leaked} of the owner: ${text.slice(0, 300)}`);
  }

  /** Compares foreign and unknown in random order, by the plainest stranger whose token is let in. */
  async #time(input: NamedInput, estate: Estate): Promise<void> {
    const id = estate.ids[input.kind];
    const column = columns.find(({ name }) => name === (input.kind === 'agent' ? 'rpc-of-agent' : 'rpc'));
    if (id === undefined || column === undefined || this.#pairs === 0) return;
    // Where an unknown name creates something new, time reveals nothing.
    const unknown = this.#alike(id, column);
    if (input.risk !== 'read' && !failed(await this.#ask(input.ask(unknown), column))) return;
    const times = { foreign: [] as number[], unknown: [] as number[] };
    const one = async (which: 'foreign' | 'unknown', asked: string): Promise<void> => {
      const ask = input.ask(asked);
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
    // Noise of the machine averages out with more pairs; a difference of the daemon does not.
    while (Math.abs(apart(times.foreign, times.unknown).medians) >= tellingMs && times.foreign.length < 8 * this.#pairs) await go(this.#pairs);
    const { medians, t } = apart(times.foreign, times.unknown);
    this.timed = {
      inputs: this.timed.inputs + 1,
      pairs: this.timed.pairs + times.foreign.length,
      widestMs: Math.max(this.timed.widestMs, Math.abs(medians)),
      widestT: Math.max(this.timed.widestT, Math.abs(t)),
    };
    if (Math.abs(medians) >= tellingMs && Math.abs(t) >= tellingT)
      this.wrong.push(`${input.name} ${input.param}: foreign takes ${medians.toFixed(2)} ms more than unknown (t ${t.toFixed(1)})`);
  }

  /** Checks that the owner reaches its own things, with a separate estate where the call changes it: the answers must not be alike by failing. */
  async #control(input: NamedInput, shared: Estate): Promise<void> {
    if (input.kind === 'agent') return;
    const estate = input.risk === 'read' ? shared : await this.#estate();
    const id = estate.ids[input.kind];
    if (id === undefined) {
      this.wrong.push(`${input.name} ${input.param}: there is no ${input.kind} to ask for`);
      return;
    }
    const answer = await this.#ask(input.ask(id), owner);
    const denied = answer.text.includes('Insufficient scope') || answer.text.includes('only an admin may name it');
    const { text, status } = denied ? await this.#ask(input.ask(id), { name: 'operator', secret: this.#daemon.token }) : answer;
    if (estate !== shared) await closeEstate(this.#owner, estate);
    this.controls += 1;
    // A key that was used for another request is found, too.
    // A conversation that is found has no running turn to give the message to.
    const isFoundIdle = input.name === 'session.steer' && text.includes('"precondition_failed"');
    if (failed({ text, status }) && !isFoundIdle && !(input.kind === 'receipt' && status === 409))
      this.wrong.push(`${input.name} ${input.param}: the owner does not reach it: ${text.slice(0, 300)}`);
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

/** Text that an admin of one agent may see: media, which belong to no agent, and names from its own audited calls. */
const withoutOwn = (text: string, { ids }: Estate): string =>
  [ids.medium, ids.root, ids.lease].reduce<string>((left, id) => left.replaceAll(id ?? '\0', ''), text);

/** Headers that depend on the request, not on the thing that it names. */
const ownHeaders: ReadonlySet<string> = new Set(['date', 'x-request-id', 'ratelimit-remaining', 'ratelimit-reset']);

/** Removes what differs in each answer: the requested id, ids of requests, traces and new things, times. */
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

/** Returns another id of the same form and length that nothing has: its end differs. */
function alike(id: string): string {
  const end = id.lastIndexOf('.') === -1 ? id.length : id.lastIndexOf('.');
  const letters = randomBytes(12).toString('hex').replaceAll(/[0-9]/g, 'c');
  return [...id].map((char, at) => (at < end - 12 || at >= end || !/[A-Za-z0-9]/.test(char) ? char : (letters[end - at] ?? 'd'))).join('');
}
