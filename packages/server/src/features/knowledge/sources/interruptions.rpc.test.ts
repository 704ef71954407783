import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, servePages, sql, startTestServer, type TestServer, tinyPng } from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AppError } from '../../../kernel/app-error.ts';
import { makeScannedPdf } from '../../environment/documents/testing/make-files.ts';

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'gatehouse-knowledge-stops-'));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

function folder(name: string, files: Readonly<Record<string, string | Buffer>>): string {
  mkdirSync(join(base, name), { recursive: true });
  for (const [file, content] of Object.entries(files)) writeFileSync(join(base, name, file), content);
  return join(base, name);
}
const sourcesOf = async (server: TestServer) => (await server.client.call('knowledge.list', {})).sources;
const sourceOf = async (server: TestServer, name: string) => (await sourcesOf(server)).find((source) => source.name === name);
const found = async (server: TestServer, agentId: string, query: string) =>
  (await server.client.call('knowledge.search', { agentId, query })).passages.map(({ path }) => path);

describe('a suspended agent', () => {
  test('has its folders indexed when it is resumed', async () => {
    const notes = folder('notes', { 'a.md': 'The lantern hangs in the tower.' });
    await using server = await startTestServer({ config: { agents: { reader: {} } } });
    await server.client.call('agents.suspend', { agentId: 'reader' });
    await server.client.call('agents.update', { agentId: 'reader', config: { knowledge: { sources: [{ name: 'notes', folder: notes }] } } });
    await server.client.call('agents.resume', { agentId: 'reader' });
    await expect.poll(async () => (await sourceOf(server, 'notes'))?.state, { timeout: 10_000 }).toBe('ready');
    expect(await found(server, 'reader', 'lantern tower')).toEqual(['a.md']);
  });

  test('reads no further scans', async () => {
    const scans = folder('scans', {
      'a.pdf': makeScannedPdf(1, { width: 200, height: 300 }),
      'b.pdf': makeScannedPdf(1, { width: 210, height: 300 }),
      'c.pdf': makeScannedPdf(1, { width: 220, height: 300 }),
    });
    await using server = await startTestServer(seeing({ name: 'scans', folder: scans }));
    const reading = Promise.withResolvers<void>();
    const { promise: never } = Promise.withResolvers<void>();
    let pages = 0;
    server.provider.setAnswer(() => {
      pages += 1;
      reading.resolve();
      return { text: 'A page.', after: never };
    });
    await reading.promise;
    await server.client.call('agents.suspend', { agentId: 'reader' });
    await expect.poll(() => server.provider.aborted()).toBe(1);
    expect(await sourceOf(server, 'scans')).toMatchObject({ state: 'waiting', files: 0 });
    expect(pages).toBe(1);
  });
});

describe('a scan', () => {
  test('that the budget did not allow is read when it does', async () => {
    const clock = createStepClock();
    const scans = folder('scans', { 'a.pdf': makeScannedPdf(2, { width: 200, height: 300 }), 'picture.pdf': tinyPng });
    await using server = await startTestServer({ ...seeing({ name: 'scans', folder: scans }, { perHourTokens: 1 }), clock });
    server.provider.setAnswer(() => ({ text: 'The lantern hangs in the tower.', usage: { input: 10, output: 10 } }));
    const ready = async (): Promise<void> => {
      const before = (await sourceOf(server, 'scans'))?.checkedAt;
      await expect
        .poll(async () => {
          // A step while a document is read would be its timeout.
          const { state, checkedAt } = (await sourceOf(server, 'scans')) ?? {};
          if (state !== 'indexing') clock.advance(60_000);
          return checkedAt;
        })
        .not.toBe(before);
    };
    await ready();
    const problem = expect.stringContaining('budget') as string;
    const failed = ['a.pdf', 'picture.pdf'].map((path) => ({ path, problem }));
    expect(await sourceOf(server, 'scans')).toMatchObject({ files: 2, failed });
    await server.client.call('agents.update', { agentId: 'reader', config: { budgets: { perHourTokens: 1_000_000 } } });
    await ready();
    expect(await sourceOf(server, 'scans')).toMatchObject({ files: 2, failedCount: 0 });
    expect(new Set(await found(server, 'reader', 'lantern tower'))).toEqual(new Set(['a.pdf', 'picture.pdf']));
    const asked = server.provider.requests.length;
    await ready();
    expect(server.provider.requests).toHaveLength(asked);
  });
});

