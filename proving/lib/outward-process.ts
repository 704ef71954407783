import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { systemClock } from '@gatehouse/server';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { createEgress } from '../../packages/server/src/kernel/egress.ts';
import { watchDials } from './dial-watch.ts';
import { bearer, http } from './http.ts';
import { hostileNames, hostileUrls, redirectable, redirects } from './outward-corpus.ts';
import { askForCall, makeAskedCall } from './provider.ts';

/**
 * The process of R25: a whole server, one site that counts as public, and listeners that count forbidden connections. Writes
 * its report to standard output, as JSON.
 */
const { values } = parseArgs({
  options: {
    statuses: { type: 'string', default: '5' },
    slow: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true },
    each: { type: 'string', default: '1' },
  },
});
const statuses = redirects.slice(0, Number(values.statuses));
const watch = watchDials();

const siteAddress = '127.0.0.3';
const served: string[] = [];
let reached = 0;
const site = createServer((request, response) => answerSite(request, response));
/** Requests may go only to the port of the web, so the listeners are there. */
const { port, forbidden } = await takePort();
const urls = hostileUrls(port);
const elsewhere = redirectable(urls);
const bomb = gzipSync(Buffer.alloc(50_000_000));

/** Addresses of the host of repository archives, when not the site. */
let archivesAt: readonly string[] | undefined;
let flips = 0;
async function resolve(name: string): Promise<readonly string[]> {
  if (name === 'codeload.github.com') return archivesAt ?? [];
  if (name === 'flips.example') return [(flips += 1) % 2 === 1 ? siteAddress : '127.0.0.2'];
  if (name === 'site.example' || name === 'other.example') return [siteAddress];
  return (hostileNames[name] ?? []).map((address) => (address === '<site>' ? siteAddress : address));
}

const rules = { resolve, allowAddresses: [`${siteAddress}:${port}`] };
const egress = createEgress({ clock: systemClock, ...rules });
await using server = await startTestServer({
  config: {
    agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' } } },
    approvals: { rules: [{ tools: ['web_fetch', 'web_search'], action: 'auto', tainted: true }] },
    links: { timeoutMs: 1000 },
    webSearch: { provider: 'searxng', baseUrl: `http://site.example:${port}/searxng`, timeoutMs: 1000 },
    skills: { imports: { timeoutMs: 1000 } },
  },
  provider: { answer: makeAskedCall, journal: 0 },
  egress: rules,
  archives: {
    request: (request) =>
      egress.request(
        archivesAt === undefined ? { ...request, url: request.url.replace('https://codeload.github.com', `http://site.example:${port}`) } : request,
      ),
  },
});
const home = new Set([`127.0.0.1:${new URL(server.url).port}`, `127.0.0.1:${server.provider.port}`, `${siteAddress}:${port}`]);

/** Calls that take an address, and what makes a page of the site their answer. */
interface Caller {
  /** Undefined: an operator chose the address, and only its answer is untrusted. */
  readonly direct?: (server: TestServer, url: string) => Promise<unknown>;
  /** Undefined: it is never reached, or reads no answer. */
  readonly page?: (server: TestServer, path: string) => Promise<unknown>;
}

const at = (path: string): string => `http://site.example:${port}/${path}`;
/** Each in a new conversation: nothing of an earlier one is added to the question. */
const turn = (to: TestServer, tool: string, args: object): Promise<unknown> =>
  to.client.call('agent.execute', { message: askForCall(tool, args), sessionKey: `${tool}-${(turns += 1)}:proof` });
let turns = 0;
const mcp = (method: 'mcp.test' | 'mcp.connect' | 'mcp.reconnect', transport: 'http' | 'sse'): Required<Caller> => {
  const direct = (to: TestServer, url: string): Promise<unknown> => to.client.call(method, { name: 'other', transport, url });
  return { direct, page: (to, path) => direct(to, at(path)) };
};
const post = (path: string, body: object): Promise<unknown> =>
  http({ port: Number(new URL(server.url).port), path, body, headers: bearer(server.token) });
