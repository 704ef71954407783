import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { createStepClock, startTestServer, type StepClock, type TestServer } from '@gatehouse/testkit';
import { MediaInfo, MediaList } from '@gatehouse/contract';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { rawExchange } from '../testing/gateway-fixture.ts';

const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
const limit = 200_000;

type Body = NonNullable<RequestInit['body']>;

let server: TestServer;
let alice: { readonly token: string };
let bob: { readonly token: string };
let admin: { readonly token: string };
beforeAll(async () => {
  server = await startTestServer({ config: { media: { maxFileBytes: limit, maxTotalBytes: 20_000_000 } } });
  [alice, bob, admin] = await Promise.all([server.as(['rpc']), server.as(['rpc']), server.as(['admin'])]);
});
afterAll(() => server[Symbol.asyncDispose]());

const folder = () => join(server.homeDir, 'media');
const port = () => Number(new URL(server.url).port);
const call = (path: string, token: string, init: RequestInit = {}) =>
  fetch(`${server.url}${path}`, { ...init, headers: { authorization: `Bearer ${token}`, ...(init.headers as Record<string, string> | undefined) } });
const upload = (body: Body, token = alice.token, headers: Record<string, string> = {}, query = '') =>
  call(`/media${query}`, token, { method: 'POST', body, headers });

async function stored(body: Body, headers: Record<string, string> = {}, query = ''): Promise<MediaInfo> {
  const response = await upload(body, alice.token, headers, query);
  expect(response.status, await response.clone().text()).toBe(201);
  const info = MediaInfo().parse(await response.json());
  expect(response.headers.get('location')).toBe(`/media/${info.mediaId}`);
  return info;
}

function form(parts: readonly [name: string, value: string | Blob, fileName?: string][]): FormData {
  const data = new FormData();
  for (const [name, value, fileName] of parts)
    if (typeof value === 'string') data.append(name, value);
    else data.append(name, value, fileName);
  return data;
}

