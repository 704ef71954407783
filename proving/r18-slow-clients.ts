import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import { freePort } from '@gatehouse/testkit/free-port';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { proofConfig } from './lib/provider.ts';
import { openRaw, percentile } from './lib/raw.ts';

/** R18: clients that send their header, or their body, a byte at a time hold nothing for long, and other clients are not affected. */
export interface R18Report {
  readonly header: Slow;
  readonly body: Slow;
  /** Requests of others meanwhile, on kept and on new connections. */
  readonly good: { readonly requests: number; readonly failed: readonly string[]; readonly p99Ms: number };
}

interface Slow {
  readonly opened: number;
  /** Still open after the time. */
  readonly left: number;
  readonly slowestMs: number;
  /** Number by status of the last answer: 408, 429 for uploads beyond a token's limit, or none where the socket was cut to free a connection. */
  readonly answers: Readonly<Record<string, number>>;
}

interface Client {
  readonly socket: Socket;
  readonly begun: number;
  closedMs: number | undefined;
  answer: string;
}

/** Every route that takes a body; all of them check the token before they read it. */
const bodyRoutes = ['/rpc', '/v1/chat/completions', '/v1/responses', '/v1/embeddings', '/api/chat', '/api/chat/stream', '/media'];

export async function proveSlowClients(options: {
  readonly each: number;
  readonly withinMs?: number;
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}): Promise<R18Report> {
  const withinMs = options.withinMs ?? 12_000;
  const home = await makeHome();
  const port = await freePort();
  await writeConfig(home, proofConfig('http://127.0.0.1:9/v1'));
  let daemon: Daemon | undefined;
  try {
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    const { token } = daemon;
    const headers = Array.from({ length: options.each }, () => dawdle(port, 'GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: '));
    const bodies = Array.from({ length: options.each }, (_, n) => {
      const path = bodyRoutes[n % bodyRoutes.length] ?? '/rpc';
      const length = n % 2 === 0 ? 'content-length: 60000' : 'transfer-encoding: chunked';
      const head = [`POST ${path} HTTP/1.1`, 'host: 127.0.0.1', `authorization: Bearer ${token}`, 'content-type: application/json', length];
      return dawdle(port, `${head.join('\r\n')}\r\n\r\n`, n % 2 === 0 ? ' ' : '1\r\n \r\n');
    });
    const until = performance.now() + withinMs;
    const all = [...headers, ...bodies];
    const good = await beGood(daemon, until, () => all.every((client) => client.closedMs !== undefined));
    const report = { header: sum(headers), body: sum(bodies), good };
    for (const { socket } of all) socket.destroy();
    options.progress?.(`R18: ${report.header.left} of ${options.each} slow headers and ${report.body.left} of ${options.each} slow bodies left`);
    return report;
  } finally {
    await daemon?.kill();
    await removeHome(home);
  }
}

/** Sends the beginning of a request, then a byte every second for as long as the server allows it. */
function dawdle(port: number, head: string, drop = 'a'): Client {
  const client: Client = { socket: openRaw({ port }), begun: performance.now(), closedMs: undefined, answer: '' };
  const { socket } = client;
  socket.on('connect', () => socket.write(head));
  const timer = setInterval(() => socket.writable && socket.write(drop), 1_000);
  socket.on('data', (chunk: Buffer) => (client.answer += chunk.toString('latin1')));
  socket.on('close', () => {
    clearInterval(timer);
    client.closedMs = performance.now() - client.begun;
  });
  return client;
}

function sum(clients: readonly Client[]): Slow {
  const answers: Record<string, number> = {};
  for (const { answer, closedMs } of clients) {
    if (closedMs === undefined) continue;
    const status = /^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 'none';
    answers[status] = (answers[status] ?? 0) + 1;
  }
  return {
    opened: clients.length,
    left: clients.filter(({ closedMs }) => closedMs === undefined).length,
    slowestMs: Math.round(Math.max(...clients.map(({ closedMs }) => closedMs ?? 0))),
    answers,
  };
}

/** Sends ordinary requests, one each 20 ms: kept connections with a token, and new ones without, as a probe makes them. */
async function beGood(daemon: Daemon, until: number, done: () => boolean): Promise<R18Report['good']> {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  const times: number[] = [];
  const failed: string[] = [];
  const running: Promise<void>[] = [];
  const one = async (n: number): Promise<void> => {
    const begun = performance.now();
    try {
      const kept = n % 4 !== 0;
      const reply = await http(
        kept
          ? { port: daemon.port, path: '/v1/models', headers: bearer(daemon.token), agent, timeoutMs: 5_000 }
          : { port: daemon.port, path: '/health', timeoutMs: 5_000 },
      );
      if (reply.status !== 200) failed.push(`HTTP ${reply.status}`);
    } catch (error) {
      failed.push(String(error));
    }
    times.push(performance.now() - begun);
  };
  for (let n = 0; performance.now() < until && !done(); n += 1) {
    running.push(one(n));
    await pause(20);
  }
  await Promise.all(running);
  agent.destroy();
  return { requests: times.length, failed, p99Ms: Math.round(percentile(times, 0.99)) };
}
