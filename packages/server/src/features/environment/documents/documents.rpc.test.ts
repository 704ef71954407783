import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MediaInfo } from '@gatehouse/contract';
import { type FakeProvider, startFakeProvider, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makePdf, makeScannedPdf, makeZip, paragraph, wordOf } from './testing/make-files.ts';

let provider: FakeProvider;
let server: TestServer;
let homeDir: string;
beforeAll(async () => {
  homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-documents-'));
  provider = await startFakeProvider({ deltas: 1 });
  server = await startTestServer({
    homeDir,
    config: {
      providers: {
        fake: {
          type: 'openai-compatible',
          baseUrl: provider.url,
          models: [
            { id: 'one', cost: { input: 1, output: 1 } },
            { id: 'sees', input: ['text', 'image'], cost: { input: 1000, output: 1000 } },
          ],
        },
      },
      agents: { default: { model: 'fake/one', tools: { profile: 'full' } } },
      documents: { maxFileBytes: 400_000, maxCharacters: 60_000, maxScannedPages: 3 },
      media: { vision: { models: ['fake/sees'] } },
    },
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await provider.close();
  rmSync(homeDir, { recursive: true, force: true });
});

async function upload(bytes: Buffer, fileName: string, token = server.token): Promise<string> {
  const response = await fetch(`${server.url}/media?fileName=${fileName}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body: new Uint8Array(bytes),
  });
  expect(response.status).toBe(201);
  return MediaInfo().parse(await response.json()).mediaId;
}
const extract = (attachment_url: string) => server.client.call('media.extract_document', { attachment_url });
const file = (bytes: Buffer | string) => Buffer.from(bytes).toString('base64');

describe('media.extract_document', () => {
  test('returns the text of an upload, by its id and its path, of the type that the bytes show', async () => {
    const id = await upload(wordOf(paragraph('Hello')), 'letter.pdf');
    const expected = {
      text: 'Hello',
      fileName: 'letter.pdf',
      mimeType: expect.stringContaining('wordprocessingml'),
      extractedChars: 5,
      truncated: false,
    };
    expect(await extract(id)).toMatchObject(expected);
    expect(await extract(`/media/${id}`)).toMatchObject(expected);
  });

  test('says when the text is cut', async () => {
    expect(await extract(await upload(Buffer.from('word '.repeat(20_000)), 'long.txt'))).toMatchObject({ truncated: true });
  });

  test('fails for a file of another owner like for an unknown one', async () => {
    const other = await server.as(['rpc']);
    const id = await upload(Buffer.from('secret'), 'secret.txt', other.token);
    const third = await server.as(['rpc']);
    const failure = { code: 'not_found', message: expect.stringContaining('Failed to resolve attachment') };
    await expect(third.call('media.extract_document', { attachment_url: id })).rejects.toMatchObject(failure);
    await expect(third.call('media.extract_document', { attachment_url: 'md_unknown.txt' })).rejects.toMatchObject(failure);
  });

  test('reaches no private address', async () => {
    await expect(extract('http://127.0.0.1:1/x.pdf')).rejects.toMatchObject({ code: expect.stringMatching(/denied|invalid_params/) });
  });
});

describe('media.test.document', () => {
  test('returns the text of base64, and the name it was given', async () => {
    expect(await server.client.call('media.test.document', { file: file('a,b\n1,2\n'), fileName: 'x.csv' })).toMatchObject({
      mimeType: 'text/csv',
      fileName: 'x.csv',
    });
    expect(await server.client.call('media.test.document', { file: file(makePdf(['Text of the page'])) })).toMatchObject({
      text: '## Page 1\n\nText of the page',
      fileName: 'unknown',
      pageCount: 1,
    });
  });

  test.each<[string, Buffer, string, RegExp]>([
    ['encrypted', makeZip([{ name: 'word/document.xml', content: 'x', flags: 1 }]), 'invalid_params', /file: The document is encrypted/],
    ['broken', Buffer.from('%PDF-1.7\n'), 'invalid_params', /file: The document is a broken PDF/],
    ['unsupported', Buffer.from([1, 0]), 'unsupported_media_type', /cannot be extracted/],
    ['too large', Buffer.alloc(400_001, 32), 'payload_too_large', /documents.maxFileBytes/],
  ])('refuses what is %s and says why', async (_what, bytes, code, message) => {
    await expect(server.client.call('media.test.document', { file: file(bytes) })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });
});

/** Processes of this one that read documents. */
const readers = () =>
  readdirSync('/proc').filter((pid) => {
    try {
      const parent = Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]);
      return parent === process.pid && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('document-process');
    } catch {
      return false;
    }
  });

test.skipIf(process.platform !== 'linux')('a document is read no further when the gateway stops', async () => {
  const own = await startTestServer();
  const long = file(makeZip([{ name: 'word/document.xml', content: `<w:p>${'<w:r><w:t>word</w:t></w:r>'.repeat(400_000)}` }]));
  const reading = own.client.call('media.test.document', { file: long }).then(() => 'read to its end', String);
  await expect.poll(readers, { interval: 5 }).toHaveLength(1);
  await own[Symbol.asyncDispose]();
  expect(readers()).toEqual([]);
  expect(await reading).not.toBe('read to its end');
});

describe('a scanned document', () => {
  const visionCalls = async () => {
    const { rows } = await server.client.call('usage.report', { groupBy: ['operation'] });
    return rows.find(({ keys }) => keys[0] === 'vision');
  };

  test('is read page by page by the model that sees, once, and booked', async () => {
    const id = await upload(makeScannedPdf(5, { width: 200, height: 300 }), 'scan.pdf');
    for (const page of [1, 2, 3]) provider.queue({ text: `Text of page ${page}`, usage: { input: 100, output: 10 } });
    const { text, notes, pageCount } = await extract(id);
    expect(pageCount).toBe(5);
    for (const page of [1, 2, 3]) expect(text).toContain(`## Page ${page}\n\nText of page ${page}`);
    expect(notes).toContain('Read from pictures by a model: pages 1, 2, 3.');
    expect(notes?.some((note) => note.includes('probably scanned'))).toBe(true);
    const asked = provider.requests.at(-1)?.body;
    expect(asked).toMatchObject({ model: 'sees' });
    expect(JSON.stringify(asked)).toContain('data:image/png;base64,');
    expect(await visionCalls()).toMatchObject({ calls: 3, inputTokens: 300 });
    expect((await extract(id)).text).toBe(text);
    expect(await visionCalls()).toMatchObject({ calls: 3 });
  });

  test('keeps what was read when a page fails, and reads only the rest the next time', async () => {
    const id = await upload(makeScannedPdf(2, { width: 210, height: 300 }), 'half.pdf');
    provider.queue({ text: 'First page' }, { status: 400, error: { message: 'not this picture' } });
    const half = await extract(id);
    expect(half.text).toContain('First page');
    expect(half.notes?.join(' ')).toMatch(/Further scanned pages were not read: .*not this picture/);
    provider.queue({ text: 'Second page' });
    expect((await extract(id)).text).toMatch(/First page[^]*Second page/);
  });

  test('costs a suspended agent nothing', async () => {
    const id = await upload(makeScannedPdf(1, { width: 230, height: 300 }), 'suspended.pdf');
    const asked = provider.requests.length;
    await server.client.call('agents.suspend', { agentId: 'default' });
    try {
      const { notes } = await extract(id);
      expect(notes?.some((note) => note.includes('probably scanned'))).toBe(true);
    } finally {
      await server.client.call('agents.resume', { agentId: 'default' });
    }
    expect(provider.requests).toHaveLength(asked);
  });

  test('an image is read as one', async () => {
    const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
    provider.queue({ text: 'A receipt over 12 euros.' });
    expect(await extract(await upload(png, 'receipt.png'))).toMatchObject({ mimeType: 'image/png', text: expect.stringContaining('12 euros') });
  });
});