describe('upload', () => {
  let before: string[];
  beforeEach(() => {
    before = readdirSync(folder());
  });
  const nothingKept = () => expect(readdirSync(folder())).toEqual(before);

  it('keeps a raw body with its sidecar, both for the owner only, and returns the same bytes', async () => {
    const info = await stored(png, { 'content-type': 'image/png' }, '?fileName=a%2Fdot%20%E2%80%AEgnp.png');
    expect(info).toMatchObject({ contentType: 'image/png', size: png.length, fileName: 'dot _gnp.png' });
    expect(info.mediaId).toMatch(/^md_[0-9a-f-]{36}\.png$/);
    expect(statSync(folder()).mode & 0o777).toBe(0o700);
    for (const name of [info.mediaId, `${info.mediaId}.meta`]) expect(statSync(join(folder(), name)).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(join(folder(), `${info.mediaId}.meta`), 'utf8'))).toMatchObject({
      contentType: 'image/png',
      sha256: createHash('sha256').update(png).digest('hex'),
      owner: expect.stringContaining('token:'),
    });
    const back = await call(`/media/${info.mediaId}`, alice.token);
    expect(Buffer.from(await back.arrayBuffer())).toEqual(png);
    expect(await (await call(`/media/${info.mediaId}/meta`, alice.token)).json()).toEqual(info);
  });

  it('keeps the one file of a form, as curl -F sends it', async () => {
    const big = randomBytes(150_000);
    const info = await stored(form([['file', new Blob([big], { type: 'application/x-anything' }), 'Grüße.bin']]));
    expect(info).toMatchObject({ contentType: 'application/octet-stream', size: big.length, fileName: 'Grüße.bin' });
    expect(Buffer.from(await (await call(`/media/${info.mediaId}`, alice.token)).arrayBuffer())).toEqual(big);
  });

  it.each<[string, () => Body, Record<string, string>, RegExp]>([
    ['no file part', () => form([]), {}, /^file: required/],
    ['a part of another name', () => form([['photo', new Blob([png]), 'x.png']]), {}, /^photo: unexpected part, expected one named "file"/],
    [
      'a field along with the file',
      () =>
        form([
          ['file', new Blob([png]), 'x.png'],
          ['owner', 'root'],
        ]),
      {},
      /^file: expected the file and nothing else/,
    ],
    [
      'a field before the file',
      () =>
        form([
          ['owner', 'root'],
          ['file', new Blob([png]), 'x.png'],
        ]),
      {},
      /^file: expected the file and nothing else/,
    ],
    [
      'two files',
      () =>
        form([
          ['file', new Blob([png]), 'x.png'],
          ['file', new Blob([png]), 'y.png'],
        ]),
      {},
      /^file: expected the file and nothing else/,
    ],
    ['a form without a boundary', () => png, { 'content-type': 'multipart/form-data' }, /^body: expected multipart\/form-data with a boundary/],
    [
      'a form that ends early',
      () => '--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nabc',
      { 'content-type': 'multipart/form-data; boundary=x' },
      /^body: expected complete/,
    ],
    ['a form of something else', () => 'hello', { 'content-type': 'multipart/form-data; boundary=x' }, /^body: expected complete|^file: required/],
    ['an empty file', () => form([['file', new Blob([]), 'x.png']]), {}, /^body: expected the bytes of a file/],
    ['an empty body', () => '', { 'content-type': 'image/png' }, /^body: expected the bytes of a file/],
  ])('refuses %s', async (_what, body, headers, message) => {
    const response = await upload(body(), alice.token, headers);
    expect([response.status, await response.json()]).toMatchObject([400, { code: 'invalid_params', error: expect.stringMatching(message) }]);
    nothingKept();
  });

  it('names a query parameter that it does not know', async () => {
    expect(await (await upload(png, alice.token, {}, '?owner=root')).json()).toMatchObject({
      code: 'invalid_params',
      error: expect.stringMatching(/^owner:/),
    });
  });

  it.each<[string, string, () => Body, RegExp]>([
    ['a name that is given twice', '?fileName=a&fileName=b', () => png, /^fileName: expected once$/],
    ['a name with a form', '?fileName=a', () => form([['file', new Blob([png]), 'b.png']]), /^fileName: expected in the part of a multipart body/],
    ['an unknown parameter with a form', '?name=a', () => form([['file', new Blob([png]), 'b.png']]), /^name: unknown field$/],
  ])('refuses %s', async (_name, query, body, words) => {
    const response = await upload(body(), alice.token, {}, query);
    expect([response.status, await response.json()]).toEqual([
      400,
      expect.objectContaining({ code: 'invalid_params', error: expect.stringMatching(words) }),
    ]);
    nothingKept();
  });

  it('accepts exactly the limit and refuses one byte more: declared, counted, and in a form', async () => {
    await stored(Buffer.alloc(limit, 'x'));
    await stored(form([['file', new Blob([Buffer.alloc(limit, 'x')]), 'x.txt']]));
    before = readdirSync(folder());
    const tooLong = Buffer.alloc(limit + 1, 'x');
    const counted = new ReadableStream({
      start(controller) {
        controller.enqueue(tooLong);
        controller.close();
      },
    });
    for (const response of [
      await upload(tooLong),
      await call('/media', alice.token, { method: 'POST', body: counted, duplex: 'half' }),
      await upload(form([['file', new Blob([tooLong]), 'x.txt']])),
      await upload(form([['file', new Blob([Buffer.alloc(limit * 3)]), 'x.txt']])),
    ])
      expect([response.status, await response.json()]).toMatchObject([
        413,
        { code: 'payload_too_large', error: expect.stringContaining(`${limit} bytes`) },
      ]);
    nothingKept();
  });

  it('does not ask for a body that it would refuse, and asks for one that it accepts', async () => {
    const head = (length: number, type: string) =>
      `POST /media HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${alice.token}\r\nexpect: 100-continue\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`;
    expect((await rawExchange(port(), head(limit + 1, 'image/png'))).text).toMatch(/^HTTP\/1\.1 413 /);
    expect((await rawExchange(port(), head(limit * 2, 'multipart/form-data; boundary=x'))).text).toMatch(/^HTTP\/1\.1 413 /);
    expect((await rawExchange(port(), head(10, 'image/png'), 300)).text).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    expect((await rawExchange(port(), head(10, 'multipart/form-data; boundary=x'), 300)).text).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    await expect.poll(() => readdirSync(folder())).toEqual(before);
  });

  it.each(['raw', 'form'])('a client that disconnects in the middle of a %s body leaves nothing behind', async (kind) => {
    const socket = net.connect(port(), '127.0.0.1');
    const type = kind === 'raw' ? 'application/octet-stream' : 'multipart/form-data; boundary=x';
    const start = kind === 'raw' ? 'abc' : '--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nabc';
    socket.write(
      `POST /media HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${alice.token}\r\ncontent-type: ${type}\r\ncontent-length: 1000\r\n\r\n${start}`,
    );
    await expect.poll(() => readdirSync(folder()).filter((name) => name.endsWith('.tmp')).length).toBe(1);
    socket.destroy();
    await expect.poll(() => readdirSync(folder())).toEqual(before);
  });

  it('requires scope rpc, by header only, before a byte of the body counts', async () => {
    const narrow = await server.as(['mcp-client']);
    const api = await server.as(['api']);
    const info = await stored(png);
    for (const path of [`/media/${info.mediaId}`, `/media/${info.mediaId}/meta`, '/media']) {
      expect((await fetch(`${server.url}${path}`)).status).toBe(401);
      expect((await fetch(`${server.url}${path}?token=${alice.token}`)).status).toBe(401);
      expect((await call(path, narrow.token)).status).toBe(403);
      expect((await call(path, api.token)).status).toBe(403);
    }
    expect((await upload(png, narrow.token)).status).toBe(403);
    expect((await fetch(`${server.url}/media`, { method: 'POST', body: png })).status).toBe(401);
  });

  it('refuses a compressed body', async () => {
    expect((await upload(png, alice.token, { 'content-encoding': 'gzip' })).status).toBe(415);
  });

  it('keeps nothing of a form that the store refuses before reading it', async () => {
    const step = createStepClock();
    const paces = new Set<() => void>();
    const clock: StepClock = {
      ...step,
      after(ms, run) {
        const once = (): void => {
          paces.delete(once);
          run();
        };
        if (ms === 8_000) paces.add(once);
        const cancel = step.after(ms, once);
        return () => {
          paces.delete(once);
          cancel();
        };
      },
    };
    await using full = await startTestServer({ clock, config: { media: { maxFiles: 1 } } });
    const send = (bytes: number) =>
      fetch(`${full.url}/media`, {
        method: 'POST',
        headers: { authorization: `Bearer ${full.token}` },
        body: form([['file', new Blob([Buffer.alloc(bytes, 'a')]), 'a.txt']]),
      });
    expect((await send(10)).status).toBe(201);
    const refused = await send(1_000_000);
    expect([refused.status, await refused.json()]).toMatchObject([409, { code: 'precondition_failed' }]);
    await expect
      .poll(() => {
        clock.advance(8_000);
        return paces.size;
      })
      .toBe(0);
  });

  it('accepts many at once and keeps each whole', async () => {
    const files = Array.from({ length: 16 }, () => randomBytes(60_000));
    const infos = await Promise.all(
      files.map((bytes, index) => (index % 2 === 0 ? stored(bytes) : stored(form([['file', new Blob([bytes]), 'x']])))),
    );
    expect(new Set(infos.map((info) => info.mediaId)).size).toBe(files.length);
    for (const [index, info] of infos.entries())
      expect(Buffer.from(await (await call(`/media/${info.mediaId}`, alice.token)).arrayBuffer()).equals(files[index] ?? png)).toBe(true);
  });
});