const image = (model: string): Caller => ({
  direct: (_to, url) => post('/v1/chat/completions', { model, messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] }),
});
const fetchTool: Caller = {
  direct: (to, url) => turn(to, 'web_fetch', { url }),
  page: (to, path) => turn(to, 'web_fetch', { url: at(path) }),
};
const links: Caller = {
  direct: (to, url) => to.client.call('link.process', { text: `See ${url} please` }),
  page: (to, path) => to.client.call('link.process', { text: at(path) }),
};
const callers = {
  web_fetch: fetchTool,
  'link.process': links,
  web_search: { page: (to, path) => turn(to, 'web_search', { query: path }) },
  'skills.import': {
    direct: (to, url) => to.client.call('skills.import', { url }),
    page: (to, path) => to.client.call('skills.import', { url: `https://github.com/ada/${path.replaceAll('/', '.')}/tree/main/notes` }),
  },
  'mcp.test over http': mcp('mcp.test', 'http'),
  'mcp.test over sse': mcp('mcp.test', 'sse'),
  'mcp.connect over http': mcp('mcp.connect', 'http'),
  'mcp.connect over sse': mcp('mcp.connect', 'sse'),
  'mcp.reconnect over http': mcp('mcp.reconnect', 'http'),
  'image of a completion': image('mock/mock-fast'),
  'image of a completion by an agent': image('default'),
  'image of a response': {
    direct: (_to, url) =>
      post('/v1/responses', { model: 'mock/mock-fast', input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] }),
  },
} satisfies Readonly<Record<string, Caller>>;

const wrong: string[] = [];
const cells: Record<string, number> = {};

/** Makes one call and checks what it reached; its failure is expected. */
async function ask(caller: string, about: string, call: () => Promise<unknown>, withinMs = 5000): Promise<void> {
  cells[caller] = (cells[caller] ?? 0) + 1;
  const [dialled, names, from, begun] = [watch.dialled.length, watch.lookedUp.length, reached, performance.now()];
  await call().catch(() => undefined);
  const tookMs = performance.now() - begun;
  const out = watch.dialled.slice(dialled).filter((target) => !home.has(target));
  const cell = `${caller}, ${JSON.stringify(about)}`;
  if (out.length > 0) wrong.push(`${cell}: dialled ${out.join(', ')}`);
  if (reached > from) wrong.push(`${cell}: ${reached - from} connections to what must not be reached`);
  if (watch.lookedUp.length > names) wrong.push(`${cell}: looked up ${watch.lookedUp.slice(names).join(', ')}`);
  if (tookMs > withinMs) wrong.push(`${cell}: took ${Math.round(tookMs)} ms`);
}

const isChosen = (name: string): boolean => values.only?.includes(name) ?? true;
const chosen = Object.entries<Caller>(callers).filter(([name]) => isChosen(name));
/** Whether an address is the turn of the nth caller. */
const isTurn = (index: number, nth: number): boolean => (index + nth) % Number(values.each) === 0;
for (const [nth, [name, { direct, page }]] of chosen.entries()) {
  if (direct !== undefined) for (const [index, url] of urls.entries()) if (isTurn(index, nth)) await ask(name, url, () => direct(server, url));
  if (page === undefined) continue;
  if (direct !== undefined) {
    flips = 0;
    await ask(name, 'a name that is another one when it is dialled', () => direct(server, `http://flips.example:${port}/fine`));
  }
  for (const [index, url] of elsewhere.entries())
    for (const status of isTurn(index, nth) ? statuses : []) await ask(name, `${status} to ${url}`, () => page(server, `to/${index}/${status}`));
  const hops = countPages('loop');
  await ask(name, 'a loop of redirects', () => page(server, 'loop/0'));
  if (hops() > 6) wrong.push(`${name}: followed ${hops() - 1} redirects`);
  await ask(name, 'a name that is another one at the second look', () => page(server, 'flip'));
  const before = process.memoryUsage().rss;
  await ask(name, 'a bomb', () => page(server, 'bomb'));
  const grown = (process.memoryUsage().rss - before) / 2 ** 20;
  if (grown > 160) wrong.push(`${name}: a bomb took ${Math.round(grown)} MiB`);
  const fine = countPages('fine');
  const answer = await page(server, 'fine').catch(String);
  if (fine() === 0) wrong.push(`${name}: does not reach the permitted site: ${JSON.stringify(answer)?.slice(0, 500)}`);
}
for (const [name, { page }] of Object.entries({ web_fetch: fetchTool, 'link.process': links, web_search: callers.web_search })) {
  const fine = countPages('fine');
  await page?.(server, 'hop');
  if (fine() === 0) wrong.push(`${name}: follows no redirect that it may`);
}
// MCP servers name other addresses in their own protocol.
for (const [index, url] of elsewhere.entries()) {
  if (isChosen('mcp.test over sse') && isTurn(index, 0))
    await ask('mcp.test over sse', `endpoint ${url}`, () => callers['mcp.test over sse'].page(server, `endpoint/${index}`));
  if (isChosen('mcp.test over http') && isTurn(index, 1))
    await ask('mcp.test over http', `authorization at ${url}`, () => callers['mcp.test over http'].page(server, `authorization/${index}`));
}
// Archives of repositories come from a known host, whose name may resolve to anything.
for (const [name, addresses] of isChosen('skills.import') ? Object.entries(hostileNames) : []) {
  archivesAt = addresses.filter((address) => address !== '<site>');
  await ask('skills.import', `the known host is at ${name}`, () =>
    server.client.call('skills.import', { url: 'https://github.com/ada/skills/tree/main/notes' }),
  );
}
archivesAt = undefined;
const slow = chosen.filter(([name]) => values.slow || ['link.process', 'web_search', 'skills.import'].includes(name));
await Promise.all(slow.map(async ([name, { page }]) => page && ask(name, 'a byte a second', () => page(server, 'slow'), 36_000)));

