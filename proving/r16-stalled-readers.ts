import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { freePort } from '@gatehouse/testkit/free-port';
import { type Daemon, logOf, pause, residentMbOf, startDaemon } from './lib/daemon.ts';
import { type EventReader, openEventReader } from './lib/event-reader.ts';
import { startFireHose } from './lib/fire-hose.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { proofConfig, startEchoProvider } from './lib/provider.ts';
import { percentile } from './lib/raw.ts';
import { openSocket } from './lib/rpc.ts';
import { eventsPerTurn, startTraffic, type Traffic } from './lib/turn-traffic.ts';

/** R16: clients that stop reading cost little, are cut in time, and one of the event stream misses nothing when it reconnects. */
export interface R16Report {
  readonly eventsPerSecond: number;
  readonly failed: readonly string[];
  /** Age of events at arrival with reading clients, before and meanwhile, 99th percentile. */
  readonly beforeP99Ms: number;
  readonly meanwhileP99Ms: number;
  /** The same for the median of their seconds: a second in which the machine was busy counts like any other. */
  readonly middleSecond: { readonly beforeP99Ms: number; readonly meanwhileP99Ms: number };
  /** Growth of the process with a stalled event stream and a stalled socket, and then with two streams of endless turns. Resident memory also varies by a dozen MiB without them. */
  readonly grown: Memory;
  readonly turnsGrown: Memory | undefined;
  /** Time from the connect until the server cut it; undefined: not within the time limit. */
  readonly cutMs: Readonly<Record<'events' | 'socket' | 'v1' | 'chat', number | undefined>>;
  /** Events that the cut reader got before and after it reconnected, and those neither delivered nor covered by a gap. */
  readonly resumed: { readonly events: number; readonly missing: number; readonly gaps: number };
  /** What the provider of the endless answers could send, and the answers still in progress. */
  readonly hose: { readonly sentMb: number; readonly open: number };
}

/** Size of the text of turns: the kernel takes the first two seconds of it for a reader, and the event log keeps a dozen. */
const bytesPerSecond = 1_600_000;
/** Until the ring of the event log is full and the code is warm. */
const warmMs = 4_000;
const settledMs = 2_000;
/** Time after which a stalled client's buffers are full, and none is cut yet; then memory is measured. */
const fullMs = 9_000;

export async function proveStalledReaders(options: {
  /** 1,000 by default; events of smaller numbers are larger, so that the bytes are the same. */
  readonly eventsPerSecond?: number;
  /** Traffic before memory is first measured; short by default. */
  readonly warmMs?: number;
  /** How long the event stream and the socket are waited for, which have 15 s, and then the streams of turns, which have 35; none when 0. */
  readonly readersMs: number;
  readonly turnsMs: number;
  /** Measures memory again until it has grown this much, or `readersMs` are over: a build that cuts nobody grows without limit. */
  readonly untilGrownMb?: number;
  /** False skips the check of what the cut reader missed, which takes seconds. */
  readonly resumes?: boolean;
  readonly broken?: string;
}): Promise<R16Report> {
  const perSecond = options.eventsPerSecond ?? 1_000;
  const home = await makeHome();
  const port = await freePort();
  const provider = await startEchoProvider();
  const hose = await startFireHose();
  let running: Daemon | undefined;
  try {
    const config = proofConfig(provider.url, { gateway: { wsMaxInFlight: 64 }, agents: { hose: { model: 'hose/endless' } } });
    // An answer may be long enough that a reader who stops is noticed before the answer is cut off.
    const model = { id: 'endless', contextWindow: 4_000_000, maxTokens: 2_000_000 };
    const endless = { type: 'openai-compatible', baseUrl: hose.url, apiKey: 'sk-of-the-hose', models: [model] };
    await writeConfig(home, { ...config, providers: { ...config.providers, hose: endless } });
    const daemon = await startDaemon({ home, port, collects: true, ...(options.broken !== undefined && { broken: options.broken }) });
    running = daemon;
    const healthy = Array.from({ length: 4 }, () => openEventReader({ port, token: daemon.token }));
    const [witness] = healthy;
    if (witness === undefined) throw new Error('no reader');
    const traffic = startTraffic(daemon, { perSecond: perSecond / eventsPerTurn, textBytes: bytesPerSecond / (perSecond / eventsPerTurn) });
    const caller = await callAway(daemon);
    await pause(options.warmMs ?? warmMs);
    const before = await watch(daemon, healthy, settledMs);
    const atFirst = await memoryOf(daemon);
    const turnsBefore = traffic.turns;
    const begun = performance.now();
    const reader = openEventReader({ port, token: daemon.token, stalled: true });
    const readers = { events: stalledOf(reader.socket), socket: stalledSocket(daemon) };
    const meanwhile = await watch(daemon, healthy, fullMs, readers);
    let grown = growth(atFirst, await memoryOf(daemon));
    while (grown.heldMb <= (options.untilGrownMb ?? -Infinity) && performance.now() < begun + options.readersMs) {
      await watch(daemon, healthy, settledMs);
      grown = growth(atFirst, await memoryOf(daemon));
    }
    if (options.untilGrownMb === undefined) await watch(daemon, healthy, begun + options.readersMs - performance.now(), readers);
    const eventsPerSecond = Math.round(((traffic.turns - turnsBefore) * eventsPerTurn * 1_000) / (performance.now() - begun));
    const resumed = options.resumes === false ? { events: 0, missing: 0, gaps: 0 } : await comeBack(daemon, reader, witness, traffic);
    await traffic.stop();
    caller.close();
    const turns = options.turnsMs === 0 ? undefined : await watchTurns(daemon, options.turnsMs);
    const report: R16Report = {
      eventsPerSecond,
      failed: traffic.failed,
      beforeP99Ms: before.p99Ms,
      meanwhileP99Ms: meanwhile.p99Ms,
      middleSecond: { beforeP99Ms: before.middleP99Ms, meanwhileP99Ms: meanwhile.middleP99Ms },
      grown,
      turnsGrown: turns?.grown,
      cutMs: { events: readers.events.cutMs, socket: readers.socket.cutMs, v1: turns?.v1, chat: turns?.chat },
      resumed,
      hose: { sentMb: Math.round(hose.sentBytes() / 2 ** 20), open: hose.open() },
    };
    for (const { socket } of [...healthy, ...Object.values(readers)]) socket.destroy();
    return report;
  } finally {
    await running?.kill();
    await provider.close();
    await hose.close();
    await removeHome(home);
  }
}

