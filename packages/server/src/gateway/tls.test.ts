import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import https from 'node:https';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type tls from 'node:tls';
import { createStepClock, makeAuthority, makeCertificate, type Pair, writePair } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type * as z from 'zod';
import type { GatewayConfig } from './config.ts';
import { rawExchange, startGateway, testTokens } from './testing/gateway-fixture.ts';

type TlsInput = NonNullable<z.input<typeof GatewayConfig>['tls']>;

const dayMs = 86_400_000;
let dir: string;
let authority: Pair;
let stranger: Pair;
let good: Pair;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gatehouse-tls-'));
  [authority, stranger] = await Promise.all([makeAuthority('Test Authority'), makeAuthority('Another Authority')]);
  good = await makeCertificate('localhost', authority);
  await writePair(dir, 'server', good);
  await writePair(dir, 'authority', authority);
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const start = (more: Partial<TlsInput> = {}, options: Parameters<typeof startGateway>[0] = {}) =>
  startGateway({
    ...options,
    config: { ...options.config, tls: { certPath: 'server.crt', keyPath: 'server.key', ...more } },
    deps: { homeDir: dir, ...options.deps },
  });

interface Seen {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly protocol: string | null;
  readonly serial: string;
}

/** Sends one request on a new connection; rejects when the handshake fails, on either side. */
function get(port: number, options: https.RequestOptions = {}): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const request = https.get({ host: '127.0.0.1', port, path: '/health', ca: authority.cert, agent: false, ...options }, (incoming) => {
      const socket = incoming.socket as tls.TLSSocket;
      const { serialNumber } = socket.getPeerCertificate();
      resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, protocol: socket.getProtocol(), serial: serialNumber });
      incoming.resume();
    });
    request.on('error', reject);
  });
}

describe('HTTPS', () => {
  it('carries requests, shows https in the address, and sends HSTS to browsers', async () => {
    await using gateway = await start({}, { config: { allowedHosts: ['gate.example'] } });
    expect(gateway.address).toBe(`https://127.0.0.1:${gateway.port}`);
    const local = await get(gateway.port);
    expect(local.status).toBe(200);
    // A rule for the name "localhost" would apply to the plain ports of this machine too.
    expect(local.headers['strict-transport-security']).toBeUndefined();
    const named = await get(gateway.port, { servername: 'localhost', headers: { host: 'gate.example' } });
    expect(named.headers['strict-transport-security']).toBe('max-age=15552000');
  });

  it('carries WebSocket', async () => {
    await using gateway = await start();
    const socket = new WebSocket(`wss://127.0.0.1:${gateway.port}/ws?token=${testTokens.rpc}`, { ca: authority.cert });
    const reply = await new Promise<string>((resolve, reject) => {
      socket.on('error', reject);
      socket.on('open', () => socket.send('{"jsonrpc":"2.0","id":1,"method":"system.ping"}'));
      socket.on('message', (data: Buffer) => resolve(data.toString()));
    });
    expect(JSON.parse(reply)).toMatchObject({ id: 1, result: { pong: true } });
    expect(gateway.gateway.connections()).toEqual({ http: 0, websocket: 1 });
    socket.terminate();
  });

  it('answers plain HTTP with an explanation, cuts other bytes, and continues to serve', async () => {
    await using gateway = await start();
    const { text, closed } = await rawExchange(gateway.port, 'GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n');
    expect(text).toMatch(
      /^HTTP\/1\.1 400 Bad Request\r\nconnection: close\r\n[^]*\r\n\r\nThis port speaks HTTPS: use https:\/\/ in the address\.\n$/,
    );
    expect(closed).toBe(true);
    const broken = await rawExchange(gateway.port, Buffer.from([0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0]));
    expect(broken.closed).toBe(true);
    expect(broken.text).not.toContain('HTTP/');
    expect((await get(gateway.port)).status).toBe(200);
  });

  it('limits unauthenticated sockets, before and after the handshake, and keeps those with a token', async () => {
    const clock = createStepClock(Date.now());
    await using gateway = await start({}, { clock });
    const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
    const bearer = { authorization: `Bearer ${testTokens.rpc}` };
    const known = () => get(gateway.port, { agent, path: '/v1/models', headers: bearer });
    expect((await known()).status).toBe(200);
    const open: net.Socket[] = [];
    for (let i = 0; i < 100; i += 1) open.push(net.connect(gateway.port, '127.0.0.1').on('error', () => {}));
    await expect.poll(() => gateway.gateway.connections().http).toBe(101);
    clock.advance(2_000);
    await get(gateway.port);
    await expect.poll(() => open.filter((socket) => socket.closed).length).toBeGreaterThanOrEqual(36);
    expect((await known()).status).toBe(200);
    expect(Object.values(agent.freeSockets).flat()).toHaveLength(1);
    for (const socket of open) socket.destroy();
    agent.destroy();
  });

  it('accepts no version older than the configured one', async () => {
    await using gateway = await start({ minVersion: 'TLSv1.3' });
    await expect(get(gateway.port, { maxVersion: 'TLSv1.2' })).rejects.toThrow(/alert|EPROTO/);
    expect((await get(gateway.port)).protocol).toBe('TLSv1.3');
  });
});