describe('a source that was taken away', () => {
  test('is removed later when the storage refuses it, without asking it all the time', async () => {
    const clock = createStepClock();
    let isFull = false;
    let refused = 0;
    await using server = await startTestServer({
      clock,
      config: {
        agents: { reader: { knowledge: { sources: [{ name: 'notes', folder: folder('notes', { 'a.md': 'The lantern hangs in the tower.' }) }] } } },
      },
      db: (db) => ({
        ...db,
        read: db.read.bind(db),
        search: db.search.bind(db),
        telemetry: db.telemetry.bind(db),
        backup: db.backup.bind(db),
        status: db.status.bind(db),
        write(operation, input) {
          if (!isFull || !operation.name.startsWith('knowledge.')) return db.write(operation, input);
          refused += 1;
          return Promise.reject(new AppError('unavailable', 'The disk is full'));
        },
      }),
    });
    const stepped = <T>(read: () => Promise<T>) =>
      expect.poll(() => {
        clock.advance(1_000);
        return read();
      });
    await stepped(async () => (await sourceOf(server, 'notes'))?.state).toBe('ready');
    isFull = true;
    const teas = folder('teas', { 'b.md': 'The kettle is descaled.' });
    await server.client.call('agents.update', { agentId: 'reader', config: { knowledge: { sources: [{ name: 'teas', folder: teas }] } } });
    await stepped(async () => (await sourceOf(server, 'teas'))?.state).toBe('unavailable');
    const before = refused;
    for (let second = 0; second < 20; second += 1) {
      clock.advance(1_000);
      await sourcesOf(server);
    }
    expect(refused - before).toBeLessThan(3);
    isFull = false;
    await stepped(async () => (await sourceOf(server, 'teas'))?.state).toBe('ready');
    expect(await sql(server.homeDir, 'SELECT source FROM knowledge_file')).toEqual([{ source: 'teas' }]);
  });
});

test('after repeated crashes nothing is indexed', async () => {
  const clock = createStepClock();
  const notes = folder('notes', { 'a.md': 'The lantern hangs in the tower.' });
  const homeDir = join(base, 'home');
  mkdirSync(join(homeDir, 'data'), { recursive: true, mode: 0o700 });
  const crashed = { pid: 1, startedAtMs: clock.now(), endedAtMs: null };
  writeFileSync(join(homeDir, 'data', 'boots.json'), JSON.stringify(['a', 'b', 'c'].map((bootId) => ({ ...crashed, bootId }))), { mode: 0o600 });
  const config = { agents: { reader: { knowledge: { sources: [{ name: 'notes', folder: notes }] } } } };
  await using server = await startTestServer({ clock, homeDir, config });
  await server.client.call('knowledge.refresh', { agentId: 'reader' });
  for (let second = 0; second < 10; second += 1) {
    clock.advance(1_000);
    expect(await sourceOf(server, 'notes')).toMatchObject({ state: 'waiting', files: 0 });
  }
});

describe('a site', () => {
  test('whose first page leads elsewhere keeps its index, and says why', async () => {
    let isMoved = false;
    await using pages = await servePages({
      '/manual/': (_request, response) =>
        void (isMoved
          ? response.writeHead(302, { location: '/login' }).end()
          : response.writeHead(200, { 'content-type': 'text/html' }).end('<title>Manual</title><p>The third valve is opened clockwise.</p>')),
      '/login': '<title>Login</title><p>Who are you?</p>',
    });
    await using server = await startTestServer({
      egress: pages.dial,
      config: { agents: { reader: { knowledge: { sources: [{ name: 'manual', site: pages.url('/manual/') }] } } } },
    });
    const checked = async () => {
      const before = (await sourceOf(server, 'manual'))?.checkedAt;
      await server.client.call('knowledge.refresh', { agentId: 'reader' });
      await expect.poll(async () => (await sourceOf(server, 'manual'))?.checkedAt, { timeout: 30_000 }).not.toBe(before);
      return sourceOf(server, 'manual');
    };
    expect(await checked()).toMatchObject({ state: 'ready', files: 1 });
    isMoved = true;
    expect(await checked()).toMatchObject({ state: 'unavailable', files: 1, problem: expect.stringContaining(pages.url('/login')) });
    expect(await found(server, 'reader', 'third valve')).toHaveLength(1);
  });
});

/** An agent with a source, and a model that reads pictures. */
function seeing(source: { readonly name: string; readonly folder: string }, budgets: object = {}) {
  return {
    config: {
      agents: { reader: { knowledge: { sources: [source] }, budgets } },
      media: { vision: { models: ['mock/mock-fast'] } },
    },
  };
}
