import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { setImmediate as nextRound } from 'node:timers/promises';
import { createStepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { MediaInfo } from '@gatehouse/contract';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rawExchange } from '../testing/gateway-fixture.ts';

const text = 'abcdefghijklmnopqrstuvwxyz';
const clock = createStepClock();

let server: TestServer;
let info: MediaInfo;
let etag: string;
let modified: string;
beforeAll(async () => {
  server = await startTestServer({ clock });
  info = await store(text, 'text/plain', 'alphabet.txt');
  const { headers } = await get(info.mediaId);
  etag = headers.get('etag') ?? '';
  modified = headers.get('last-modified') ?? '';
});
afterAll(() => server[Symbol.asyncDispose]());

const folder = () => join(server.homeDir, 'media');

async function store(body: string | Buffer, contentType: string, fileName = 'x'): Promise<MediaInfo> {
  const response = await fetch(`${server.url}/media?fileName=${encodeURIComponent(fileName)}`, {
    method: 'POST',
    body,
    headers: { authorization: `Bearer ${server.token}`, 'content-type': contentType },
  });
  return MediaInfo().parse(await response.json());
}

function get(id: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
  return fetch(`${server.url}/media/${id}`, { method, headers: { authorization: `Bearer ${server.token}`, ...headers } });
}