describe('client certificates (A10)', () => {
  it('only a currently valid one of the right authority completes the handshake, and a token is still required', async () => {
    await using gateway = await start({ requireClientCert: true, caPath: 'authority.crt' });
    const right = await makeCertificate('client', authority);
    const wrong = await makeCertificate('client', stranger);
    const expired = await makeCertificate('client', authority, { fromMs: Date.now() - 30 * dayMs, toMs: Date.now() - dayMs });
    for (const pair of [{}, wrong, expired]) await expect(get(gateway.port, pair)).rejects.toThrow(/alert|ECONNRESET|socket hang up/);
    expect((await get(gateway.port, right)).status).toBe(200);
    expect((await get(gateway.port, { ...right, path: '/v1/models' })).status).toBe(401);
  });
});

describe('new files', () => {
  it('are used for new connections while old ones continue; broken ones are announced and not used', async () => {
    await using gateway = await start();
    const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
    const before = await get(gateway.port, { agent });
    const renewed = await makeCertificate('localhost', authority);
    await writePair(dir, 'server', renewed);
    await expect.poll(async () => (await get(gateway.port)).serial).not.toBe(before.serial);
    expect((await get(gateway.port, { agent })).serial).toBe(before.serial);
    const current = (await get(gateway.port)).serial;

    await writeFile(join(dir, 'server.crt'), good.cert);
    await expect
      .poll(() => gateway.events.filter((event) => event.kind === 'security:warn').map((event) => JSON.stringify(event.payload)))
      .toEqual([expect.stringContaining('gateway.tls.keyPath: is not the private key')]);
    expect((await get(gateway.port)).serial).toBe(current);
    await writePair(dir, 'server', good);
    await expect.poll(async () => (await get(gateway.port)).serial).toBe(before.serial);
    agent.destroy();
  });

  it('a certificate is announced in its last 14 days, once a day', async () => {
    await writePair(dir, 'short', await makeCertificate('localhost', authority, { toMs: Date.now() + 3 * dayMs }));
    // Noon: the steps below must not cross midnight.
    const clock = createStepClock((Math.floor(Date.now() / dayMs) + 0.5) * dayMs);
    await using gateway = await start({ certPath: 'short.crt', keyPath: 'short.key' }, { clock });
    const warnings = () => gateway.events.filter((event) => event.kind === 'security:warn').length;
    expect(warnings()).toBe(1);
    for (let minute = 0; minute < 5; minute += 1) clock.advance(60_000);
    expect(warnings()).toBe(1);
    clock.advance(dayMs);
    expect(warnings()).toBe(2);
  });
});
