import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, startTestServer, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import { ApiChatResult, MediaInfo, MediaList } from '@gatehouse/contract';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

type Body = NonNullable<RequestInit['body']>;

const dayMs = 86_400_000;

let homeDir: string;
beforeEach(() => {
  homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-media-'));
});
afterEach(() => rmSync(homeDir, { recursive: true, force: true }));

const start = (media: NonNullable<TestServerOptions['config']>['media'] = {}, more: TestServerOptions = {}) =>
  startTestServer({ homeDir, config: { media }, ...more });
const folder = () => join(homeDir, 'media');
const call = (server: TestServer, path: string, init: RequestInit = {}) =>
  fetch(`${server.url}${path}`, {
    ...init,
    headers: { authorization: `Bearer ${server.token}`, ...(init.headers as Record<string, string> | undefined) },
  });
const upload = (server: TestServer, body: Body) => call(server, '/media', { method: 'POST', body });
const list = async (server: TestServer) => MediaList().parse(await (await call(server, '/media')).json());
async function stored(server: TestServer, body: Body): Promise<string> {
  return MediaInfo().parse(await (await upload(server, body)).json()).mediaId;
}

describe('the quota', () => {
  it('counts bytes of all media, also of those being uploaded, and releases them', async () => {
    await using server = await start({ maxTotalBytes: 10_000 });
    const first = await stored(server, 'x'.repeat(6_000));
    const refused = await upload(server, 'x'.repeat(6_000));
    expect([refused.status, await refused.json()]).toMatchObject([
      409,
      { code: 'precondition_failed', error: expect.stringContaining('10000 bytes in all (media.maxTotalBytes)') },
    ]);
    const atOnce = await Promise.all(Array.from({ length: 8 }, () => upload(server, new Blob(['y'.repeat(3_000)]))));
    expect(atOnce.filter((response) => response.status === 201).length).toBeLessThanOrEqual(1);
    expect((await list(server)).media.reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(10_000);
    for (const { mediaId } of (await list(server)).media) await call(server, `/media/${mediaId}`, { method: 'DELETE' });
    expect((await call(server, `/media/${first}`)).status).toBe(404);
    expect((await upload(server, 'x'.repeat(10_000))).status).toBe(201);
  });

  it('counts files, also after a restart', async () => {
    {
      await using server = await start({ maxFiles: 2 });
      await stored(server, 'a');
    }
    await using server = await start({ maxFiles: 2 });
    await stored(server, 'b');
    const refused = await upload(server, 'c');
    expect([refused.status, await refused.json()]).toMatchObject([409, { error: expect.stringContaining('2 files (media.maxFiles)') }]);
    expect((await list(server)).total).toBe(2);
  });

  it('limits concurrent uploads, and accepts more when one is done', async () => {
    await using server = await start();
    const port = Number(new URL(server.url).port);
    const begin = (token: string) => {
      const socket = net.connect(port, '127.0.0.1');
      socket.write(`POST /media HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\ncontent-length: 1000\r\n\r\nabc`);
      return socket;
    };
    const [one, other] = [await server.as(['rpc']), await server.as(['rpc'])];
    const open = Array.from({ length: 16 }, () => begin(one.token));
    await expect.poll(() => readdirSync(folder()).length).toBe(16);
    const own = await call(server, '/media', { method: 'POST', body: 'x', headers: { authorization: `Bearer ${one.token}` } });
    expect([own.status, await own.json()]).toMatchObject([429, { error: expect.stringContaining('More than 16 uploads of this caller') }]);
    open.push(...Array.from({ length: 16 }, () => begin(other.token)));
    await expect.poll(() => readdirSync(folder()).length).toBe(32);
    const refused = await upload(server, 'x');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    for (const socket of open) socket.destroy();
    await expect.poll(async () => (await upload(server, 'x')).status).toBe(201);
  });
});

describe('time', () => {
  it('removes media after their retention, within the hour', async () => {
    const clock = createStepClock();
    await using server = await start({ retentionDays: 2 }, { clock });
    const old = await stored(server, 'old');
    clock.advance(dayMs);
    const young = await stored(server, 'young');
    writeFileSync(join(folder(), 'logo.png'), 'put there by hand');
    clock.advance(dayMs);
    await expect
      .poll(() => {
        clock.advance(3_600_000);
        return readdirSync(folder()).toSorted();
      })
      .toEqual(['logo.png', young, `${young}.meta`]);
    expect((await call(server, `/media/${old}`)).status).toBe(404);
  });

  it('removes media that no message has attached, after a longer time, and keeps those of conversations', async () => {
    const clock = createStepClock();
    await using server = await start({}, { clock });
    const attached = await stored(server, 'attached');
    const unattached = await stored(server, 'unattached');
    const message = JSON.stringify({ message: 'See this', sessionKey: 'media:desk', attachments: [{ mediaId: attached }] });
    const asked = await call(server, '/api/chat', { method: 'POST', body: message, headers: { 'content-type': 'application/json' } });
    const { conversationRef } = ApiChatResult().parse(await asked.json());
    writeFileSync(join(folder(), 'logo.png'), 'put there by hand');
    clock.leap(89 * dayMs);
    const young = await stored(server, 'young');
    expect(readdirSync(folder())).toHaveLength(7);
    const kept = async (ids: readonly string[]) =>
      expect
        .poll(() => {
          clock.advance(3_600_000);
          return readdirSync(folder())
            .filter((name) => !name.endsWith('.meta'))
            .toSorted();
        })
        .toEqual([...ids, 'logo.png'].toSorted());
    clock.advance(dayMs);
    await kept([attached, young]);
    expect((await call(server, `/media/${unattached}`)).status).toBe(404);
    await server.client.call('session.delete', { conversationRef });
    await kept([young]);
  });

  it('removes what a crash left of uploads, and nothing that may still be one', async () => {
    mkdirSync(folder());
    const clock = createStepClock();
    const put = (name: string, ageMs: number) => {
      writeFileSync(join(folder(), name), '{}');
      utimesSync(join(folder(), name), new Date(clock.now() - ageMs), new Date(clock.now() - ageMs));
    };
    for (const [age, ageMs] of [
      ['a', 2 * 3_600_000],
      ['b', 60_000],
    ] as const) {
      put(`.${age.repeat(24)}.tmp`, ageMs);
      put(`md_${age}.png.meta`, ageMs);
    }
    put('whole.png', 2 * 3_600_000);
    put('whole.png.meta', 2 * 3_600_000);
    await using server = await start({}, { clock });
    await expect.poll(() => readdirSync(folder()).toSorted()).toEqual([`.${'b'.repeat(24)}.tmp`, 'md_b.png.meta', 'whole.png', 'whole.png.meta']);
    await expect
      .poll(() => {
        clock.advance(3_600_000);
        return readdirSync(folder()).toSorted();
      })
      .toEqual(['whole.png', 'whole.png.meta']);
    expect((await list(server)).total).toBe(1);
  });

  it('aborts an upload that hardly moves, and waits as long as needed for one that does', async () => {
    const clock = createStepClock();
    await using server = await start({}, { clock });
    const begin = (length: number) => {
      const socket = net.connect(Number(new URL(server.url).port), '127.0.0.1');
      socket.on('error', () => {});
      socket.write(
        `POST /media HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${server.token}\r\nconnection: close\r\ncontent-length: ${length}\r\n\r\n`,
      );
      return socket;
    };
    const piece = Buffer.alloc(70_000, 'x');
    const steady = begin(piece.length * 20);
    let answer = '';
    steady.on('data', (chunk: Buffer) => (answer += chunk.toString()));
    const bytesThere = (): number => readdirSync(folder()).reduce((sum, name) => sum + statSync(join(folder(), name)).size, 0);
    const base = bytesThere();
    for (let at = 1; at <= 20; at += 1) {
      steady.write(piece);
      if (at === 20) break;
      await expect.poll(bytesThere).toBeGreaterThanOrEqual(base + piece.length * at);
      clock.advance(7_999);
    }
    await expect.poll(() => answer).toMatch(/^HTTP\/1\.1 201 /);

    const slow = begin(1_000_000);
    answer = '';
    slow.on('data', (chunk: Buffer) => (answer += chunk.toString()));
    slow.write('x');
    await expect.poll(() => readdirSync(folder()).filter((name) => name.endsWith('.tmp')).length).toBe(1);
    await expect.poll(() => (clock.advance(8_000), answer)).toMatch(/^HTTP\/1\.1 408 /);
    await expect.poll(() => readdirSync(folder()).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    slow.destroy();
  });
});

describe('a file put there by hand', () => {
  it('is for admins, and known by its extension', async () => {
    mkdirSync(folder());
    writeFileSync(join(folder(), 'logo.webp'), 'RIFF');
    writeFileSync(join(folder(), 'broken.txt'), 'text');
    writeFileSync(join(folder(), 'broken.txt.meta'), '{"contentType":');
    writeFileSync(join(folder(), 'no id at all.txt'), 'text');
    symlinkSync('/etc/passwd', join(folder(), 'passwd.txt'));
    await using server = await start();
    const admin = await call(server, '/media/logo.webp');
    expect([admin.status, admin.headers.get('content-type'), admin.headers.get('etag')]).toEqual([200, 'image/webp', expect.stringMatching(/^W\/"/)]);
    expect((await call(server, '/media/broken.txt')).headers.get('content-type')).toBe('text/plain; charset=utf-8');
    const { token } = await server.as(['rpc']);
    expect((await fetch(`${server.url}/media/logo.webp`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(404);
    expect((await list(server)).media.map(({ mediaId }) => mediaId).toSorted()).toEqual(['broken.txt', 'logo.webp']);
  });
});

const full = process.platform === 'linux' && process.getuid?.() === 0;

describe.skipIf(!full)('a full disk (needs root on Linux, for a separate file system)', () => {
  beforeEach(({ skip }) => {
    mkdirSync(folder());
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', folder()], { stdio: 'ignore' });
    } catch {
      skip('mount is not allowed here');
    }
  });
  afterEach(() => {
    try {
      execFileSync('umount', [folder()], { stdio: 'ignore' });
    } catch {
      // Not mounted.
    }
  });

  it('refuses the upload as unavailable, keeps nothing of it, and continues when there is space', async () => {
    await using server = await start({}, { config: { storage: { minFreeBytes: 0 } } });
    const first = await stored(server, Buffer.alloc(100_000, 'x'));
    const before = readdirSync(folder()).toSorted();
    const refused = await upload(server, Buffer.alloc(400_000, 'x'));
    expect([refused.status, await refused.json()]).toMatchObject([503, { code: 'unavailable', error: expect.stringContaining('the disk is full') }]);
    expect(readdirSync(folder()).toSorted()).toEqual(before);
    expect((await (await call(server, `/media/${first}`)).arrayBuffer()).byteLength).toBe(100_000);
    expect((await upload(server, Buffer.alloc(50_000, 'x'))).status).toBe(201);
  });
});