/** Paths that a browser or proxy may send, unchanged. */
function raw(path: string): Promise<{ readonly text: string }> {
  return rawExchange(
    Number(new URL(server.url).port),
    Buffer.from(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${server.token}\r\nconnection: close\r\n\r\n`, 'latin1'),
  );
}

describe('a download', () => {
  it('states its type, with a strong tag, and forbids browsers to sniff it', async () => {
    const response = await get(info.mediaId);
    expect(await response.text()).toBe(text);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'content-length': '26',
      'accept-ranges': 'bytes',
      'cache-control': 'private, no-cache',
      'content-disposition': 'inline; filename="alphabet.txt"',
      'content-security-policy': "default-src 'none'; sandbox",
      'cross-origin-resource-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
      'last-modified': new Date(info.savedAt).toUTCString(),
    });
    expect(etag).toMatch(/^"[0-9a-f]{64}"$/);
  });

  it('answers HEAD with the same headers and no body', async () => {
    const [whole, head] = await Promise.all([get(info.mediaId), get(info.mediaId, { range: 'bytes=0-1' }, 'HEAD')]);
    await whole.text();
    const names = ['content-type', 'content-length', 'etag', 'last-modified', 'content-disposition', 'accept-ranges'];
    expect([head.status, await head.text(), ...names.map((name) => head.headers.get(name))]).toEqual([
      200,
      '',
      ...names.map((name) => whole.headers.get(name)),
    ]);
  });

  it.each<[string, string, number, string, string | null]>([
    ['the first bytes', 'bytes=0-4', 206, 'abcde', 'bytes 0-4/26'],
    ['one byte', 'bytes=25-25', 206, 'z', 'bytes 25-25/26'],
    ['the rest', 'bytes=20-', 206, 'uvwxyz', 'bytes 20-25/26'],
    ['the last bytes', 'bytes=-3', 206, 'xyz', 'bytes 23-25/26'],
    ['more than there is at the end', 'bytes=-100', 206, text, 'bytes 0-25/26'],
    ['beyond the end', 'bytes=24-99', 206, 'yz', 'bytes 24-25/26'],
    ['the unit in capitals', 'Bytes=0-0', 206, 'a', 'bytes 0-0/26'],
    ['nothing that is there', 'bytes=26-', 416, '', 'bytes */26'],
    ['no bytes from the end', 'bytes=-0', 416, '', 'bytes */26'],
    ['several ranges', 'bytes=0-1,4-5', 200, text, null],
    ['a range that runs backwards', 'bytes=5-4', 200, text, null],
    ['another unit', 'lines=0-1', 200, text, null],
    ['no numbers', 'bytes=a-b', 200, text, null],
    ['an empty range', 'bytes=-', 200, text, null],
    ['a number that is none', `bytes=${'9'.repeat(40)}-`, 200, text, null],
  ])('Range: %s', async (_what, range, status, body, contentRange) => {
    const response = await get(info.mediaId, { range });
    const answered = await response.text();
    expect([response.status, status === 416 ? '' : answered, response.headers.get('content-range')]).toEqual([status, body, contentRange]);
    if (status === 416) expect(JSON.parse(answered)).toMatchObject({ code: 'invalid_params', error: 'Range: expected bytes of 0 to 25' });
    else expect(response.headers.get('content-length')).toBe(String(body.length));
  });

  const range = { range: 'bytes=0-4' };
  it.each<[string, () => Record<string, string>, number]>([
    ['If-None-Match that names it', () => ({ 'if-none-match': `"other", W/${etag}` }), 304],
    ['If-None-Match: *', () => ({ 'if-none-match': '*' }), 304],
    ['If-None-Match that does not', () => ({ 'if-none-match': '"other"', 'if-modified-since': modified }), 200],
    ['If-Modified-Since, not since', () => ({ 'if-modified-since': modified }), 304],
    ['If-Modified-Since, since', () => ({ 'if-modified-since': 'Tue, 01 Jan 2019 00:00:00 GMT' }), 200],
    ['If-Modified-Since that is not a date', () => ({ 'if-modified-since': '2999' }), 200],
    ['If-Match that names it', () => ({ 'if-match': etag }), 200],
    ['If-Match that does not', () => ({ 'if-match': '"other"' }), 412],
    ['If-Match, weakly', () => ({ 'if-match': `W/${etag}` }), 412],
    ['If-Unmodified-Since, before', () => ({ 'if-unmodified-since': 'Tue, 01 Jan 2019 00:00:00 GMT' }), 412],
    ['If-Unmodified-Since', () => ({ 'if-unmodified-since': modified }), 200],
    ['If-Range with its tag', () => ({ ...range, 'if-range': etag }), 206],
    ['If-Range with another tag', () => ({ ...range, 'if-range': '"other"' }), 200],
    ['If-Range, weakly', () => ({ ...range, 'if-range': `W/${etag}` }), 200],
    ['If-Range with its date', () => ({ ...range, 'if-range': modified }), 206],
    ['If-Range with another date', () => ({ ...range, 'if-range': 'Tue, 01 Jan 2019 00:00:00 GMT' }), 200],
    ['If-None-Match before Range', () => ({ ...range, 'if-none-match': etag }), 304],
  ])('%s', async (_what, headers, status) => {
    const response = await get(info.mediaId, headers());
    const body = await response.text();
    expect(response.status).toBe(status);
    if (status === 304) expect([body, response.headers.get('etag')]).toEqual(['', etag]);
  });

  it.each<[string, Buffer | string, string, string, string]>([
    [
      'an SVG with a script',
      '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
      'image/svg+xml',
      'image/svg+xml',
      'attachment',
    ],
    ['a page', '<html><script>alert(1)</script></html>', 'text/html', 'text/html; charset=utf-8', 'attachment'],
    ['a page that says it is an image', '<html><script>alert(1)</script></html>', 'image/png', 'text/plain; charset=utf-8', 'inline'],
    ['XML', '<?xml version="1.0"?><a/>', 'application/xhtml+xml', 'application/xml', 'attachment'],
    ['a script', 'alert(1)', 'text/javascript', 'text/javascript; charset=utf-8', 'attachment'],
    ['a PDF', '%PDF-1.7\n%%EOF\n', 'text/html', 'application/pdf', 'attachment'],
    ['JSON', '{"a":1}', 'application/json; charset=utf-8', 'application/json', 'attachment'],
    ['text', 'hello', 'text/plain', 'text/plain; charset=utf-8', 'inline'],
    [
      'a picture that says it is a page',
      Buffer.from('89504e470d0a1a0a0000000d4948445200000001000000010806000000', 'hex'),
      'text/html',
      'image/png',
      'inline',
    ],
    ['bytes of no known kind', Buffer.from([0, 1, 2, 3]), 'text/html', 'application/octet-stream', 'attachment'],
  ])('never lets a browser run %s', async (_what, body, declared, served, disposition) => {
    const stored = await store(body, declared);
    const { headers } = await get(stored.mediaId);
    expect([headers.get('content-type'), headers.get('content-disposition')?.split(';')[0]]).toEqual([served, disposition]);
    expect([headers.get('x-content-type-options'), headers.get('content-security-policy')]).toEqual(['nosniff', "default-src 'none'; sandbox"]);
  });

  it('serves a tampered sidecar’s type, and still runs nothing', async () => {
    const stored = await store('<script>alert(1)</script>', 'text/plain');
    const sidecar = join(folder(), `${stored.mediaId}.meta`);
    writeFileSync(sidecar, JSON.stringify({ contentType: 'text/html' }));
    const page = await get(stored.mediaId);
    expect([page.headers.get('content-type'), page.headers.get('content-disposition')]).toEqual([
      'text/html; charset=utf-8',
      `attachment; filename="${stored.mediaId}"`,
    ]);
    writeFileSync(sidecar, JSON.stringify({ contentType: 'text/plain\r\nset-cookie: a=b' }));
    const split = await get(stored.mediaId);
    expect([split.headers.get('content-type'), split.headers.get('set-cookie')]).toEqual(['text/plain; charset=utf-8', null]);
  });

  it('offers a name in any script without breaking a header', async () => {
    const stored = await store('x', 'text/plain', 'Grüße "daheim" (1)\r\nx.txt');
    expect((await get(stored.mediaId)).headers.get('content-disposition')).toBe(
      `inline; filename="Gr__e _daheim_ (1)__x.txt"; filename*=UTF-8''Gr%C3%BC%C3%9Fe%20_daheim_%20%281%29__x.txt`,
    );
  });

  it('cuts a reader that reads nothing for 30 seconds, and no other', async () => {
    const big = await store(Buffer.alloc(20_000_000, 'x'), 'text/plain');
    const request = `GET /media/${big.mediaId} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${server.token}\r\n\r\n`;
    const stalled = net.connect(Number(new URL(server.url).port), '127.0.0.1');
    const gone = new Promise((resolve) => stalled.once('close', resolve));
    stalled.on('error', () => {});
    stalled.write(request);
    await new Promise((resolve) => stalled.once('readable', resolve));
    await expect.poll(async () => (await get(info.mediaId)).status).toBe(200);
    const reader = get(big.mediaId).then((response) => response.arrayBuffer());
    expect((await reader).byteLength).toBe(20_000_000);
    clock.advance(61_000);
    stalled.resume();
    await gone;
    expect(stalled.bytesRead).toBeLessThan(20_000_000);
  });
});

/** Paths as they may appear in a request line, after `/media/`. */
const corpus = [
  '.',
  '..',
  '...',
  '../',
  '../token',
  '../install.key',
  '../data/gatehouse.db',
  '../../etc/passwd',
  '../../../../../../etc/passwd',
  './x',
  'x/../../token',
  '..\\token',
  '..%5ctoken',
  '..%2ftoken',
  '..%2Ftoken',
  '%2e%2e',
  '%2e%2e%2ftoken',
  '%2E%2E/token',
  '.%2e/token',
  '%252e%252e%252ftoken',
  '%c0%ae%c0%ae/token',
  '%uff0e%uff0e/token',
  '..%00',
  'x%00.png',
  'x\0.png',
  '%00',
  '%0d%0aset-cookie:x',
  'a%0a',
  'a%20b',
  '/etc/passwd',
  '//etc/passwd',
  '%2fetc%2fpasswd',
  'file:///etc/passwd',
  '/proc/self/environ',
  '~',
  '~/token',
  'C:\\Windows',
  'c:/windows',
  'x::$DATA',
  'CON',
  'NUL.txt',
  'aux.png',
  'COM1',
  'x.',
  'x.png.',
  '.env',
  '.htaccess',
  '.0123456789abcdef01234567.tmp',
  '.meta',
  'x.meta',
  'x.png.meta',
  'x.png.META',
  'SIDECAR',
  'sidecar.meta/x',
  'link',
  'linked',
  'linked/secret.txt',
  'hard.txt',
  'fifo',
  'folder',
  'folder/inner.txt',
  'missing',
  'missing.png',
  'x'.repeat(201),
  'x'.repeat(3000),
  '\xfc.png',
  'e\xcc\x81.png',
  '%C3%BC.png',
  '*',
  '?',
  '#',
  ';',
  'x;.png',
  'x|y',
  '$(id)',
  '`id`',
];

describe('an invalid id', () => {
  beforeAll(() => {
    const outside = join(server.homeDir, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'secret.txt'), 'SECRET');
    symlinkSync(join(outside, 'secret.txt'), join(folder(), 'link'));
    symlinkSync(outside, join(folder(), 'linked'));
    writeFileSync(join(outside, 'twice.txt'), 'SECRET');
    linkSync(join(outside, 'twice.txt'), join(folder(), 'hard.txt'));
    execFileSync('mkfifo', [join(folder(), 'fifo')]);
    mkdirSync(join(folder(), 'folder'));
    writeFileSync(join(folder(), 'folder', 'inner.txt'), 'SECRET');
    writeFileSync(join(folder(), 'sidecar.meta'), '{"owner":"SECRET"}');
    writeFileSync(join(server.homeDir, 'token'), 'SECRET');
  });

  it(`never leads out of the folder, to a sidecar, a link or a special file: ${corpus.length} paths, for an admin too`, async () => {
    expect(corpus.length).toBeGreaterThanOrEqual(60);
    const said = new Set<string>();
    for (const path of corpus)
      for (const suffix of ['', '/meta']) {
        const { text: answer } = await raw(`/media/${path}${suffix}`);
        expect(answer, path).toMatch(/^HTTP\/1\.1 40[04] /);
        expect(answer, path).not.toContain('SECRET');
        if (answer.startsWith('HTTP/1.1 404 ')) said.add(answer.replace(/^[^]*"error":"([^"]*)"[^]*$/, '$1'));
      }
    expect([...said].toSorted()).toEqual(['Media file not found', 'No such path']);
  });

  it('never serves a sidecar', async () => {
    for (const name of [`${info.mediaId}.meta`, `${info.mediaId}.Meta`, `${info.mediaId}%2emeta`, `./${info.mediaId}.meta`])
      expect((await raw(`/media/${name}`)).text, name).toMatch(/^HTTP\/1\.1 40[04] /);
  });

  it('returns no foreign byte while a file is swapped for a link 1000 times', async () => {
    const mediaFile = await store('INSIDE', 'text/plain');
    const path = join(folder(), mediaFile.mediaId);
    let swapping = true;
    const swapper = (async () => {
      for (let at = 0; at < 1000; at += 1) {
        renameSync(path, join(server.homeDir, 'aside'));
        symlinkSync(join(server.homeDir, 'outside', 'secret.txt'), path);
        await nextRound();
        renameSync(join(server.homeDir, 'aside'), path);
        await nextRound();
      }
      swapping = false;
    })();
    const seen = new Set<string>();
    while (swapping) {
      const response = await get(mediaFile.mediaId);
      seen.add(response.status === 200 ? await response.text() : String((await response.arrayBuffer()) && response.status));
    }
    await swapper;
    expect([...seen].toSorted()).toEqual(['404', 'INSIDE']);
  });
});
