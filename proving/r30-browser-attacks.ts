import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Route, routes } from '@gatehouse/contract';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { chromiumPath, startBrowser } from '../e2e/lib/browser.ts';
import { type Daemon, operatorToken, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { proofConfig, startEchoProvider } from './lib/provider.ts';
import { inParallel, rawRequest, statusesOf } from './lib/raw.ts';

/** R30: no page of another site reads anything from the daemon or changes anything in it, even one that knows a token. */
export interface R30Report {
  readonly cases: number;
  readonly cells: number;
  /** Undefined where there is no Chromium. */
  readonly browser: { readonly pages: number; readonly attempts: number } | undefined;
  /** Unexpected outcomes, each in one line. */
  readonly wrong: readonly string[];
}

/** Origin that the configuration allows, so that near misses of it are meaningful. */
const friend = 'https://app.example';

/** Header lines of requests that other sites' pages send, or make a browser send. */
function casesOf(port: number): Readonly<Record<string, readonly string[]>> {
  const own = `host: 127.0.0.1:${port}`;
  const origin = (value: string): readonly string[] => [own, `origin: ${value}`];
  const host = (value: string): readonly string[] => [`host: ${value}`];
  return Object.fromEntries([
    ...[
      'https://evil.example',
      'HTTP://EVIL.EXAMPLE',
      `http://evil.example:${port}`,
      'null',
      '',
      'file://',
      'chrome-extension://abcdefghijklmnop',
      'http://127.0.0.1:9999',
      'http://127.0.0.1',
      `http://localhost:${port}`,
      `http://[::1]:${port}`,
      `http://127.0.0.1:${port}.evil.example`,
      `http://127.0.0.1:${port}@evil.example`,
      `http://127.0.0.1:${port}/`,
      `ws://127.0.0.1:${port}`,
      'http://localhost.evil.example',
      `${friend}.evil.example`,
      `${friend}:8443`,
      'http://app.example',
      'https://evil.app.example',
      `${friend}, https://evil.example`,
    ].map((value) => [`Origin "${value}"`, origin(value)] as const),
    // A link that a person follows is allowed: nothing returns to the page that contains it.
    ['image of another site', [own, 'sec-fetch-site: cross-site', 'sec-fetch-mode: no-cors', 'sec-fetch-dest: image']],
    ['image of another port', [own, 'sec-fetch-site: same-site', 'sec-fetch-mode: no-cors', 'sec-fetch-dest: image']],
    ['frame of another site', [own, 'sec-fetch-site: cross-site', 'sec-fetch-mode: navigate', 'sec-fetch-dest: iframe']],
    ['frame of another port', [own, 'sec-fetch-site: same-site', 'sec-fetch-mode: navigate', 'sec-fetch-dest: iframe']],
    ['Sec-Fetch-Site alone', [own, 'sec-fetch-site: cross-site']],
    ['Sec-Fetch-Site that no browser sends', [own, 'sec-fetch-site: else']],
    ...[
      `evil.example:${port}`,
      'evil.example',
      `localhost.evil.example:${port}`,
      `127.0.0.1.evil.example:${port}`,
      `0.0.0.0:${port}`,
      '10.0.0.1',
      `[::2]:${port}`,
      `evil.example@127.0.0.1:${port}`,
      '',
    ].map((value) => [`Host "${value}"`, host(value)] as const),
    [
      'rebound name, of one origin with its page',
      [`host: evil.example:${port}`, `origin: http://evil.example:${port}`, 'sec-fetch-site: same-origin'],
    ],
    ['rebound name of a friend', [`host: app.example:${port}`, `origin: ${friend}`]],
  ]);
}

export async function proveBrowserAttacks(
  options: { readonly broken?: string; readonly pages?: boolean; readonly progress?: (line: string) => void } = {},
): Promise<R30Report> {
  const provider = await startEchoProvider();
  const home = await makeHome();
  const port = await freePort();
  await writeConfig(home, proofConfig(provider.url, { gateway: { corsOrigins: [friend] } }));
  let daemon: Daemon | undefined;
  try {
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    const wrong: string[] = [];
    const before = await traces(port, provider.served());
    const cases = casesOf(port);
    const cells = await scripted(port, cases, wrong);
    const between = await traces(port, provider.served());
    if (between !== before) wrong.push(`refused requests left a trace: ${before} became ${between}`);
    const browser = options.pages === false || chromiumPath === undefined ? undefined : await pages(port, wrong);
    const after = await traces(port, provider.served());
    if (after !== between) wrong.push(`pages left a trace: ${between} became ${after}`);
    options.progress?.(`R30: ${cells} cells, ${browser?.attempts ?? 0} attempts of pages, ${wrong.length} wrong`);
    return { cases: Object.keys(cases).length, cells, browser, wrong };
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}

/** Each case on each route with a token that opens it, on a nonexistent path, and as a handshake. */
async function scripted(port: number, cases: Readonly<Record<string, readonly string[]>>, wrong: string[]): Promise<number> {
  const targets = [
    ...Object.values(routes).map((route: Route) => ({ method: route.method, path: route.path.replace(/[:*]\w+/, 'x'), body: bodyOf(route.path) })),
    { method: 'GET', path: '/nothing', body: '' },
    { method: 'GET', path: '/chat', body: '' },
    { method: 'OPTIONS', path: '/rpc', body: '' },
    { method: 'OPTIONS', path: '/v1/chat/completions', body: '' },
    { method: 'UPGRADE', path: '/ws', body: '' },
    { method: 'UPGRADE', path: `/ws?token=${operatorToken}`, body: '' },
  ];
  const cells = Object.entries(cases).flatMap(([name, lines]) => targets.map((target) => ({ name, lines, ...target })));
  await inParallel(cells, 8, async ({ name, lines, method, path, body }) => {
    const kind = {
      UPGRADE: ['connection: Upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=='],
      OPTIONS: ['connection: close', 'access-control-request-method: POST', 'access-control-request-headers: authorization, content-type'],
    }[method] ?? [
      'connection: close',
      'accept: text/html',
      ...(body === '' ? [] : ['content-type: application/json', `content-length: ${body.length}`]),
    ];
    const head = [`${method === 'UPGRADE' ? 'GET' : method} ${path} HTTP/1.1`, ...lines, `authorization: Bearer ${operatorToken}`, ...kind];
    const reply = await rawRequest({ port, bytes: `${head.join('\r\n')}\r\n\r\n${body}`, timeoutMs: 5_000, until: isLetIn });
    const statuses = statusesOf(reply.text).join(', ');
    if (statuses !== '403') wrong.push(`${name}: ${method} ${path} was answered with ${statuses || 'nothing'}`);
    else if (!reply.closed) wrong.push(`${name}: ${method} ${path} stayed open`);
    if (/^access-control-/im.test(reply.text)) wrong.push(`${name}: ${method} ${path} has CORS headers`);
  });
  return cells.length;
}

/** Allowed streams may stay open forever. */
function isLetIn(text: string): boolean {
  return text.includes('\r\n\r\n') && !text.startsWith('HTTP/1.1 403');
}

/** A call that would leave a trace. */
function bodyOf(path: string): string {
  switch (path) {
    case '/rpc':
      return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'agents.create', params: { agentId: 'planted' } });
    case '/v1/chat/completions':
      return JSON.stringify({ model: 'local/test-model', messages: [{ role: 'user', content: 'planted' }] });
    case '/v1/responses':
      return JSON.stringify({ model: 'local/test-model', input: 'planted' });
    case '/api/chat':
    case '/api/chat/stream':
      return JSON.stringify({ message: 'planted' });
    case '/mcp':
      return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'agent_default', arguments: { message: 'planted' } } });
    case '/media':
      return 'planted';
    default:
      return '';
  }
}

