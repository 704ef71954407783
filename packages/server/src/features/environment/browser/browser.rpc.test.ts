import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { servePages, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { findCommand } from '../../../../../../tools/system-packages.mjs';

const missing = ['bwrap', 'chromium'].filter((name) => findCommand(name) === undefined);
/** Chromium without its user interface takes a third less of a processor; the tests of the engine use Chromium itself. */
const shell = findCommand('chromium-headless-shell');
/** Snapshots, JSON and sent forms write it in different ways. */
const canary = String.raw`the "password" \ of: the shop! 1a2b3c`;
const shop = `<title>Shop</title><h1>Shop</h1><a href="/cart">Cart</a>
<button onclick="document.title='bought'">Buy</button><label>File <input type="file" onchange="document.title=this.files[0].name"></label>
<script>console.warn('careful')</script>`;
const login = `<title>Login</title><form><label>Password <input name="pass" id="pass" oninput="console.log('typed ' + this.value); document.title = this.value"></label>`;
/** Shows whether the browser has been here before. */
const visits = `<title>Visits</title><script>document.title = document.cookie === '' ? 'first' : 'again'; document.cookie = 'seen=1; max-age=1000'</script>`;

const Asked = z.looseObject({ messages: z.array(z.looseObject({ role: z.string(), content: z.string().nullish() })) });

describe.skipIf(missing.length > 0)(`browsers${missing.length > 0 ? ` (skipped: ${missing.join(', ')} missing)` : ''}`, { timeout: 120_000 }, () => {
  let pages: Awaited<ReturnType<typeof servePages>>;
  let server: TestServer;
  /** Whether logins cannot be stored. */
  let isFull = false;
  beforeAll(async () => {
    pages = await servePages({ '/': shop, '/cart': '<title>Cart</title><p>Empty', '/login': login, '/visits': visits, '/slow': () => {} });
    const agent = { model: 'mock/mock-fast', tools: { profile: 'none' as const, allow: ['browser'] } };
    server = await startTestServer({
      egress: pages.dial,
      db: (db) => ({
        ...db,
        read: db.read.bind(db),
        search: db.search.bind(db),
        telemetry: db.telemetry.bind(db),
        backup: db.backup.bind(db),
        status: db.status.bind(db),
        write: (operation, input) =>
          isFull && operation.name === 'browser.saveProfile'
            ? Promise.reject(new AppError('unavailable', 'The disk is full'))
            : db.write(operation, input),
      }),
      secrets: [canary],
      env: { SHOP_PASSWORD: canary },
      config: {
        agents: { default: agent, other: agent, spare: agent },
        browser: { ...(shell !== undefined && { program: shell }), maxBrowsers: 2, secrets: { SHOP_PASSWORD: { origins: [pages.url('')] } } },
      },
    });
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    await pages?.[Symbol.asyncDispose]();
  });
  afterEach(() => server.provider.setAnswer(undefined));

  const titleOf = async (agentId = 'default') => (await server.client.call('browser.tabs', { agentId })).tabs.find(({ active }) => active)?.title;
  async function refOf(name: string, agentId = 'default'): Promise<string> {
    const { refs } = await server.client.call('browser.snapshot', { agentId });
    return Object.entries(refs).find(([, ref]) => ref.name === name)?.[0] ?? `no ${name}`;
  }
  const refused = (code: string, text: string | RegExp = '') => ({
    code,
    message: text instanceof RegExp ? expect.stringMatching(text) : expect.stringContaining(text),
  });

  /** Runs a turn in which the model makes these calls one after the other; returns what it read. */
  async function turn(calls: readonly (object | ((read: string) => object))[]): Promise<string[]> {
    const left = [...calls];
    server.provider.setAnswer(({ body }) => {
      const next = left.shift();
      if (next === undefined) return { text: 'Done.' };
      const args = typeof next === 'function' ? next(Asked.parse(body).messages.at(-1)?.content ?? '') : next;
      return { toolCalls: [{ id: `call_${crypto.randomUUID()}`, name: 'browser', arguments: JSON.stringify(args) }] };
    });
    await server.client.call('agent.execute', { message: `Go to ${pages.url('/')}`, sessionKey: `caller:${crypto.randomUUID()}` });
    const { messages } = Asked.parse(server.provider.requests.at(-1)?.body);
    return messages.filter(({ role }) => role === 'tool').map(({ content }) => content ?? '');
  }
  const pending = async () => (await server.client.call('admin.approval.pending', {})).requests;

  test('methods drive a page and return both sets of names', async () => {
    const { client } = server;
    expect(await client.call('browser.status', {})).toEqual({
      running: false,
      connected: false,
      available: true,
      cdpPort: null,
      tabCount: 0,
      activeTabs: 0,
      held: false,
    });
    expect((await client.call('browser.tabs', {})).tabs).toEqual([]);
    await expect(client.call('browser.snapshot', {})).rejects.toMatchObject(refused('precondition_failed', 'browser.navigate'));
    const url = pages.url('/');
    const page = await client.call('browser.navigate', { targetUrl: url });
    expect(page).toEqual({ tabId: page.tabId, targetId: page.tabId, url, targetUrl: url, title: 'Shop', status: 200 });
    const { snapshot, refs } = await client.call('browser.snapshot', { interactive: true, targetId: page.tabId });
    expect(snapshot).toContain('button "Buy"');
    const ref = Object.entries(refs).find(([, { name }]) => name === 'Buy')?.[0] ?? '';
    expect(await client.call('browser.act', { request: { kind: 'click', ref } })).toMatchObject({ ok: true, action: 'click', url, targetUrl: url });
    expect(await titleOf()).toBe('bought');
    expect(await client.call('browser.act', { request: { kind: 'hover', ref: 'e9999' } })).toMatchObject({
      ok: false,
      error: expect.stringMatching(/snapshot/),
    });
    expect((await client.call('browser.console', { level: 'warning' })).messages).toContainEqual(
      expect.objectContaining({ type: 'warning', text: 'careful' }),
    );
    const picture = await client.call('browser.screenshot', { type: 'jpeg' });
    expect(Buffer.from(picture.base64, 'base64').subarray(0, 2).toString('hex')).toBe('ffd8');
    await expect(client.call('browser.screenshot', { fullPage: true, ref })).rejects.toMatchObject(refused('invalid_params', 'element screenshots'));
    expect(
      Buffer.from((await client.call('browser.pdf', {})).data, 'base64')
        .subarray(0, 5)
        .toString(),
    ).toBe('%PDF-');
    const opened = await client.call('browser.open', { url: pages.url('/cart') });
    expect(opened).toMatchObject({ title: 'Cart', active: true, type: 'page' });
    expect(await client.call('browser.focus', { targetId: page.tabId })).toEqual({ focused: true, tabId: page.tabId, targetId: page.tabId });
    await client.call('browser.close', { tabId: opened.tabId });
    expect(await client.call('browser.status', {})).toMatchObject({
      running: true,
      connected: true,
      tabCount: 1,
      activeTabs: 1,
      url,
      targetUrl: url,
    });
    expect(await client.call('browser.stop', {})).toEqual({ stopped: true });
    expect(await client.call('browser.status', {})).toMatchObject({ running: false, tabCount: 0 });
  });

  test('refuse contradictory names, private addresses, and what a token may not do', async () => {
    const { client } = server;
    await expect(client.call('browser.navigate', {})).rejects.toMatchObject(refused('invalid_params', 'url is required'));
    await expect(client.call('browser.navigate', { url: pages.url('/'), targetUrl: pages.url('/cart') })).rejects.toMatchObject(
      refused('invalid_params', 'targetUrl'),
    );
    await expect(client.call('browser.navigate', { url: 'http://router.internal:80/' })).rejects.toMatchObject(refused('denied', 'not public'));
    await expect(client.call('browser.navigate', { url: 'file:///etc/passwd' })).rejects.toMatchObject({ code: 'denied' });
    await client.call('browser.navigate', { url: pages.url('/') });
    await expect(client.call('browser.focus', {})).rejects.toMatchObject(refused('invalid_params', 'tabId'));
    await expect(client.call('browser.close', { tabId: 't1', targetId: 't2' })).rejects.toMatchObject(refused('invalid_params', 'targetId'));

    const plain = await server.as(['rpc']);
    const evaluate = { request: { kind: 'evaluate' as const, expression: 'document.title' } };
    await expect(plain.call('browser.act', evaluate)).rejects.toMatchObject(refused('denied', 'admin'));
    await expect(plain.call('browser.take_over', { held: true })).rejects.toMatchObject({ code: 'insufficient_scope' });
    expect(await client.call('browser.act', evaluate)).toMatchObject({ ok: true, value: '"Shop"' });
    const narrow = await server.as(['rpc'], { agents: ['other'] });
    for (const call of [
      narrow.call('browser.status', { agentId: 'default' }),
      narrow.call('browser.stop', { agentId: 'default', forget: true }),
      narrow.call('browser.view', { agentId: 'default' }),
    ])
      await expect(call).rejects.toMatchObject(refused('not_found', 'Agent not found: default'));
    expect(await narrow.call('browser.status', {})).toMatchObject({ running: false });
    const audited = await client.call('obs.audit.query', { actionType: 'browser.act' });
    expect(JSON.stringify(audited)).toContain('"kind":"evaluate"');
    expect(JSON.stringify(audited)).not.toContain('document.title');
  });

  test('an agent reads pages fenced, and a click after that is pending until an approval', async () => {
    const url = pages.url('/');
    const refIn = (read: string) => /button "Buy".*?\[ref=(\w+)\]/.exec(read)?.[1];
    const work = turn([{ action: 'navigate', url, snapshot: true }, (read: string) => ({ action: 'click', ref: refIn(read) }), { action: 'tabs' }]);
    await expect.poll(pending, { timeout: 60_000 }).toMatchObject([{ toolName: 'browser', trustLevel: 'tainted' }]);
    expect(await titleOf()).toBe('Shop');
    const [request] = await pending();
    await server.client.call('admin.approval.resolve', { requestId: request?.requestId ?? '', approved: true });
    const [read, clicked, tabs] = await work;
    expect(read).toMatch(/UNTRUSTED-TEXT [0-9a-f]{32} source="web page shop\.test/);
    expect(read).toContain('button "Buy"');
    expect(clicked).toContain('click: done');
    expect(tabs).toContain('bought');
  });

  test('scripts and uploads of an agent wait for an approval even before it has read anything', async () => {
    const folder = join(server.homeDir, 'workspaces', 'default');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'list.txt'), 'apples');
    await server.client.call('browser.navigate', { url: pages.url('/') });
    const ref = await refOf('File');
    const work = turn([
      { action: 'evaluate', expression: '1 + 1' },
      { action: 'upload', ref, paths: ['list.txt'] },
    ]);
    for (const reason of [/script/, /files of the workspace/]) {
      await expect.poll(pending, { timeout: 60_000 }).toMatchObject([{ reason: expect.stringMatching(reason) }]);
      const [request] = await pending();
      await server.client.call('admin.approval.resolve', { requestId: request?.requestId ?? '', approved: true });
      await expect.poll(async () => (await pending()).some(({ requestId }) => requestId === request?.requestId)).toBe(false);
    }
    const [evaluated, uploaded] = await work;
    expect(evaluated).toContain('\n2\n');
    expect(uploaded).toContain('upload: done');
    expect(await titleOf()).toBe('list.txt');
  });

  test('a picture of an agent is a file of its workspace, and wrong arguments are explained', async () => {
    const url = pages.url('/');
    const [, shot, unknown, tooLong, click] = await turn([
      { action: 'navigate', url },
      { action: 'screenshot' },
      { action: 'wait', timeoutMs: 5 },
      { action: 'wait', timeMs: 50_000 },
      { action: 'click', ref: 'the button', text: 'x' },
    ]);
    const path = /media\/images\/\S+\.png/.exec(shot ?? '')?.[0] ?? '';
    expect(
      readFileSync(join(server.homeDir, 'workspaces', 'default', path))
        .subarray(1, 4)
        .toString(),
    ).toBe('PNG');
    expect(unknown).toContain('timeoutMs');
    expect(tooLong).toContain('timeMs');
    // Refused before anybody is asked for an approval.
    expect(click).toMatch(/reference.*text/s);
  });

  test('a stored secret is typed by its name, only where it may be, and never shown', async () => {
    await server.client.call('browser.navigate', { url: pages.url('/login') });
    const request = async () => ({ kind: 'type' as const, ref: await refOf('Password'), secret: 'SHOP_PASSWORD' });
    expect(await server.client.call('browser.act', { request: await request() })).toMatchObject({ ok: true });
    const seen = JSON.stringify([
      await server.client.call('browser.tabs', {}),
      await server.client.call('browser.snapshot', {}),
      await server.client.call('browser.console', {}),
      await server.client.call('browser.status', {}),
      await server.client.call('browser.act', { request: { kind: 'evaluate', expression: "document.querySelector('#pass').value" } }),
      await server.client.call('browser.act', { request: { ...(await request()), submit: true } }),
      await server.client.call('obs.audit.query', { actionType: 'browser.act' }),
      await turn([{ action: 'snapshot' }, { action: 'tabs' }, { action: 'console' }]),
      server.provider.requests.at(-1)?.body,
    ]);
    expect(seen).toContain('[REDACTED]');
    expect(seen).toContain('SHOP_PASSWORD');
    expect(seen).not.toMatch(/shop.{1,4}1a2b3c/);
    // The same page under another name is another origin.
    await server.client.call('browser.navigate', { url: pages.url('/login', 'other.test') });
    const elsewhere = await server.client
      .call('browser.act', { request: await request() })
      .catch((error: unknown) => ({ ok: false, error: String(error) }));
    expect(elsewhere).toMatchObject({ ok: false });
    expect(await titleOf()).toBe('Login');
  });

  test('while a person has taken over, the agent and other callers wait; its input is counted, not recorded', async () => {
    const { client } = server;
    await client.call('browser.navigate', { url: pages.url('/login') });
    const input = { events: [{ type: 'text' as const, text: 'typed-by-hand' }] };
    await expect(client.call('browser.input', input)).rejects.toMatchObject(refused('precondition_failed', 'take_over'));
    expect(await client.call('browser.take_over', { held: true })).toEqual({ held: true });
    const view = await client.call('browser.view', {});
    expect(view).toMatchObject({ held: true, title: 'Login', width: 1280, height: 720, jpeg: expect.any(String) });
    await expect(client.call('browser.navigate', { url: pages.url('/') })).rejects.toMatchObject(refused('conflict', 'taken the browser over'));
    await expect(client.call('browser.act', { request: { kind: 'reload' } })).rejects.toMatchObject({ code: 'conflict' });
    expect((await client.call('browser.snapshot', {})).title).toBe('Login');
    let isOver = false;
    const waiting = turn([{ action: 'snapshot' }]).finally(() => {
      isOver = true;
    });

    await client.call('browser.input', { events: [{ type: 'key', key: 'Tab' }, ...input.events] });
    await expect.poll(() => titleOf()).toBe('typed-by-hand');
    const again = await client.call('browser.view', { after: view.version, waitMs: 5_000 });
    expect(again.version).toBeGreaterThan(view.version);
    expect(isOver).toBe(false);
    expect(await client.call('browser.take_over', { held: false })).toEqual({ held: false });
    expect((await waiting)[0]).toContain('textbox "Password"');
    await client.call('browser.act', { request: { kind: 'reload' } });
    const audited = JSON.stringify(await client.call('obs.audit.query', { actionType: 'browser.input' }));
    expect(audited).toContain('"characters":13');
    expect(audited).not.toContain('typed-by-hand');
  });

  test('a stop ends a step in progress, and the next call starts the browser again with its logins', async () => {
    const { client } = server;
    await client.call('browser.navigate', { url: pages.url('/visits') });
    expect(await titleOf()).toBe('first');
    const slow = client.call('browser.navigate', { url: pages.url('/slow') }).catch((error: unknown) => error);
    await expect.poll(() => pages.requests.some((line) => line.endsWith('/slow'))).toBe(true);
    await client.call('browser.stop', {});
    expect(await slow).toMatchObject({ code: 'unavailable' });
    expect((await client.call('browser.navigate', { url: pages.url('/visits') })).title).toBe('again');
    await client.call('browser.stop', { forget: true });
    expect((await client.call('browser.navigate', { url: pages.url('/visits') })).title).toBe('first');
    expect((await client.call('obs.audit.query', { actionType: 'browser.forget' })).rows).toHaveLength(1);
    // A full disk costs the logins, neither the stop nor the browser.
    isFull = true;
    expect(await client.call('browser.stop', {})).toEqual({ stopped: true });
    isFull = false;
    expect((await client.call('browser.navigate', { url: pages.url('/visits') })).title).toBe('first');
    await client.call('browser.stop', {});
    expect((await client.call('browser.navigate', { url: pages.url('/visits') })).title).toBe('again');
  });

  test('a turn that is aborted ends its step and leaves the browser', async () => {
    server.provider.setAnswer(() => ({
      toolCalls: [{ id: `call_${crypto.randomUUID()}`, name: 'browser', arguments: JSON.stringify({ action: 'navigate', url: pages.url('/slow') }) }],
    }));
    const before = pages.requests.length;
    const left = new AbortController();
    const work = server.client
      .call('agent.execute', { message: `Go to ${pages.url('/slow')}` }, { signal: left.signal })
      .catch((error: unknown) => error);
    await expect.poll(() => pages.requests.slice(before).some((line) => line.endsWith('/slow')), { timeout: 60_000 }).toBe(true);
    left.abort();
    await work;
    expect(await server.client.call('browser.status', {})).toMatchObject({ running: true });
    expect((await server.client.call('browser.navigate', { url: pages.url('/cart') })).title).toBe('Cart');
  });

  test('run.kill ends a step in progress and leaves the browser', async () => {
    server.provider.setAnswer(() => ({
      toolCalls: [{ id: `call_${crypto.randomUUID()}`, name: 'browser', arguments: JSON.stringify({ action: 'navigate', url: pages.url('/slow') }) }],
    }));
    const before = pages.requests.length;
    const work = server.client.call('agent.execute', { message: `Go to ${pages.url('/slow')}` });
    const end = work.then(({ finishReason }) => finishReason, String);
    await expect.poll(() => pages.requests.slice(before).some((line) => line.endsWith('/slow')), { timeout: 60_000 }).toBe(true);
    const { runs } = await server.client.call('run.list', { state: 'active' });
    expect((await server.client.call('run.kill', { rootRunId: runs[0]?.rootRunId ?? 'none' })).killed).toBe(1);
    expect(await end).toBe('aborted');
    expect(await server.client.call('browser.status', {})).toMatchObject({ running: true });
  });

  test('a gateway that stops while the engine loads leaves no browser', async () => {
    const own = await startTestServer({ egress: pages.dial, config: { agents: { default: { tools: { profile: 'full' } } } } });
    const starting = own.client.call('browser.start', {}).catch(String);
    await own[Symbol.asyncDispose]();
    await starting;
    const left = readdirSync('/proc').filter((pid) => {
      try {
        return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(own.homeDir);
      } catch {
        return false;
      }
    });
    expect(left).toEqual([]);
  });

  test('a suspended agent has no browser, and a deleted one leaves no logins', async () => {
    const { client } = server;
    const visit = () => client.call('browser.navigate', { agentId: 'spare', url: pages.url('/visits') });
    await visit();
    await client.call('agents.suspend', { agentId: 'spare' });
    await expect.poll(async () => (await client.call('browser.status', { agentId: 'spare' })).running).toBe(false);
    await expect(visit()).rejects.toMatchObject(refused('precondition_failed', 'suspended'));
    await client.call('agents.resume', { agentId: 'spare' });
    expect((await visit()).title).toBe('again');
    const { config } = await client.call('agents.get', { agentId: 'spare' });
    await client.call('agents.delete', { agentId: 'spare' });
    await expect(client.call('browser.status', { agentId: 'spare' })).rejects.toMatchObject({ code: 'not_found' });
    await client.call('agents.create', { agentId: 'spare', config: { model: config.model, tools: config.tools } });
    expect((await visit()).title).toBe('first');
  });

  describe('a recording', () => {
    const dirOf = (agentId: string) => join(server.homeDir, 'data', 'browser-recordings', agentId);
    const list = async (agentId: string) => (await server.client.call('browser.recordings.list', { agentId })).recordings;
    /** Returns the steps of the newest recording, once there are so many. */
    async function recorded(agentId: string, count: number) {
      const steps = async () => {
        const recordingId = (await list(agentId))[0]?.recordingId;
        return recordingId === undefined ? [] : (await server.client.call('browser.recordings.get', { agentId, recordingId })).steps;
      };
      await expect.poll(async () => (await steps()).length, { timeout: 20_000 }).toBeGreaterThanOrEqual(count);
      return steps();
    }
    const fresh = async (agentId: string) => {
      for (const each of ['default', 'other', 'spare']) await server.client.call('browser.stop', { agentId: each });
      await server.client.call('browser.recordings.delete', { agentId });
    };

    test('has each step with its element, address, outcome, time and picture, and nothing that was typed', async () => {
      const { client } = server;
      await fresh('default');
      const url = pages.url('/login');
      await turn([{ action: 'navigate', url, snapshot: true }]);
      const ref = await refOf('Password');
      // A picture that takes more than half a second is dropped when the next step begins.
      await recorded('default', 3);
      await client.call('browser.act', { request: { kind: 'type', ref, text: 'typed-in-plain' } });
      await recorded('default', 4);
      await client.call('browser.act', { request: { kind: 'press', ref, key: 'q' } });
      await recorded('default', 5);
      await client.call('browser.act', { request: { kind: 'type', ref, secret: 'SHOP_PASSWORD' } });
      await recorded('default', 6);
      await client.call('browser.act', { request: { kind: 'hover', ref: 'e9999', timeoutMs: 500 } });
      await recorded('default', 7);
      await client.call('browser.navigate', { url: 'http://router.internal:80/' }).catch(() => {});
      await client.call('browser.navigate', { url: pages.url('/') });
      await recorded('default', 9);
      await client.call('browser.take_over', { held: true });
      await client.call('browser.input', { events: [{ type: 'text', text: 'typed-by-hand' }] });
      await client.call('browser.take_over', { held: false });
      const steps = await recorded('default', 12);
      expect(steps.map(({ step, by, action, detail, ok, picture }) => [step, by, action, detail, ok, picture])).toEqual([
        [1, 'agent', 'navigate', url, true, true],
        [2, 'agent', 'snapshot', undefined, true, false],
        [3, 'caller', 'snapshot', undefined, true, false],
        [4, 'caller', 'type', 'textbox "Password" 14 characters', true, true],
        [5, 'caller', 'press', 'textbox "Password" a character', true, true],
        [6, 'caller', 'type', 'textbox "Password" secret SHOP_PASSWORD', true, true],
        [7, 'caller', 'hover', 'e9999', false, true],
        [8, 'caller', 'navigate', 'http://router.internal:80/', false, expect.any(Boolean)],
        [9, 'caller', 'navigate', pages.url('/'), true, true],
        [10, 'person', 'take_over', undefined, true, false],
        [11, 'person', 'input', 'events: 1, characters: 13', true, false],
        [12, 'person', 'return', undefined, true, false],
      ]);
      expect(steps[0]).toMatchObject({
        url,
        title: 'Login',
        tabId: expect.stringMatching(/^t\d+$/),
        traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
      });
      expect(steps[5]?.title).toBe('[REDACTED]');
      expect(steps[6]?.error).toMatch(/snapshot/);
      expect(steps[7]?.error).toMatch(/not public/);
      const [recording] = await list('default');
      expect(recording).toMatchObject({ running: true, steps: 12, failed: 2, url: pages.url('/'), startedAt: steps[0]?.at, lastAt: steps[11]?.at });
      const recordingId = recording?.recordingId ?? '';
      const { jpeg } = await client.call('browser.recordings.picture', { recordingId, step: 9 });
      expect(Buffer.from(jpeg, 'base64').subarray(0, 2).toString('hex')).toBe('ffd8');
      await expect(client.call('browser.recordings.picture', { recordingId, step: 10 })).rejects.toMatchObject({ code: 'not_found' });
      const kept = readdirSync(dirOf('default')).map((name) => readFileSync(join(dirOf('default'), name), 'latin1'));
      for (const typed of [canary, 'typed-by-hand']) expect(kept.join('')).not.toContain(typed);
      await client.call('browser.stop', {});
      expect(await list('default')).toMatchObject([{ recordingId, running: false }]);
    });

    test('is seen by its owner and admins only, and deleted by admins', async () => {
      const { client } = server;
      await fresh('other');
      const [mine, neighbour] = [await server.as(['rpc']), await server.as(['rpc'])];
      await mine.call('browser.navigate', { agentId: 'other', url: pages.url('/cart') });
      await client.call('browser.navigate', { agentId: 'other', url: pages.url('/') });
      await recorded('other', 2);
      const recordingId = (await list('other'))[0]?.recordingId ?? '';
      const named = { agentId: 'other', recordingId };
      expect((await mine.call('browser.recordings.get', named)).steps.map(({ detail }) => detail)).toEqual([pages.url('/cart')]);
      await expect(mine.call('browser.recordings.picture', { ...named, step: 2 })).rejects.toMatchObject({ code: 'not_found' });
      expect(await neighbour.call('browser.recordings.list', { agentId: 'other' })).toEqual({ recordings: [], more: false });
      await expect(neighbour.call('browser.recordings.get', named)).rejects.toMatchObject({ code: 'not_found' });
      await expect(neighbour.call('browser.recordings.picture', { ...named, step: 1 })).rejects.toMatchObject({ code: 'not_found' });
      await expect(mine.call('browser.recordings.delete', named)).rejects.toMatchObject({ code: 'insufficient_scope' });
      const narrow = await server.as(['rpc'], { agents: ['default'] });
      await expect(narrow.call('browser.recordings.list', { agentId: 'other' })).rejects.toMatchObject({ code: 'not_found' });
      await expect(client.call('browser.recordings.get', { ...named, agentId: 'default' })).rejects.toMatchObject({ code: 'not_found' });
      // What follows is another recording.
      expect(await client.call('browser.recordings.delete', named)).toEqual({ deleted: 1 });
      await client.call('browser.navigate', { agentId: 'other', url: pages.url('/') });
      expect(await recorded('other', 1)).toMatchObject([{ step: 1 }]);
      await expect(client.call('browser.recordings.get', named)).rejects.toMatchObject({ code: 'not_found' });
      expect(await client.call('browser.recordings.delete', { agentId: 'other' })).toEqual({ deleted: 1 });
      expect(readdirSync(dirOf('other'))).toEqual([]);
    });

    test('goes with its agent, does not fail a step that cannot be stored, and is not made when it is switched off', async () => {
      const { client } = server;
      const open = (path: string) => client.call('browser.navigate', { agentId: 'spare', url: pages.url(path) });
      const switchTo = (enabled: boolean) => client.call('config.patch', { section: 'browser', key: 'recording', value: { enabled } });
      await fresh('spare');
      await open('/');
      await recorded('spare', 1);
      const slow = client.call('browser.navigate', { agentId: 'spare', url: pages.url('/slow') }).catch((error: unknown) => error);
      const { config } = await client.call('agents.get', { agentId: 'spare' });
      await client.call('agents.delete', { agentId: 'spare' });
      await slow;
      await expect.poll(() => existsSync(dirOf('spare')), { timeout: 20_000 }).toBe(false);
      await client.call('agents.create', { agentId: 'spare', config: { model: config.model, tools: config.tools } });
      // As with a full disk: nothing can be written there.
      writeFileSync(dirOf('spare'), '');
      expect((await open('/')).title).toBe('Shop');
      expect((await open('/cart')).title).toBe('Cart');
      rmSync(dirOf('spare'));
      const addresses = async () => (await recorded('spare', 1)).map(({ detail }) => detail);
      await open('/login');
      await expect.poll(addresses).toContain(pages.url('/login'));
      const recordingId = (await list('spare'))[0]?.recordingId ?? '';
      const gapsOf = async () => (await client.call('browser.recordings.get', { agentId: 'spare', recordingId })).gaps;
      const first = (await recorded('spare', 1))[0]?.step ?? 0;
      const before = { from: 1, missing: first - 1, reason: 'failed' as const };
      expect(await gapsOf()).toEqual([before]);
      // What is missing at the end is noted when the next recording begins.
      const last = (await recorded('spare', 1)).at(-1)?.step ?? 0;
      const lines = join(dirOf('spare'), `${recordingId}.steps`);
      renameSync(lines, `${lines}-away`);
      // Is read through, and not written.
      symlinkSync(`${lines}-away`, lines);
      await open('/cart');
      await open('/');
      const all = [before, { from: last + 1, missing: 2, reason: 'failed' }];
      await expect.poll(gapsOf).toEqual(all);
      rmSync(lines);
      renameSync(`${lines}-away`, lines);
      const isNoted = () => readFileSync(lines, 'utf8').includes(`"from":${last + 1}`);
      expect(isNoted()).toBe(false);
      await client.call('browser.stop', { agentId: 'spare' });
      await open('/visits');
      await expect.poll(isNoted).toBe(true);
      expect(await gapsOf()).toEqual(all);
      await client.call('browser.recordings.delete', { agentId: 'spare', recordingId });
      await switchTo(false);
      await open('/cart?unrecorded');
      await switchTo(true);
      await open('/visits');
      await expect.poll(addresses).toContain(pages.url('/visits'));
      expect(await addresses()).not.toContain(pages.url('/cart?unrecorded'));
      // The oldest goes when all together are too large.
      const old = join(dirOf('spare'), 'rec_00000000-0001-7000-8000-000000000000.pictures');
      writeFileSync(old, Buffer.alloc(2 ** 21));
      await client.call('config.patch', { section: 'browser', key: 'recording', value: { maxMb: 1 } });
      await client.call('browser.stop', { agentId: 'spare' });
      await open('/');
      await expect.poll(() => existsSync(old)).toBe(false);
      expect(await list('spare')).toHaveLength(2);
    });
  });

  test('switching browsers off ends those that run and withdraws the tool', async () => {
    const { client } = server;
    await client.call('browser.navigate', { url: pages.url('/') });
    const offered = async () => (await client.call('tools.list', {})).tools.some(({ name }) => name === 'browser');
    expect(await offered()).toBe(true);
    await client.call('config.patch', { section: 'browser', key: 'enabled', value: false });
    expect(await client.call('browser.status', {})).toMatchObject({
      running: false,
      available: false,
      reason: expect.stringContaining('browser.enabled'),
    });
    expect(await offered()).toBe(false);
    await expect(client.call('browser.start', {})).rejects.toMatchObject({ code: 'precondition_failed' });
    await client.call('config.patch', { section: 'browser', key: 'enabled', value: true });
  });
});
