import { execFile } from 'node:child_process';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ChatCompletion, ChatCompletionChunk } from '@gatehouse/contract';
import { freePort } from '@gatehouse/testkit/free-port';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Daemon, startDaemon } from '../proving/lib/daemon.ts';
import { filesBelow, makeHome, removeHome } from '../proving/lib/home.ts';
import { bearer, http } from '../proving/lib/http.ts';

const run = promisify(execFile);

describe('the first start in an empty folder, without a key or configuration', () => {
  let place: string;
  let home: string;
  let daemon: Daemon;
  let token: string;

  beforeAll(async () => {
    place = await makeHome();
    home = join(place, 'new', 'home');
    await mkdir(join(place, 'new'));
    const port = await freePort();
    daemon = await startDaemon({ home, port, token: null, workingDir: place });
    token = (await readFile(join(home, 'token'), 'utf8')).trim();
  });
  afterAll(async () => {
    await daemon.kill();
    await removeHome(place);
  });

  const ask = (body: object) => http({ port: daemon.port, path: '/v1/chat/completions', headers: bearer(token), body });

  test('creates an owner-only home with a commented configuration and a token', async () => {
    expect((await stat(home)).mode & 0o777).toBe(0o700);
    for (const file of await filesBelow(home)) expect([file, (await stat(file)).mode & 0o077]).toEqual([file, 0]);
    expect(await readFile(join(home, 'config.yaml'), 'utf8')).toMatch(/^\s*#/m);
    expect(token.length).toBeGreaterThanOrEqual(32);
  });

  test('prints last the address, and that no model is connected', () => {
    const output = `${daemon.stdout()}`;
    expect(output.trim().split('\n').at(-1)).toContain(`http://127.0.0.1:${daemon.port}`);
    expect(output).toMatch(/offline/i);
    // Secrets belong in a fragment or a header, never into a query that logs keep.
    expect(output).not.toMatch(/[?&](token|key)=/);
  });

  test('prints a login link with the token in a part that no server sees', () => {
    expect(daemon.stdout()).toContain(`http://127.0.0.1:${daemon.port}/#token=${token}\n`);
  });

  test('prints a curl line that works when pasted', async () => {
    const printed = `${daemon.stdout()}\n`;
    const line = /curl (?:[^\n\\]|\\[^\n]|\\\n)*/.exec(printed)?.[0] ?? '';
    expect(line).not.toBe('');
    const { stdout } = await run('bash', ['-c', line], { env: { PATH: process.env['PATH'] ?? '', HOME: place }, timeout: 20_000 });
    expect(stdout).toMatch(/chat\.completion/);
  });

  test('answers with the offline model, which pretends nothing, whole and streamed', async () => {
    const whole = await ask({ model: 'default', messages: [{ role: 'user', content: 'Hello?' }] });
    const completion = ChatCompletion().parse(JSON.parse(whole.text));
    const text = completion.choices[0]?.message.content ?? '';
    expect(text).toMatch(/no (language )?model is connected/i);
    expect(completion.usage.completion_tokens).toBeGreaterThan(0);
    const streamed = await ask({ model: 'default', messages: [{ role: 'user', content: 'Hello?' }], stream: true });
    const lines = streamed.text.split('\n\n').filter((event) => event.startsWith('data: '));
    expect(lines.at(-1)).toBe('data: [DONE]');
    const parts = lines.slice(0, -1).map((event) => ChatCompletionChunk().parse(JSON.parse(event.slice('data: '.length))));
    expect(parts.map((part) => part.choices[0]?.delta.content ?? '').join('')).toBe(text);
  });

  test('starts a second time with the same token, and prints no secret', async () => {
    await daemon.stop();
    daemon = await startDaemon({ home, port: daemon.port, token: null, workingDir: place });
    expect((await ask({ model: 'default', messages: [{ role: 'user', content: 'Hello again' }] })).status).toBe(200);
    expect(`${daemon.stdout()}${daemon.stderr()}`).not.toContain(token);
    expect(daemon.stdout()).toContain(`http://127.0.0.1:${daemon.port}/\n`);
  });
});