interface Stalled {
  readonly socket: Socket;
  readonly begunMs: number;
  cutMs: number | undefined;
}

function stalledOf(socket: Socket): Stalled {
  return { socket, begunMs: performance.now(), cutMs: undefined };
}

/** A WebSocket that requests long answers and reads none; the kernel holds back what the server does not read. */
function stalledSocket({ port, token }: Daemon): Stalled {
  const upgrade = 'connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: c3RhbGxlZC1yZWFkZXItMQ==\r\n';
  const { socket } = neverRead(port, head('GET /ws', token, upgrade));
  const text = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, ...longCall }));
  // Masked with zeros.
  const frame = Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text]);
  const timer = setInterval(() => socket.write(frame), callEveryMs);
  socket.on('close', () => clearInterval(timer));
  return stalledOf(socket);
}

/** Makes the same calls and reads the answers: their own cost came before. */
async function callAway({ port, token }: Daemon): Promise<{ close(): void }> {
  const socket = await openSocket({ port, token });
  const timer = setInterval(() => void socket.call(longCall.method, longCall.params).catch(() => undefined), callEveryMs);
  return {
    close() {
      clearInterval(timer);
      socket.close();
    },
  };
}

const longCall = { method: 'rpc.discover', params: {} };
const callEveryMs = 50;

/** Opens two streams of an endless turn without reading them. */
async function watchTurns(daemon: Daemon, forMs: number) {
  const { port, token } = daemon;
  const completion = { model: 'hose/endless', messages: [{ role: 'user', content: 'Go on' }], stream: true };
  const before = await memoryOf(daemon);
  const v1 = neverRead(port, post('/v1/chat/completions', token, completion));
  const chat = neverRead(port, post('/api/chat/stream', token, { message: 'Go on', agentId: 'hose' }));
  await watch(daemon, [], fullMs, { v1, chat });
  const grown = growth(before, await memoryOf(daemon));
  await watch(daemon, [], forMs - fullMs, { v1, chat });
  for (const { socket } of [v1, chat]) socket.destroy();
  return { grown, v1: v1.cutMs, chat: chat.cutMs };
}

function head(line: string, token: string, more: string): string {
  return `${line} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\n${more}\r\n`;
}

function post(path: string, token: string, body: object): string {
  const text = JSON.stringify(body);
  return head(`POST ${path}`, token, `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n`) + text;
}

