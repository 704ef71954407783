import { expect, test } from 'vitest';
import { createClient } from './client.ts';
import { InvalidParamsError, NotFoundError } from './errors.ts';
import { answer, type GatewayScript, startGateway } from './testing/gateway.ts';

const info = { mediaId: 'm1.png', contentType: 'image/png', size: 4, savedAt: 1_790_000_000_000 };
const bytes = Uint8Array.of(0, 255, 128, 13);

async function open(script: NonNullable<GatewayScript['http']>) {
  const gateway = await startGateway({ http: script });
  const client = createClient({ url: gateway.url, token: 't', retry: { initialDelayMs: 1 } });
  return { gateway, client, [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose]() };
}

test('uploads bytes and blobs unchanged, with type and name', async () => {
  await using session = await open(() => info);
  expect(await session.client.upload(bytes, { fileName: 'a b&c.png', contentType: 'image/png' })).toEqual(info);
  await session.client.upload(new Blob([bytes], { type: 'text/plain' }));
  await session.client.upload(new File([bytes], 'note.md', { type: 'text/markdown' }));
  await session.client.upload(bytes);
  expect(session.gateway.requests.map(({ path, headers }) => [path, headers['content-type']])).toEqual([
    ['/media?fileName=a+b%26c.png', 'image/png'],
    ['/media', 'text/plain'],
    ['/media?fileName=note.md', 'text/markdown'],
    ['/media', 'application/octet-stream'],
  ]);
  for (const request of session.gateway.requests) expect(request.bytes).toEqual(Buffer.from(bytes));
});

test('an upload is not retried, and reports why it was refused', async () => {
  await using session = await open(({ response }) => answer(response, 413, { error: 'The file is larger than 50 MiB.', code: 'payload_too_large' }));
  await expect(session.client.upload(bytes)).rejects.toBeInstanceOf(InvalidParamsError);
  await using busy = await open(({ response }) => answer(response, 503, { error: 'Draining.', code: 'unavailable' }));
  await expect(busy.client.upload(bytes)).rejects.toMatchObject({ code: 'unavailable' });
  expect(busy.gateway.requests).toHaveLength(1);
});

test('a failed deletion is not retried', async () => {
  await using session = await open(({ path, response }) =>
    path === '/media/m1.png' ? void response.writeHead(204).end() : answer(response, 503, { error: 'Draining.', code: 'unavailable' }),
  );
  expect(await session.client.deleteMedia('m1.png')).toBeUndefined();
  await expect(session.client.deleteMedia('m2.png')).rejects.toMatchObject({ code: 'unavailable' });
  expect(session.gateway.requests.map(({ method, path }) => [method, path])).toEqual([
    ['DELETE', '/media/m1.png'],
    ['DELETE', '/media/m2.png'],
  ]);
});

test('reads metadata and content, whole or in part', async () => {
  await using session = await open(({ path, headers, response }) => {
    if (path === '/media/m1.png/meta') return info;
    if (path.startsWith('/media?')) return { media: [info], total: 1, asked: path };
    if (path !== '/media/m1.png') return answer(response, 404, { error: 'No media file x/y.', code: 'not_found' });
    return void response
      .writeHead(headers.range === undefined ? 200 : 206, { 'content-type': 'image/png' })
      .end(headers.range === undefined ? bytes : bytes.slice(1, 3));
  });
  expect(await session.client.mediaInfo('m1.png')).toEqual(info);
  expect(await session.client.listMedia({ limit: 5, offset: 10 })).toEqual({ media: [info], total: 1, asked: '/media?limit=5&offset=10' });
  expect(await (await session.client.media('m1.png')).bytes()).toEqual(bytes);
  expect(await (await session.client.media('m1.png', { range: 'bytes=1-2' })).bytes()).toEqual(bytes.slice(1, 3));
  await expect(session.client.media('x/y')).rejects.toBeInstanceOf(NotFoundError);
  expect(session.gateway.requests.at(-1)?.path).toBe('/media/x%2Fy');
});