/** Real pages: of a stranger, of another port of this machine, and one whose name was rebound to the daemon. */
async function pages(port: number, wrong: string[]): Promise<R30Report['browser']> {
  const html = await readFile(new URL('lib/attack-page.html', import.meta.url), 'utf8');
  const server = createServer((_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(html));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const evilPort = (server.address() as AddressInfo).port;
  // The browser's own guard for local addresses is switched off: ours must hold without it.
  await using browser = await startBrowser([
    '--host-resolver-rules=MAP *.example 127.0.0.1',
    '--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessSendPreflights',
  ]);
  let attempts = 0;
  const rebound = `http://rebound.example:${port}`;
  const attacks = [
    { name: 'a stranger', page: `http://evil.example:${evilPort}/attack`, target: `http://127.0.0.1:${port}` },
    { name: 'another port', page: `http://127.0.0.1:${evilPort}/attack`, target: `http://127.0.0.1:${port}` },
    { name: 'a rebound name', page: `${rebound}/attack`, target: rebound },
  ];
  const Found = z.object({ tried: z.int(), got: z.array(z.string()) });
  for (const { name, page: address, target } of attacks) {
    const context = await browser.context();
    const page = await context.newPage();
    // Before its name was rebound the page came from another server.
    await page.route(`${rebound}/attack`, (route) => route.fulfill({ contentType: 'text/html', body: html }));
    await page.goto(address);
    const found = Found.parse(await page.evaluate(`attack(${JSON.stringify(target)}, ${JSON.stringify(operatorToken)})`));
    attempts += found.tried;
    wrong.push(...found.got.map((line) => `page of ${name}: ${line}`));
    await context.close();
  }
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
  return { pages: attacks.length, attempts };
}

/** Returns traces of a handler that ran: answers other than refusals, calls, turns and requests to the provider. */
async function traces(port: number, served: number): Promise<string> {
  const { text } = await http({ port, path: '/metrics', headers: bearer(operatorToken) });
  const sum = (line: RegExp): number =>
    text
      .split('\n')
      .filter((row) => line.test(row))
      .reduce((total, row) => total + Number(row.slice(row.lastIndexOf(' ') + 1)), 0);
  return JSON.stringify({
    answered: sum(/^gatehouse_http_requests_total\{(?!route="(?:\/metrics|\/health)").*status="[23]xx"/),
    calls: sum(/^gatehouse_rpc_calls_total\{/),
    turns: sum(/^gatehouse_turns_total\{/),
    sockets: sum(/^gatehouse_connections\{transport="websocket"\}/),
    served,
  });
}
