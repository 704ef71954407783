import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { openApiDocument } from '@gatehouse/contract/openapi';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLookup } from '../../ui/schema/schema.ts';
import { routesOf } from './routes.ts';
import { type Language, languages, sampleOf, type SampleRequest } from './samples.ts';

const run = promisify(execFile);
const programs: Readonly<Record<Language, (text: string) => readonly [string, ...string[]]>> = {
  curl: (text) => ['sh', '-c', text.replace(/^curl/, 'curl --silent --noproxy "*"')],
  JavaScript: (text) => [process.execPath, '--input-type=module', '-e', text],
  Python: (text) => ['python3', '-c', text],
};
const isThere: Readonly<Record<Language, boolean>> = {
  curl: spawnSync('curl', ['--version']).status === 0,
  JavaScript: true,
  Python: spawnSync('python3', ['--version']).status === 0,
};

let folder: string;
const received: { readonly request: IncomingMessage; readonly body: Buffer }[] = [];
const server = createServer((request, response) => {
  void buffer(request).then((body) => {
    received.push({ request, body });
    response.setHeader('content-type', 'application/json').end('{"answer":"ja"}\n');
  });
});
let origin: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-samples-'));
  writeFileSync(join(folder, 'notes.txt'), 'Bytes \u00fc');
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  origin = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await new Promise((resolve) => server.close(resolve));
});

/** Runs the program of a request and returns what it printed and sent. */
async function send(language: Language, request: Omit<SampleRequest, 'url'>, path = '/x') {
  const text = sampleOf(language, { ...request, url: `${origin}${path}` });
  const [file, ...args] = programs[language](text);
  const { stdout } = await run(file, args, { cwd: folder, env: { PATH: process.env['PATH'], GATEHOUSE_TOKEN: 'the-token', NO_PROXY: '*' } });
  const last = received.at(-1);
  return {
    out: stdout.trim(),
    method: last?.request.method,
    url: last?.request.url,
    headers: last?.request.headers ?? {},
    body: last?.body.toString() ?? '',
  };
}

describe.each(languages)('%s', (language) => {
  test.skipIf(!isThere[language])('sends what a request says, with the token of the environment', async () => {
    const body = { text: `it's "so" $HOME \\n \u2028 {x}\n`, list: [1.5, null, true, false, []], nested: { empty: {} } };
    const posted = await send(language, { method: 'POST', body });
    expect(posted).toMatchObject({ method: 'POST', url: '/x', headers: { authorization: 'Bearer the-token', 'content-type': 'application/json' } });
    expect(JSON.parse(posted.body)).toEqual(body);
    expect(posted.out).toMatch(/answer.*ja/);
    expect(await send(language, { method: 'GET', raw: true }, '/a/ID')).toMatchObject({
      method: 'GET',
      url: '/a/ID',
      headers: { authorization: 'Bearer the-token' },
      body: '',
      out: '{"answer":"ja"}',
    });
    const deleted = await send(language, { method: 'DELETE', open: true, raw: true });
    expect(deleted).toMatchObject({ method: 'DELETE' });
    expect(deleted.headers).not.toHaveProperty('authorization');
    const uploaded = await send(language, { method: 'POST', file: 'notes.txt' });
    expect(uploaded.headers['content-type']).toMatch(/^multipart\/form-data; ?boundary=/);
    expect(uploaded.body).toMatch(/name="file"; filename="notes.txt"\r\n(?:[^]*\r\n)?\r\nBytes ü\r\n--/);
  });
});

test('every route but those for browsers, signed ones and WebSockets has a program, with the required fields of its body', () => {
  const document = openApiDocument({ version: '0.0.0' });
  const routes = routesOf(document, createLookup(document.components.schemas));
  expect(routes.filter(({ sample }) => sample === undefined).map(({ id }) => id)).toEqual(['responsesSocket', 'webhook', 'hook', 'ws']);
  const chat = routes.find(({ id }) => id === 'chatCompletions');
  expect(chat?.parameters.filter(({ required }) => required).map(({ name, place, type }) => `${place} ${name}: ${type}`)).toEqual([
    'body model: string',
    'body messages: list of object',
  ]);
  expect(chat?.answers.map(({ status }) => status)).toContain('429');
  expect(routes.find(({ id }) => id === 'metrics')?.sample).toEqual({ method: 'GET', raw: true });
  expect(routes.find(({ id }) => id === 'health')?.sample).toMatchObject({ open: true });
});
