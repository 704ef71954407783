import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FakeMedia, silentWav, startFakeMedia } from '@gatehouse/testkit/fake-media';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findingsInBothSchemes } from './lib/axe.ts';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { logInTo, openPage } from './lib/dashboard.ts';
import { type Product, scopedTokens, startProduct, tokenOf } from './lib/product.ts';

/** Images, sound and documents in the dashboard. */
describe.skipIf(chromiumPath === undefined)('files in the dashboard', () => {
  let product: Product;
  let browser: Browser;
  let media: FakeMedia;
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-handbook-'));

  beforeAll(async () => {
    writeFileSync(join(folder, 'leave.md'), '# Leave\n\nLeave is requested two weeks ahead.\n\n# Tea\n\nThe kettle is descaled on Fridays.\n');
    media = await startFakeMedia();
    const compatible = { type: 'openai-compatible', baseUrl: `${media.url}/v1` };
    [product, browser] = await Promise.all([
      startProduct({
        config: {
          gateway: { tokens: scopedTokens },
          agents: {
            default: { model: 'local/test-model', tools: { allow: ['image_generate'] }, knowledge: { sources: [{ name: 'handbook', folder }] } },
          },
          approvals: { rules: [{ tools: ['image_generate'], action: 'auto' }] },
          imageGen: { providers: [{ ...compatible, model: 'painter', pricePerImage: 0.02 }] },
          tts: { providers: [{ ...compatible, model: 'speaker', pricePerMillionCharacters: 1 }] },
        },
      }),
      startBrowser(['--autoplay-policy=no-user-gesture-required']),
    ]);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await product?.[Symbol.asyncDispose]();
    await media?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  async function ask(page: Page, text: string): Promise<void> {
    await page.getByRole('textbox', { name: 'Message' }).fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
  }

  /** Whether the element has loaded what it shows. */
  const isDrawn = (page: Page, name: string) =>
    page.getByRole('img', { name }).evaluate((image: HTMLImageElement) => image.complete && image.naturalWidth > 0);

  async function upload(name: string, type: string, bytes: Uint8Array<ArrayBuffer>): Promise<string> {
    const response = await fetch(`${product.url}/media?fileName=${encodeURIComponent(name)}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${product.token}`, 'content-type': type },
      body: bytes,
    });
    return ((await response.json()) as { mediaId: string }).mediaId;
  }

  test('a generated image is shown in the chat, after a reload and in the conversation, and an answer is read aloud', async () => {
    await using session = await logInTo(product, browser, product.token);
    const { page, complaints } = session;
    product.provider.queue(
      { toolCalls: [{ id: 'c1', name: 'image_generate', arguments: JSON.stringify({ prompt: 'A lighthouse' }) }] },
      { text: 'Here is the lighthouse.' },
    );
    await ask(page, 'Draw a lighthouse');
    const made = page.getByRole('list', { name: 'Files made by the agent' });
    await made.getByRole('img').waitFor();
    const name = (await made.getByRole('img').getAttribute('alt')) ?? '';
    expect(name).toMatch(/^img-.+\.png$/);
    await expect.poll(() => isDrawn(page, name)).toBe(true);
    await page.waitForURL(/\/chat\/cv_/);
    const ref = /cv_.+$/.exec(page.url())?.[0] ?? '';
    await page.reload();
    await expect.poll(() => isDrawn(page, name)).toBe(true);
    await page.getByRole('button', { name: 'Read aloud' }).click();
    const player = page.getByLabel('Answer read aloud');
    await player.waitFor();
    expect(await player.evaluate((audio: HTMLAudioElement) => audio.src)).toMatch(/^blob:/);
    expect(media.requests.at(-1)?.json).toMatchObject({ input: 'Here is the lighthouse.' });
    await page.goto(`${product.url}/conversations/${ref}`);
    await expect.poll(() => isDrawn(page, name)).toBe(true);
    expect(complaints).toEqual([]);
  });

  test('a document is read where it was sent', async () => {
    await using session = await logInTo(product, browser, product.token);
    const { page, complaints } = session;
    await page.locator('input[type=file]').setInputFiles({ name: 'plan.csv', mimeType: 'text/csv', buffer: Buffer.from('crop,week\nbarley,31\n') });
    const uploads = page.getByRole('list', { name: 'Attachments' });
    await uploads.getByText('plan.csv').waitFor();
    await expect.poll(() => uploads.getByText('uploading').count()).toBe(0);
    await ask(page, 'What does the plan say?');
    await page.getByRole('button', { name: 'Show text of plan.csv' }).click();
    const dialog = page.getByRole('dialog', { name: 'plan.csv' });
    await dialog.getByRole('cell', { name: 'barley' }).waitFor();
    expect(complaints).toEqual([]);
    // Last, because what the checker adds is against the policy of the page.
    expect(await findingsInBothSchemes(page)).toEqual([]);
  });

  test('the files are listed, found, played, deleted, and counted by agent', async () => {
    await upload('interview.wav', 'audio/wav', new Uint8Array(silentWav(0.2)));
    for (let index = 0; index < 3; index += 1) await upload(`note-${index}.txt`, 'text/plain', new TextEncoder().encode(`Note ${index}`));
    await using session = await logInTo(product, browser, product.token);
    const { page, complaints } = session;
    await openPage(page, 'Files');
    const table = page.getByRole('region', { name: 'Files, table' });
    await table.getByRole('button', { name: 'interview.wav', exact: true }).waitFor();
    const usage = page.getByRole('region', { name: 'Use by agent', exact: true });
    await usage.getByRole('cell', { name: 'Images generated' }).waitFor();
    await usage.getByRole('cell', { name: 'Speech' }).waitFor();
    await page.getByRole('searchbox', { name: 'Search files' }).fill('NOTE-');
    await page.getByRole('status').getByText('3 files').waitFor();
    expect(await table.getByRole('rowheader').allInnerTexts()).toEqual(['note-2.txt', 'note-1.txt', 'note-0.txt']);
    await page.getByRole('button', { name: 'Delete note-1.txt' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete file' }).click();
    await page.getByRole('status').getByText('2 files').waitFor();
    await page.getByRole('searchbox', { name: 'Search files' }).fill('audio/');
    await table.getByRole('button', { name: 'interview.wav', exact: true }).click();
    const player = page.getByRole('dialog').locator('audio');
    await player.waitFor();
    await expect.poll(() => player.evaluate((audio: HTMLAudioElement) => audio.duration)).toBeGreaterThan(0.1);
    await page.keyboard.press('Escape');
    expect(complaints).toEqual([]);
    expect(await findingsInBothSchemes(page)).toEqual([]);
  });

  test('knowledge is listed and searched, and a citation of an answer opens its page', async () => {
    await using session = await logInTo(product, browser, product.token);
    const { page, complaints } = session;
    await openPage(page, 'Knowledge');
    const source = page.getByRole('article', { name: 'handbook of default' });
    await source.getByRole('button', { name: 'Compare now: handbook of default' }).click();
    await source.getByText('1 file,').waitFor();
    await page.getByRole('searchbox', { name: 'Search knowledge' }).fill('kettle descaled');
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    const found = page.getByRole('list', { name: 'Passages' }).getByRole('link', { name: 'leave.md, Tea' });
    await found.waitFor();
    const address = (await found.getAttribute('href')) ?? '';
    expect(address).toMatch(/^\/knowledge\/kf_[0-9a-f]{32}\/2$/);
    expect(complaints).toEqual([]);
    const cited = address.replace('/knowledge/', 'knowledge:');
    product.provider.queue({ text: `On Fridays ([leave.md, Tea](${cited})), not [there](knowledge:settings/1).` });
    await page.goto(product.url);
    await ask(page, 'When is the kettle descaled?');
    await page.getByRole('link', { name: 'leave.md, Tea' }).click();
    await page.getByRole('region', { name: 'Tea' }).getByText('descaled on Fridays').waitFor();
    expect(new URL(page.url()).pathname).toBe(address);
    expect(complaints).toEqual([]);
    await page.goto(`${product.url}/knowledge`);
    await source.waitFor();
    expect(await findingsInBothSchemes(page)).toEqual([]);
  });

  test('a token without the scope admin sees its own files, and none of others', async () => {
    await upload('of-the-admin.txt', 'text/plain', new TextEncoder().encode('mine'));
    await using session = await logInTo(product, browser, tokenOf('rpc'));
    const { page, complaints } = session;
    await openPage(page, 'Files');
    await page.getByText('No files yet').waitFor();
    expect(complaints).toEqual([]);
  });
});