console.log(JSON.stringify({ urls: urls.length, cells, wrong }));
site.close();
site.closeAllConnections();
for (const each of forbidden) each.close();

function answerSite(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://site.example');
  const archive = /^\/ada\/([^/]+)\/tar\.gz\//.exec(pathname)?.[1]?.replaceAll('.', '/');
  const path = archive ?? searchParams.get('q') ?? pathname.slice(1);
  served.push(path);
  const [what = '', first = '', second] = path.split('/');
  const target = elsewhere[Number(first)] ?? '';
  switch (what) {
    case 'to':
      response.writeHead(Number(second), { location: target }).end('elsewhere');
      return;
    case 'loop':
      response.writeHead(302, { location: request.url?.replace(/loop([/.]|%2F)\d+/, `loop$1${Number(first) + 1}`) }).end();
      return;
    case 'hop':
      response.writeHead(302, { location: `http://other.example:${port}/fine` }).end();
      return;
    case 'flip':
      flips = 1;
      response.writeHead(302, { location: `http://flips.example:${port}/fine` }).end();
      return;
    case 'bomb':
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-type': 'text/html' }).end(bomb);
      return;
    case 'endpoint':
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`event: endpoint\ndata: ${target}\n\n`);
      setTimeout(() => response.end(), 50);
      return;
    case 'authorization':
      response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${target}"`, link: `<${target}>; rel="service"` }).end();
      return;
    case 'slow': {
      response.writeHead(200, { 'content-type': 'text/plain' }).write('x');
      const timer = setInterval(() => response.write('x'), 1000);
      response.on('close', () => clearInterval(timer));
      return;
    }
    default:
      response.writeHead(200, { 'content-type': 'text/plain' }).end('{"results":[]}');
  }
}

function countPages(what: string): () => number {
  const from = served.length;
  return () => served.slice(from).filter((path) => path.startsWith(what)).length;
}

/** Returns a web port that is free at all participating addresses of this machine. */
async function takePort(): Promise<{ readonly port: number; readonly forbidden: readonly ReturnType<typeof createServer>[] }> {
  for (const candidate of [8080, 8443]) {
    const opened: ReturnType<typeof createServer>[] = [];
    try {
      for (const host of ['127.0.0.2', '::1']) {
        const listener = createServer((_request, response) => response.end('internal'));
        listener.on('connection', () => (reached += 1));
        opened.push(await listen(listener, host, candidate));
      }
      await listen(site, siteAddress, candidate);
      return { port: candidate, forbidden: opened };
    } catch (error) {
      for (const each of opened) each.close();
      if (candidate === 8443) throw error;
    }
  }
  throw new RangeError('no port');
}

async function listen(listener: ReturnType<typeof createServer>, host: string, wanted: number): Promise<typeof listener> {
  await new Promise<void>((done, failed) => listener.once('error', failed).listen(wanted, host, done));
  if ((listener.address() as AddressInfo).port !== wanted) throw new RangeError('another port');
  return listener;
}
