import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { type IncomingHttpHeaders, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { cpuGrowth, linear } from '@gatehouse/testkit/cpu-growth';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const page = '<!doctype html><title>Dashboard</title>';
const script = `console.log('${'x'.repeat(2000)}');`;
const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

let dir: string;
let server: TestServer;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gatehouse-dashboard-'));
  const dist = join(dir, 'dist');
  await mkdir(join(dist, 'assets', 'nested'), { recursive: true });
  await writeFile(join(dir, 'secret.txt'), 'not for anybody');
  await writeFile(join(dist, 'index.html'), page);
  await writeFile(join(dist, 'assets', 'index-1.js'), script);
  await writeFile(join(dist, 'assets', 'index-1.js.br'), brotliCompressSync(script));
  await symlink(join(dir, 'secret.txt'), join(dist, 'assets', 'linked.txt'));
  server = await startTestServer({ config: { gateway: { web: { distPath: dist } } } });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
});

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** The path as written and the body as received: `fetch` would normalize the one and decompress the other. */
function ask(url: string, path: string, headers: Readonly<Record<string, string>>, method = 'GET'): Promise<Answer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const call = request({ hostname, port, path, headers, method }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(parts) }));
      answer.on('error', reject);
    });
    call.on('error', reject).end();
  });
}

const get = (path: string, headers: Readonly<Record<string, string>> = {}, method?: string) => ask(server.url, path, headers, method);

describe('the page', () => {
  test('is answered at / with a policy that allows nothing else', async () => {
    const { status, headers, body } = await get('/', html);
    expect([status, body.toString()]).toEqual([200, page]);
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect(headers['cache-control']).toBe('no-cache');
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; font-src 'self'; manifest-src 'self'; connect-src 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'",
    );
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    });
  });

  test.each(['/chat', '/chat/cv_0', '/explorer/agents.list', '/a/b/c'])('is answered at %s too when a browser opens it', async (path) => {
    const { status, headers, body } = await get(path, html);
    expect([status, body.toString(), headers['cache-control']]).toEqual([200, page, 'no-cache']);
  });

  test('is not sent again to a client that has it', async () => {
    const { headers } = await get('/', html);
    const again = await get('/', { ...html, 'if-none-match': String(headers['etag']) });
    expect([again.status, again.body.length]).toEqual([304, 0]);
  });

  test('has a head', async () => {
    const { status, headers, body } = await get('/chat', html, 'HEAD');
    expect([status, headers['content-length'], body.length]).toEqual([200, String(page.length), 0]);
  });

  test('opens from a link on another site, but not inside one', async () => {
    const fromElsewhere = { ...html, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
    expect((await get('/', { ...fromElsewhere, 'sec-fetch-dest': 'document' })).status).toBe(200);
    expect((await get('/', { ...fromElsewhere, 'sec-fetch-dest': 'iframe' })).status).toBe(403);
    expect((await get('/', { ...html, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script' })).status).toBe(403);
  });
});

describe('the frame for pages of models', () => {
  test('is one page without data, in a sandbox without network; only the dashboard may show it', async () => {
    const { status, headers, body } = await get('/frame', {
      ...html,
      'sec-fetch-site': 'same-origin',
      'sec-fetch-mode': 'navigate',
      'sec-fetch-dest': 'iframe',
    });
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(headers['content-security-policy']).toBe(
      "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; frame-ancestors 'self'",
    );
    expect(headers['x-frame-options']).toBeUndefined();
    expect(headers['cross-origin-resource-policy']).toBe('same-origin');
    expect((await get('/frame?x=1', html)).body).toEqual(body);
    const elsewhere = await get('/frame', { ...html, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' });
    expect(elsewhere.status).toBe(403);
  });
});

describe('other paths', () => {
  test('are recognized in time linear in the path, up to the longest one', async () => {
    expect((await get(`/${'.'.repeat(15_500)}/`, html)).status).toBe(200);
    expect(await cpuGrowth(1_937, (dots) => get(`/${'.'.repeat(dots)}/`, html))).toBeLessThan(linear);
  });

  test.each(['/api/none', '/v1/none', '/media/none/none', '/hooks', '/rpc/none', '/mcp/none', '/nothing.js', '/assets/gone-1.js', '/assets/'])(
    'stay missing: %s',
    async (path) => {
      const { status, headers, body } = await get(path, html);
      expect([status, headers['content-type']]).toEqual([404, 'application/json; charset=utf-8']);
      expect(body.toString()).not.toContain('doctype');
    },
  );

  test('stay missing for programs', async () => {
    const { status, body } = await get('/chat', { accept: '*/*' });
    expect([status, JSON.parse(body.toString())]).toEqual([404, { error: 'No such path', code: 'not_found', requestId: expect.any(String) }]);
    expect((await get('/chat', html, 'POST')).status).toBe(404);
  });
});

describe('an asset', () => {
  test('is cached forever, compressed when the client accepts it', async () => {
    const packed = await get('/assets/index-1.js', { 'accept-encoding': 'gzip, br' });
    expect(packed.headers).toMatchObject({
      'content-encoding': 'br',
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
    });
    expect(brotliDecompressSync(packed.body).toString()).toBe(script);
    for (const accept of ['gzip', 'br;q=0', '']) {
      const plain = await get('/assets/index-1.js', { 'accept-encoding': accept });
      expect([plain.headers['content-encoding'], plain.body.toString()]).toEqual([undefined, script]);
      expect(plain.headers['etag']).not.toBe(packed.headers['etag']);
    }
  });

  test.each([
    '/assets/../index.html',
    '/assets/../../secret.txt',
    '/assets/..%2f..%2fsecret.txt',
    '/assets/%2e%2e/%2e%2e/secret.txt',
    '/assets/..\\..\\secret.txt',
    '/assets/linked.txt',
    '/assets/nested',
    '/assets/index-1.js%00.txt',
    '/assets/index-1.js.br',
    '/assets/__proto__',
  ])('is one of the build, nothing else: %s', async (path) => {
    const { status, body } = await get(path, html);
    expect(status).toBe(404);
    expect(body.toString()).not.toContain('not for anybody');
  });
});

test('without the web part there is neither', async () => {
  await using other = await startTestServer({ config: { gateway: { web: { enabled: false, distPath: join(dir, 'dist') } } } });
  for (const path of ['/', '/chat', '/assets/index-1.js']) expect((await ask(other.url, path, html)).status).toBe(404);
  // What monitors probe stays available.
  for (const path of ['/health', '/api/health']) expect((await fetch(other.url + path)).status).toBe(200);
});

test('without a build the error says how to make one', async () => {
  await using other = await startTestServer({ config: { gateway: { web: { distPath: join(dir, 'none') } } } });
  const { status, body } = await ask(other.url, '/', html);
  expect([status, JSON.parse(body.toString())]).toMatchObject([404, { error: expect.stringContaining('npm run build') }]);
  expect((await ask(other.url, '/chat', html)).status).toBe(404);
});