describe('permissions', () => {
  it('see, list and remove a media file: its owner and admins; to others it does not exist', async () => {
    const info = await stored(png, {}, '?fileName=private.png');
    const unknown = info.mediaId.replace(/.{12}\.png$/, '000000000000.png');
    for (const suffix of ['', '/meta']) {
      const foreign = await call(`/media/${info.mediaId}${suffix}`, bob.token, { headers: { 'x-request-id': 'same' } });
      const missing = await call(`/media/${unknown}${suffix}`, bob.token, { headers: { 'x-request-id': 'same' } });
      expect([foreign.status, await foreign.text()]).toEqual([404, await missing.text()]);
      expect((await call(`/media/${info.mediaId}${suffix}`, admin.token)).status).toBe(200);
    }
    expect((await call(`/media/${info.mediaId}`, bob.token, { method: 'DELETE' })).status).toBe(404);
    const list = async (token: string, query = '') => MediaList().parse(await (await call(`/media${query}`, token)).json());
    expect(await list(bob.token)).toEqual({ media: [], total: 0, totalBytes: 0 });
    const mine = await list(alice.token, '?limit=2');
    expect([mine.media[0], mine.media.length]).toEqual([info, 2]);
    expect((await list(alice.token, `?limit=1&offset=1`)).media).toEqual([mine.media[1]]);
    expect((await list(alice.token, '?search=NOTHING-LIKE-IT')).total).toBe(0);
    const typed = await list(alice.token, `?search=${encodeURIComponent(mine.media[0]?.contentType.toUpperCase() ?? '')}`);
    expect(typed.media.map(({ mediaId }) => mediaId)).toContain(mine.media[0]?.mediaId);
    expect(typed.totalBytes).toBeGreaterThan(0);
    expect((await list(alice.token, `?search=${mine.media[1]?.mediaId}`)).media).toEqual([mine.media[1]]);
    expect((await list(admin.token)).total).toBe(mine.total);
    for (const query of ['?limit=0', '?limit=x', '?offset=-1', '?limit=201', '?owner=x'])
      expect([(await call(`/media${query}`, alice.token)).status, query]).toEqual([400, query]);
  });

  it('remove leaves neither file nor sidecar, but an audit record', async () => {
    const audits = server.heard('audit:event');
    const info = await stored(png);
    const removed = await call(`/media/${info.mediaId}`, alice.token, { method: 'DELETE' });
    expect([removed.status, await removed.text()]).toEqual([204, '']);
    expect(readdirSync(folder()).filter((name) => name.startsWith(info.mediaId))).toEqual([]);
    expect((await call(`/media/${info.mediaId}`, alice.token)).status).toBe(404);
    expect((await call(`/media/${info.mediaId}`, alice.token, { method: 'DELETE' })).status).toBe(404);
    expect(audits).toMatchObject([{ actionType: 'media.delete', target: info.mediaId, outcome: 'success' }]);
  });
});