function neverRead(port: number, bytes: string): Stalled {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  socket.pause();
  socket.on('error', () => socket.destroy());
  socket.on('connect', () => socket.write(bytes));
  return stalledOf(socket);
}

/** Detects the end on the server's side of the connection: a client that does not read cannot see it. */
async function noteCuts({ port }: Daemon, stalled: readonly Stalled[]): Promise<void> {
  const table = await readFile('/proc/net/tcp', 'utf8');
  const established = new Set([...table.matchAll(/ \w+:(\w{4}) \w+:(\w{4}) 01 /g)].map(([, local, remote]) => `${local} ${remote}`));
  const hex = (n: number | undefined): string => (n ?? 0).toString(16).toUpperCase().padStart(4, '0');
  for (const one of stalled) {
    const ms = performance.now() - one.begunMs;
    if (one.cutMs === undefined && ms > 500 && !established.has(`${hex(port)} ${hex(one.socket.localPort)}`)) one.cutMs = Math.round(ms);
  }
}

interface Ages {
  readonly p99Ms: number;
  readonly middleP99Ms: number;
}

/**
 * Returns the age of events at arrival, 99th percentile of all and of the median second, until all `stalled` are cut or the time is
 * over; a client is waited for from its connect.
 */
async function watch(daemon: Daemon, readers: readonly EventReader[], forMs: number, stalled: Readonly<Record<string, Stalled>> = {}): Promise<Ages> {
  const lengths = (): number[] => readers.map(({ latenciesMs }) => latenciesMs.length);
  const agesSince = (from: readonly number[]): number[] => readers.flatMap(({ latenciesMs }, index) => latenciesMs.slice(from[index]));
  const from = lengths();
  const seconds: number[] = [];
  let second = { from, endsMs: performance.now() + 1_000 };
  const waitsFor = Object.values(stalled);
  for (const until = performance.now() + forMs; performance.now() < until;) {
    await pause(100);
    await noteCuts(daemon, waitsFor);
    if (performance.now() >= second.endsMs) {
      seconds.push(percentile(agesSince(second.from), 0.99));
      second = { from: lengths(), endsMs: performance.now() + 1_000 };
    }
    if (waitsFor.length > 0 && waitsFor.every(({ cutMs }) => cutMs !== undefined)) break;
  }
  return { p99Ms: percentile(agesSince(from), 0.99), middleP99Ms: percentile(seconds, 0.5) };
}

interface Memory {
  /** Measures the heap and buffers, without garbage. */
  readonly heldMb: number;
  readonly rssMb: number;
}

async function memoryOf(daemon: Daemon): Promise<Memory> {
  const reports = (): readonly string[] => daemon.stderr().match(/held after collection: \d+/g) ?? [];
  const before = reports().length;
  if (daemon.child.exitCode !== null || daemon.child.signalCode !== null) throw new Error(`the daemon is gone\n${logOf(daemon)}`);
  process.kill(daemon.pid, 'SIGUSR2');
  for (const until = performance.now() + 30_000; reports().length === before;) {
    if (performance.now() > until) throw new Error(`the daemon did not collect its garbage\n${logOf(daemon)}`);
    await pause(20);
  }
  return {
    heldMb: Number(reports().at(-1)?.split(': ')[1]) / 2 ** 20,
    rssMb: await residentMbOf(daemon.pid),
  };
}

function growth(before: Memory, after: Memory): Memory {
  return { heldMb: Math.round((after.heldMb - before.heldMb) * 10) / 10, rssMb: Math.round(after.rssMb - before.rssMb) };
}

/** The stalled reader reads what the kernel kept for it, and reconnects after that. */
async function comeBack({ port, token }: Daemon, cut: EventReader, witness: EventReader, traffic: Traffic): Promise<R16Report['resumed']> {
  cut.socket.resume();
  await Promise.race([cut.closed, pause(5_000)]);
  const again = openEventReader({ port, token, lastEventId: cut.lastId });
  await traffic.stop();
  for (const until = performance.now() + 10_000; performance.now() < until && again.lastId < witness.lastId;) await pause(50);
  again.close();
  const first = cut.ids[0] ?? 0;
  const got = new Set([...cut.ids, ...again.ids]);
  const gaps = [...cut.gaps, ...again.gaps];
  const isCovered = (id: number): boolean => got.has(id) || gaps.some(({ from, to }) => id >= from && id <= to);
  const seen = witness.ids.filter((id) => id >= first && id <= again.lastId);
  return { events: got.size, missing: seen.filter((id) => !isCovered(id)).length, gaps: gaps.length };
}
