import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startDaemon } from '../proving/lib/daemon.ts';
import { http } from '../proving/lib/http.ts';
import { findCommand } from '../tools/system-packages.mjs';
import { type Product, startProduct } from './lib/product.ts';

const run = promisify(execFile);
const curl = findCommand('curl');

let product: Product;
let files: string;
beforeAll(async () => {
  product = await startProduct();
  files = await mkdtemp(join(tmpdir(), 'gatehouse-e2e-media-'));
});
afterAll(async () => {
  rmSync(files, { recursive: true, force: true });
  await product[Symbol.asyncDispose]();
});

describe.skipIf(curl === undefined)('curl (needs it installed)', () => {
  const ask = async (...args: readonly string[]) =>
    (await run(curl ?? '', ['-sS', '-H', `authorization: Bearer ${product.token}`, ...args], { encoding: 'utf8', maxBuffer: 1_000_000 })).stdout;

  test('uploads with -F and with -T, lists, resumes a download and removes', async () => {
    const bytes = randomBytes(3_000_000);
    const path = join(files, 'böse "datei".bin');
    await writeFile(path, bytes);
    // An upload of more than a megabyte starts with `Expect: 100-continue`.
    const form: unknown = JSON.parse(await ask('-F', `file=@"${path.replaceAll('"', String.raw`\"`)}"`, `${product.url}/media`));
    expect(form).toMatchObject({ size: bytes.length, contentType: 'application/octet-stream' });
    const { mediaId } = JSON.parse(await ask('-X', 'POST', '-T', path, `${product.url}/media?fileName=raw.bin`)) as { mediaId: string };
    expect(JSON.parse(await ask(`${product.url}/media`))).toMatchObject({ total: 2, media: [{ mediaId, fileName: 'raw.bin' }, form] });
    const part = join(files, 'part.bin');
    await writeFile(part, bytes.subarray(0, 1_000_000));
    expect(await ask('-C', '-', '-o', part, '-w', '%{http_code}', `${product.url}/media/${mediaId}`)).toBe('206');
    expect((await readFile(part)).equals(bytes)).toBe(true);
    expect(await ask('-X', 'DELETE', '-w', '%{http_code}', `${product.url}/media/${mediaId}`)).toBe('204');
  });

  test('the bundle recognises a picture by its bytes', async () => {
    const path = join(files, 'picture.txt');
    await writeFile(path, Buffer.from('89504e470d0a1a0a0000000d4948445200000001000000010806000000', 'hex'));
    expect(JSON.parse(await ask('-F', `file=@${path};type=text/plain`, `${product.url}/media`))).toMatchObject({
      contentType: 'image/png',
      fileName: 'picture.txt',
    });
  });
});

test('a daemon that is killed during an upload stores no medium', async () => {
  const folder = join(product.home, 'media');
  const before = readdirSync(folder).toSorted();
  const socket = connect(product.port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(
    `POST /media HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${product.token}\r\ncontent-length: 1000000\r\n\r\n${'x'.repeat(1000)}`,
  );
  await expect.poll(() => readdirSync(folder).length).toBe(before.length + 1);
  const { home, port } = product;
  await product.daemon.kill();
  socket.destroy();
  const daemon = await startDaemon({ home, port });
  try {
    const reply = await http({ port, path: '/media', headers: { authorization: `Bearer ${daemon.token}` } });
    expect(JSON.parse(reply.text)).toMatchObject({ total: before.length / 2 });
  } finally {
    await daemon.kill();
  }
});
