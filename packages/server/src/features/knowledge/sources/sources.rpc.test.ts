import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { servePages, sql, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { makePdf, makeZip } from '../../environment/documents/testing/make-files.ts';

let base: string;
let server: TestServer;
const folder = () => join(base, 'handbook');
const homeDir = () => join(base, 'home');
const put = (path: string, text: string | Buffer): void => {
  mkdirSync(join(folder(), path, '..'), { recursive: true });
  writeFileSync(join(folder(), path), text);
};

const start = () =>
  startTestServer({
    homeDir: homeDir(),
    config: {
      embedding: { provider: 'hashing' },
      agents: {
        default: {
          tools: { profile: 'coding' },
          knowledge: {
            sources: [
              { name: 'handbook', folder: folder() },
              { name: 'ours', folder: join(base, 'ours'), trusted: true },
              { name: 'nowhere', folder: join(base, 'nowhere') },
              { name: 'home', folder: base },
            ],
          },
        },
        other: {},
      },
    },
  });

beforeAll(async () => {
  base = mkdtempSync(join(tmpdir(), 'gatehouse-knowledge-'));
  mkdirSync(homeDir(), { mode: 0o700 });
  mkdirSync(join(base, 'ours'));
  writeFileSync(join(base, 'ours', 'rules.md'), '# Gate\n\nThe gate closes at nine in the evening.\n');
  put('leave.pdf', makePdf(['Leave policy', 'Requests for leave reach the office two weeks before they begin.']));
  put('deep/tea.md', '# Tea\n\nThe kettle is descaled on Fridays.\n\n# Coffee\n\nBeans are bought in Hamburg.\n');
  put('bomb.docx', makeZip([{ name: 'word/document.xml', content: Buffer.alloc(80_000_000, 97) }]));
  put('.hidden/secret.md', 'The hidden word is zanzibar.');
  put('program.bin', 'zanzibar');
  symlinkSync('/etc/passwd', join(folder(), 'link.txt'));
  symlinkSync('/etc', join(folder(), 'etc'));
  server = await start();
  await refresh();
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  rmSync(base, { recursive: true, force: true });
});

const list = async () => (await server.client.call('knowledge.list', {})).sources;
const sourceOf = async (name: string) => (await list()).find((source) => source.name === name);
const search = async (query: string, more: object = {}) => (await server.client.call('knowledge.search', { query, ...more })).passages;
const paths = async (query: string, more: object = {}) => [...new Set((await search(query, more)).map(({ path }) => path))];
const texts = async (query: string) => (await search(query)).map(({ text }) => text).join('\n');
/** Compares all sources with their index, and waits until that is done. */
async function refresh(): Promise<void> {
  const before = new Map((await list()).map(({ name, checkedAt }) => [name, checkedAt]));
  await server.client.call('knowledge.refresh', { agentId: 'default' });
  const isDone = async () =>
    (await list()).every(({ name, state, checkedAt }) => state !== 'waiting' && state !== 'indexing' && checkedAt !== before.get(name));
  await vi.waitFor(async () => expect(await isDone()).toBe(true), { timeout: 60_000, interval: 50 });
}
const rows = async (table: string) => Number(((await sql(homeDir(), `SELECT count(*) AS count FROM ${table}`)) as { count: number }[])[0]?.count);

describe('a knowledge folder', () => {
  test('is indexed: documents with their pages, and nothing hidden, linked or of another kind', async () => {
    expect(await sourceOf('handbook')).toMatchObject({ state: 'ready', files: 3, failedCount: 1, failed: [{ path: 'bomb.docx' }], trusted: false });
    expect((await search('when do requests for leave reach the office', { limit: 1 }))[0]).toMatchObject({
      path: 'leave.pdf',
      part: 2,
      label: 'Page 2',
      trusted: false,
    });
    expect((await search('beans Hamburg', { limit: 1 }))[0]).toMatchObject({ path: 'deep/tea.md', label: 'Coffee' });
    expect(await texts('zanzibar')).not.toContain('zanzibar');
    expect(await texts('root:x:0:0')).not.toContain('root:');
    expect(await paths('gate evening', { source: 'handbook' })).toEqual([]);
    expect(await paths('gate evening', { source: 'ours' })).toEqual(['rules.md']);
  });

  test('is read at the page that a citation names', async () => {
    const [hit] = await search('requests for leave office', { limit: 1 });
    const read = await server.client.call('knowledge.read', { fileId: hit?.fileId ?? '', part: hit?.part ?? 1, count: 1 });
    expect(read).toMatchObject({
      agentId: 'default',
      path: 'leave.pdf',
      partCount: 2,
      parts: [{ part: 2, label: 'Page 2', text: expect.stringContaining('two weeks') }],
    });
    await expect(server.client.call('knowledge.read', { fileId: `kf_${'0'.repeat(32)}` })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('is indexed whatever its files are called; those that cannot be read are named', async () => {
    const names = ['U\u0308bersicht.md', 'Was ist neu: das Tor?.md', '50%25 off.md', 'ends with a dot./inner.md'];
    const hidden = 'from\u202eright.md';
    for (const name of [...names, hidden]) put(`names/${name}`, 'The quartermaster counts the barrels.');
    await refresh();
    const found = await paths('quartermaster counts barrels', { source: 'handbook', limit: 20 });
    expect(found.toSorted()).toEqual(names.map((name) => `names/${name}`).toSorted());
    expect((await sourceOf('handbook'))?.failed).toContainEqual({ path: expect.stringContaining('from'), problem: expect.stringMatching(/name/) });
    rmSync(join(folder(), 'names'), { recursive: true });
    await refresh();
    expect(await sourceOf('handbook')).toMatchObject({ files: 3, failedCount: 1 });
  });

  const isRoot = process.getuid?.() === 0;
  test.skipIf(isRoot)(
    `names a folder below it that cannot be read, and keeps its index${isRoot ? ' (skipped: root reads every folder)' : ''}`,
    async () => {
      put('wing/locked/inner/ledger.md', 'The ledger lists the brass keys.');
      put('wing/map.md', 'The map shows the pantry.');
      await refresh();
      for (const mode of [0o000, 0o400]) {
        chmodSync(join(folder(), 'wing/locked'), mode);
        put('wing/map.md', `The map shows the cellar ${mode}.`);
        await refresh();
        expect(await sourceOf('handbook')).toMatchObject({ state: 'ready', failedCount: 2 });
        expect((await sourceOf('handbook'))?.failed).toContainEqual({
          path: 'wing/locked',
          problem: expect.stringContaining('folder cannot be read'),
        });
        expect(await texts('map shows the cellar')).toContain(`cellar ${mode}`);
        expect(await paths('ledger brass keys')).toContain('wing/locked/inner/ledger.md');
      }
      chmodSync(join(folder(), 'wing/locked'), 0o700);
      await refresh();
      expect(await sourceOf('handbook')).toMatchObject({ state: 'ready', files: 5, failedCount: 1 });
      rmSync(join(folder(), 'wing'), { recursive: true });
      await refresh();
      expect(await sourceOf('handbook')).toMatchObject({ files: 3, failedCount: 1 });
    },
  );

  test('that is not there, or has the home of the gateway in it, is not indexed', async () => {
    expect(await sourceOf('nowhere')).toMatchObject({ state: 'unavailable', files: 0, nextCheckAt: expect.any(Number) });
    expect(await sourceOf('home')).toMatchObject({ state: 'unavailable', problem: expect.stringContaining('home folder of the gateway'), files: 0 });
  });

  test('is not a memory: nobody lists, counts or flushes it as one', async () => {
    expect((await server.client.call('memory.browse', {})).total).toBe(0);
    expect((await server.client.call('memory.stats', {})).totalEntries).toBe(0);
    await server.client.call('memory.flush', {});
    expect(await paths('beans Hamburg')).toContain('deep/tea.md');
  });

  test('belongs to its agent: other agents and tokens without it find nothing', async () => {
    expect(await search('beans Hamburg', { agentId: 'other' })).toEqual([]);
    const restricted = await server.as(['rpc'], { agents: ['other'] });
    const [hit] = await search('beans Hamburg', { limit: 1 });
    await expect(restricted.call('knowledge.read', { fileId: hit?.fileId ?? '' })).rejects.toMatchObject({ code: 'not_found' });
    expect((await restricted.call('knowledge.list', {})).sources).toEqual([]);
    await expect(restricted.call('knowledge.refresh', { agentId: 'other' })).rejects.toMatchObject({ code: 'insufficient_scope' });
  });

  test('follows changes: a file that changes, moves or goes, without reading what did not change', async () => {
    put('deep/tea.md', '# Tea\n\nThe samovar is polished on Mondays.\n');
    renameSync(join(folder(), 'leave.pdf'), join(folder(), 'absence.pdf'));
    unlinkSync(join(folder(), 'bomb.docx'));
    await refresh();
    await expect.poll(() => paths('samovar polished')).toContain('deep/tea.md');
    expect(await texts('descaled')).not.toContain('descaled');
    expect(await paths('requests for leave office', { limit: 1 })).toEqual(['absence.pdf']);
    expect(await sourceOf('handbook')).toMatchObject({ files: 2, failedCount: 0 });
    const before = await sql(homeDir(), `SELECT id, indexed_at_ms FROM knowledge_file ORDER BY id`);
    utimesSync(join(folder(), 'absence.pdf'), 1, 1);
    await refresh();
    expect(await sql(homeDir(), `SELECT id, indexed_at_ms FROM knowledge_file ORDER BY id`)).toEqual(before);
  });

  test('is noticed when something is written to it', async () => {
    put('new.md', 'The lantern hangs in the northern tower.');
    await expect.poll(() => paths('lantern northern tower'), { timeout: 30_000 }).toContain('new.md');
    // Below it, in a folder that is made later, and in one that takes the name of another.
    put('deep/well.md', 'The bucket hangs in the well.');
    await expect.poll(() => paths('bucket well'), { timeout: 30_000 }).toContain('deep/well.md');
    mkdirSync(join(folder(), 'later/inner'), { recursive: true });
    put('later/inner/mill.md', 'The millstone turns at noon.');
    await expect.poll(() => paths('millstone noon'), { timeout: 30_000 }).toContain('later/inner/mill.md');
    renameSync(join(folder(), 'later'), join(base, 'away'));
    mkdirSync(join(folder(), 'later/inner'), { recursive: true });
    await expect.poll(() => texts('millstone noon'), { timeout: 30_000 }).not.toContain('millstone');
    put('later/inner/forge.md', 'The anvil rings at dawn.');
    await expect.poll(() => paths('anvil dawn'), { timeout: 30_000 }).toContain('later/inner/forge.md');
    rmSync(join(folder(), 'later'), { recursive: true });
    rmSync(join(folder(), 'deep/well.md'));
    await refresh();
    expect(await sourceOf('handbook')).toMatchObject({ files: 3, unwatched: 0 });
  });

  test('that vanishes keeps its index, and continues when it is back', async () => {
    renameSync(folder(), `${folder()}-away`);
    await refresh();
    expect(await sourceOf('handbook')).toMatchObject({ state: 'unavailable', files: 3 });
    expect(await paths('samovar polished')).toContain('deep/tea.md');
    renameSync(`${folder()}-away`, folder());
    await refresh();
    expect(await sourceOf('handbook')).toMatchObject({ state: 'ready', files: 3 });
  });

  test('without anything in it, as the place of a disk that is not mounted, keeps its index', async () => {
    renameSync(folder(), `${folder()}-away`);
    mkdirSync(folder());
    await refresh();
    expect(await sourceOf('handbook')).toMatchObject({ state: 'unavailable', files: 3, problem: expect.stringContaining('empty') });
    expect(await paths('samovar polished')).toContain('deep/tea.md');
    put('.keep', '');
    await refresh();
    expect(await sourceOf('handbook')).toMatchObject({ state: 'ready', files: 0 });
    rmSync(folder(), { recursive: true });
    renameSync(`${folder()}-away`, folder());
    await refresh();
    expect(await sourceOf('handbook')).toMatchObject({ state: 'ready', files: 3 });
  });
});

describe('an agent', () => {
  async function askTool(args: object) {
    server.provider.queue({ toolCalls: [{ id: 'k1', name: 'knowledge_search', arguments: JSON.stringify(args) }] }, { text: 'Done.' });
    await server.client.call('agent.execute', { message: 'Look it up', sessionKey: `ada:${JSON.stringify(args).length}` });
    return JSON.stringify(server.provider.requests.at(-1)?.body);
  }

  test('gets passages with citations, fenced where the source is not trusted', async () => {
    const outside = await askTool({ query: 'samovar polished', source: 'handbook' });
    expect(outside).toMatch(/\[deep\/tea\.md, Tea\]\(knowledge:kf_[0-9a-f]{32}\/1\)/);
    const ours = await askTool({ query: 'gate evening', source: 'ours' });
    expect(ours).toMatch(/\[rules\.md, Gate\]\(knowledge:kf_[0-9a-f]{32}\/1\)/);
    const [file] = /kf_[0-9a-f]{32}/.exec(ours) ?? [];
    expect(await askTool({ file })).toContain('closes at nine in the evening');
  });

  test('that was deleted, and a source that was taken away, leave no rows', async () => {
    const config = (await server.client.call('agents.get', { agentId: 'default' })) as { config: { knowledge: { sources: { name: string }[] } } };
    const sources = config.config.knowledge.sources.filter(({ name }) => name === 'ours');
    await server.client.call('agents.update', { agentId: 'default', config: { knowledge: { sources } } });
    await expect.poll(() => rows('knowledge_file'), { timeout: 30_000 }).toBe(1);
    expect(await texts('samovar polished')).not.toContain('samovar');
    await server.client.call('agents.update', { agentId: 'default', config: { knowledge: { sources: [] } } });
    await expect.poll(() => rows('knowledge_file'), { timeout: 30_000 }).toBe(0);
    for (const table of ['knowledge_passage', 'memory', 'memory_vector', 'memory_sign']) expect([table, await rows(table)]).toEqual([table, 0]);
  });
});

describe('a knowledge site', () => {
  test('is read below its path, follows changes, and goes with its agent', async () => {
    let isShort = false;
    let isBroken = false;
    const link = (path: string) => `<a href="${path}">${path}</a>`;
    const page = (title: string, body: string) => `<!doctype html><title>${title}</title><article><h1>${title}</h1><p>${body}</p></article>`;
    await using pages = await servePages({
      '/manual/': (_request, response) =>
        void response
          .writeHead(200, { 'content-type': 'text/html' })
          .end(
            page('Manual', isShort ? 'Only this page is left.' : `Read ${link('/manual/valves')}, ${link('/prices')} and ${link('/manual/moved')}.`),
          ),
      '/manual/valves': (_request, response) =>
        void (isBroken
          ? response.writeHead(500).end()
          : response
              .writeHead(200, { 'content-type': 'text/html' })
              .end(page('Valves', `The third valve is opened clockwise; its ${link('/manual/seals')} are of cork.`))),
      '/manual/seals': page('Seals', 'The cork is renewed in May.'),
      '/manual/moved': (_request, response) => void response.writeHead(302, { location: '/prices' }).end(),
      '/prices': page('Prices', 'The third valve costs eleven euros.'),
    });
    await using own = await startTestServer({
      egress: pages.dial,
      config: { agents: { reader: { knowledge: { sources: [{ name: 'manual', site: pages.url('/manual/') }] } } } },
    });
    const state = async () => (await own.client.call('knowledge.list', {})).sources[0];
    const compare = async (files: number) => {
      await own.client.call('knowledge.refresh', { agentId: 'reader' });
      await expect.poll(async () => (await state())?.files, { timeout: 30_000 }).toBe(files);
    };
    await compare(3);
    // The page that fails may still lead to the others.
    isBroken = true;
    const checkedAt = (await state())?.checkedAt;
    await own.client.call('knowledge.refresh', { agentId: 'reader' });
    await expect.poll(async () => (await state())?.checkedAt, { timeout: 30_000 }).not.toBe(checkedAt);
    expect(await state()).toMatchObject({ files: 3 });
    isBroken = false;
    const { passages } = await own.client.call('knowledge.search', { agentId: 'reader', query: 'third valve clockwise' });
    expect(passages[0]).toMatchObject({ path: pages.url('/manual/valves'), text: expect.stringContaining('clockwise'), trusted: false });
    isShort = true;
    await compare(1);
    await own.client.call('agents.delete', { agentId: 'reader' });
    const left = async () => (await sql(own.homeDir, 'SELECT id FROM knowledge_file UNION ALL SELECT memory_id FROM knowledge_passage')).length;
    await expect.poll(left, { timeout: 30_000 }).toBe(0);
  });
});