describe('read_document', () => {
  async function run(args: Record<string, unknown>): Promise<string> {
    provider.queue({ toolCalls: [{ id: 'call_1', name: 'read_document', arguments: JSON.stringify(args) }] }, { text: 'Done' });
    await server.client.call('agent.execute', { message: 'Read it' });
    const body = provider.requests.at(-1)?.body as { messages: { role: string; content: string }[] } | undefined;
    return body?.messages.findLast(({ role }) => role === 'tool')?.content ?? '';
  }

  test('shows an upload as text from outside', async () => {
    const shown = await run({ media_id: await upload(makePdf(['Text of the page']), 'paper.pdf') });
    expect(shown).toMatch(
      /^<<<UNTRUSTED-TEXT \w+ source="attachment">>>\nType: application\/pdf; Parts: 1; Pages: 1\n\n## Page 1\n\nText of the page/,
    );
  });

  test('shows a workspace file in parts, finds terms in them, and continues', async () => {
    const workspaceDir = join(homeDir, 'workspaces', 'default');
    mkdirSync(workspaceDir, { recursive: true });
    const pages = Array.from(
      { length: 40 },
      (_, at) => paragraph(`Chapter ${at + 1}`, 'Heading1') + paragraph(`${'filler '.repeat(120)}${at === 30 ? 'walrus' : ''}`),
    );
    writeFileSync(join(workspaceDir, 'book.docx'), wordOf(pages.join('')));
    const outline = await run({ path: 'book.docx' });
    expect(outline).toContain('31. Chapter 31');
    expect(outline).toMatch(/\[continue with part \d+\]/);
    expect(await run({ path: 'book.docx', find: 'Walrus' })).toMatch(/\[part 31, Chapter 31\] … .*walrus/);
    expect(await run({ path: 'book.docx', parts: '31' })).toContain('# Chapter 31');
    expect(await run({ path: 'book.docx', parts: '50' })).toContain('the document has parts 1 to 40');
    expect(await run({ path: '../book.docx' })).toMatch(/not found|No such|invalid/i);
    expect(await run({})).toContain('Expected either path or media_id');
  });
});
