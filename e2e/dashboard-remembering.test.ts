import { readFile } from 'node:fs/promises';
import type { BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { seriousFindings } from './lib/axe.ts';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { logInTo, openPage } from './lib/dashboard.ts';
import { type Product, scopedTokens, startProduct, tokenOf } from './lib/product.ts';

/** The pages on what was said, what is remembered and what it cost. */
describe.skipIf(chromiumPath === undefined)('conversations, memory and spend in the dashboard', () => {
  let product: Product;
  let browser: Browser;

  beforeAll(async () => {
    product = await startProduct({
      config: {
        gateway: { tokens: scopedTokens },
        agents: { default: { model: 'local/test-model', budgets: { perHourTokens: 1_000_000, perDayUsd: 5 } } },
      },
    });
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await product?.[Symbol.asyncDispose]();
  });

  const logIn = (options?: BrowserContextOptions, token = product.token) => logInTo(product, browser, token, options);

  async function say(message: string, sessionKey: string): Promise<string> {
    const { conversationRef } = (await product.call('agent.execute', { message, sessionKey })) as { conversationRef: string };
    return conversationRef;
  }

  const store = async (content: string, part: object = {}) => ((await product.call('memory.store', { content, ...part })) as { id: string }).id;

  describe('a conversation', () => {
    test('is found by a word of any message, opened at its place and forked there', async () => {
      const ref = await say('Tell me of <b>kingfishers</b> please', 'ada:found');
      for (let at = 0; at < 20; at++) await say(`More of it, part ${at}`, 'ada:found');
      await using session = await logIn();
      const { page, complaints } = session;
      await openPage(page, 'Conversations');
      await page.getByRole('searchbox', { name: 'Search the conversations' }).fill('kingfisher');
      const hit = page.getByRole('region', { name: 'Found messages' });
      expect(await hit.locator('mark').first().innerText()).toBe('kingfishers');
      expect(await hit.locator('b').count()).toBe(0);
      await hit.getByRole('link').first().click();
      await page.waitForURL(new RegExp(`/conversations/${ref}/1$`));
      const message = page.getByRole('article', { name: 'Message 1', exact: true });
      await expect.poll(() => message.evaluate((one) => one.closest('li') === document.activeElement)).toBe(true);
      // The newest are not on this page.
      expect(await page.getByRole('article', { name: 'Message 42' }).count()).toBe(0);
      await page.getByRole('button', { name: 'Later' }).click();
      await page.getByRole('article', { name: 'Message 42' }).waitFor();
      await page.getByRole('button', { name: 'Fork here, after message 20' }).click();
      const dialog = page.getByRole('dialog');
      expect(await dialog.getByLabel('Last message taken over').inputValue()).toBe('20');
      await dialog.getByLabel('Session key').fill('ada:fork-of-found');
      await dialog.getByRole('button', { name: 'Fork with 20 messages' }).click();
      await page.waitForURL(/\/chat\/cv_/);
      expect(page.url()).not.toContain(ref);
      await page.getByRole('article', { name: 'default' }).last().waitFor();
      expect(await product.call('session.history', { sessionKey: 'ada:fork-of-found', limit: 1 })).toMatchObject({ total: 20 });
      expect(complaints).toEqual([]);
    });

    test('is compacted, and its summaries are drawn as a tree that the keyboard walks', async () => {
      const ref = await say(`The harvest begins on Tuesday. ${'And more words. '.repeat(60)}`, 'ada:long');
      for (let at = 0; at < 14; at++) await say(`Part ${at}: ${'the harvest goes on '.repeat(30)}`, 'ada:long');
      await using session = await logIn();
      const { page, complaints } = session;
      await page.goto(`${product.url}/conversations/${ref}`);
      await page.getByText('The model sees the messages 1 to 30 as they are.').waitFor();
      expect(await page.getByRole('tree').count()).toBe(0);
      await page.getByRole('button', { name: 'Compact' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Compact' }).click();
      await page.getByText(/^Compacted: what the model reads went from/).waitFor();
      const tree = page.getByRole('tree', { name: 'Summaries' });
      const items = tree.getByRole('treeitem');
      await items.first().waitFor();
      expect(await items.first().getAttribute('aria-level')).toBe('1');
      expect(await items.filter({ hasText: 'in view' }).count()).toBeGreaterThan(0);
      // What is drawn is what is listed.
      expect(await page.locator('.tree-bar').count()).toBe(await items.count());
      await items.first().focus();
      await page.keyboard.press('End');
      expect(await items.last().evaluate((item) => item === document.activeElement)).toBe(true);
      expect(await items.last().getAttribute('aria-selected')).toBe('true');
      await page
        .getByRole('region', { name: 'The chosen summary' })
        .getByText(/tokens?, made/)
        .waitFor();
      await page.getByRole('link', { name: /^Read the messages/ }).click();
      await page.waitForURL(new RegExp(`/conversations/${ref}/\\d+$`));
      await page.locator('.history > .wanted').waitFor();
      expect(complaints).toEqual([]);
    });

    test('is reset, erased and deleted, each after it was said what goes', async () => {
      const ref = await say('Short-lived words', 'ada:short');
      await using session = await logIn();
      const { page, complaints } = session;
      await page.goto(`${product.url}/conversations/${ref}`);
      const dialog = page.getByRole('dialog');
      await page.getByRole('button', { name: 'Reset' }).click();
      await dialog.getByText('no longer sees what was said in Short-lived words').waitFor();
      await dialog.getByRole('button', { name: 'Reset' }).click();
      await page.getByText('2 earlier messages can still be read').waitFor();
      await page.getByText('The model sees nothing of this conversation. It was reset after message 2.').waitFor();
      await page.getByRole('button', { name: 'Erase the content' }).click();
      const derived = dialog.getByRole('checkbox', { name: /derived from those/ });
      expect(await derived.isDisabled()).toBe(true);
      await dialog.getByRole('checkbox', { name: /Memories that come from it/ }).check();
      await derived.check();
      await dialog.getByRole('button', { name: 'Erase' }).click();
      await page.getByText('Erased: 2 messages, 0 summaries, 0 memories, 0 derived memories.').waitFor();
      await page.getByText('No messages').waitFor();
      expect(await page.getByRole('button', { name: 'Fork' }).count()).toBe(0);
      await page.getByRole('button', { name: 'Delete', exact: true }).click();
      await dialog.getByText('An archived copy stays').waitFor();
      await dialog.getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('heading', { level: 1, name: 'Conversations' }).waitFor();
      expect(await page.evaluate(() => document.activeElement?.closest('main') !== null)).toBe(true);
      expect(complaints).toEqual([]);
    });

    test('offers to a token for programs only what it may do, and tells nothing of others', async () => {
      const foreign = await say('Words of the owner', 'ada:private');
      await using session = await logIn({}, tokenOf('rpc'));
      const { page } = session;
      await page.getByRole('textbox', { name: 'Message' }).fill('My own words');
      await page.getByRole('button', { name: 'Send' }).click();
      await page.waitForURL(/\/chat\/cv_/);
      await page.getByRole('link', { name: 'Details' }).click();
      await page.getByRole('button', { name: 'Reset' }).waitFor();
      expect(await page.getByRole('button', { name: /Delete|Erase/ }).count()).toBe(0);
      await openPage(page, 'Conversations');
      await page.getByRole('searchbox', { name: 'Search the conversations' }).fill('words');
      await page.getByText('1 message', { exact: true }).waitFor();
      expect(await page.getByRole('button', { name: /^Delete/ }).count()).toBe(0);
      await openPage(page, 'Memory');
      await page.getByRole('searchbox', { name: 'Search the memories' }).waitFor();
      expect(await page.getByRole('button', { name: /^(Store|Flush|Export|Upkeep)$/ }).count()).toBe(0);
      await openPage(page, 'Spend');
      await page.getByText('What models cost in your conversations.').waitFor();
      await page.goto(`${product.url}/conversations/${foreign}`);
      await page.getByRole('alert').waitFor();
      expect(await page.getByText('Words of the owner').count()).toBe(0);
    });
  });

  describe('memory', () => {
    test('is stored, searched with the reasons, looked into, filtered, exported and deleted', async () => {
      await store('The heron nests behind the mill', { tags: ['birds'], memoryType: 'episodic' });
      await store('Nothing of the kind', { trustLevel: 'external' });
      await using session = await logIn();
      const { page, complaints } = session;
      await openPage(page, 'Memory');
      await page.getByRole('button', { name: 'Store', exact: true }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Content').fill('The bittern booms at dawn <img src=x onerror="window.taken=1">');
      await dialog.getByLabel('Tags').fill('birds, dawn');
      await dialog.getByRole('button', { name: 'Store it' }).click();
      await page.getByText('Stored.', { exact: true }).waitFor();
      await page.getByRole('button', { name: /The bittern booms/ }).waitFor();
      expect(await page.evaluate(() => 'taken' in window)).toBe(false);
      await page.getByRole('searchbox', { name: 'Search the memories' }).fill('where does the heron nest');
      const first = page.locator('.memory-row').first();
      await first.getByText('place 1').waitFor();
      expect(await first.locator('.memory-text').innerText()).toBe('The heron nests behind the mill');
      await first.getByRole('button', { name: 'The heron nests behind the mill' }).click();
      await dialog.getByText('everybody').waitFor();
      await dialog.getByText('operator').first().waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('searchbox', { name: 'Search the memories' }).fill('');
      await page.getByLabel('Trust').selectOption('external');
      await expect.poll(() => page.locator('.memory-text').allInnerTexts()).toEqual(['Nothing of the kind']);
      await page.getByLabel('Trust').selectOption('');
      await page.getByRole('button', { name: 'Only with the tag dawn' }).click();
      await expect.poll(() => page.locator('.memory-row').count()).toBe(1);
      await page.getByRole('button', { name: 'Tag dawn, remove the filter' }).click();
      await expect.poll(() => page.locator('.memory-row').count()).toBe(3);
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export' }).click()]);
      const kept = JSON.parse(await readFile(await download.path(), 'utf8')) as { entries: { content: string }[] };
      expect(kept.entries.map(({ content }) => content)).toContain('The heron nests behind the mill');
      await page.getByRole('checkbox', { name: /Choose: Nothing of the kind/ }).check();
      await page.getByRole('button', { name: 'Delete the chosen' }).click();
      await dialog.getByRole('button', { name: 'Delete' }).click();
      await page.getByText('Deleted 1 memory.').waitFor();
      await expect.poll(() => page.locator('.memory-row').count()).toBe(2);
      expect(complaints).toEqual([]);
    });

    test('shows the plan of its lifecycle before it sweeps, and is flushed only by name', async () => {
      const expiresAt = Date.now() + 400;
      await store('Soon over', { expiresAt });
      await store('To be flushed');
      await using session = await logIn();
      const { page, complaints } = session;
      await openPage(page, 'Memory');
      await expect.poll(() => Date.now()).toBeGreaterThan(expiresAt);
      await page.getByRole('button', { name: 'Upkeep' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('button', { name: 'Show the plan' }).click();
      await dialog.getByText(/1 to evict/).waitFor();
      await dialog.getByRole('cell', { name: 'expired' }).waitFor();
      await dialog.getByRole('button', { name: 'Do it' }).click();
      await page.getByText(/^Swept: .* 1 evicted/).waitFor();
      await page.getByRole('button', { name: 'Upkeep' }).click();
      await dialog.getByRole('button', { name: 'Review now' }).click();
      await page.getByText(/^Reviewed \d+ conversations? of default/).waitFor();
      await page.getByRole('button', { name: 'Flush', exact: true }).click();
      const confirm = dialog.getByRole('button', { name: 'Flush' });
      await dialog.getByLabel('Type default to confirm').fill('defaul');
      expect(await confirm.isDisabled()).toBe(true);
      await dialog.getByLabel('Type default to confirm').fill('default');
      await confirm.click();
      await page.getByText(/^Flushed: /).waitFor();
      await page.getByText('Nothing is remembered yet').waitFor();
      expect(complaints).toEqual([]);
    });
  });

  describe('spend', () => {
    test('is drawn by day, told by agent, model and conversation, and held against the budgets', async () => {
      product.provider.queue({ text: 'Dear', usage: { input: 100_000, output: 1000, cacheRead: 50_000 } });
      const ref = await say('Spend something', 'ada:spend');
      await using session = await logIn();
      const { page, complaints } = session;
      await openPage(page, 'Spend');
      const byDay = page.getByRole('region', { name: 'By day', exact: true });
      await byDay.locator('svg rect').first().waitFor();
      await byDay.getByText('As a table').click();
      expect(await byDay.getByRole('rowheader').count()).toBe(7);
      const model = page.getByRole('region', { name: 'By model', exact: true }).getByRole('row', { name: /local\/test-model/ });
      await model.waitFor();
      await page.getByRole('region', { name: 'By kind of work', exact: true }).getByRole('row', { name: /turns/ }).waitFor();
      const meters = page.getByRole('meter');
      await expect.poll(() => meters.count()).toBe(2);
      expect(await meters.first().getAttribute('aria-valuetext')).toMatch(/^[\d.]+K? tokens of 1M tokens used/);
      expect(await meters.last().getAttribute('aria-valuetext')).toMatch(/^\$0\.\d\d of \$5\.00 used/);
      await page.getByRole('button', { name: '24 h' }).click();
      await expect.poll(() => byDay.getByRole('rowheader').count()).toBe(2);
      await page.getByRole('button', { name: 'Tokens', exact: true }).click();
      await byDay.getByText('Tokens by day').waitFor();
      await page.locator(`a[href="/conversations/${ref}"]`).click();
      await page.getByRole('heading', { level: 1, name: 'Spend something' }).waitFor();
      expect(complaints).toEqual([]);
    });

    test('of a turn stands beside its answer, with what came from the cache, also when the page is loaded again', async () => {
      product.provider.queue({ text: 'An answer that costs', usage: { input: 2000, output: 500, cacheRead: 1500 } });
      await using session = await logIn();
      const { page, complaints } = session;
      await page.getByRole('textbox', { name: 'Message' }).fill('What does it cost?');
      await page.getByRole('button', { name: 'Send' }).click();
      const cost = page.getByRole('article', { name: 'default' }).getByText('2,500 tokens · $0.003 · 75 % from the cache');
      await cost.waitFor();
      await page.waitForURL(/\/chat\/cv_/);
      await page.reload();
      await cost.waitFor();
      expect(complaints).toEqual([]);
    });

    test('that a budget does not allow is refused in plain words', async () => {
      await product.call('agents.create', { agentId: 'e2e-poor', config: { model: 'local/test-model', budgets: { perHourTokens: 40 } } });
      await using session = await logIn();
      const { page } = session;
      await page.getByLabel('Agent', { exact: true }).selectOption('e2e-poor');
      await page.getByRole('textbox', { name: 'Message' }).fill('May I?');
      await page.getByRole('button', { name: 'Send' }).click();
      await page.getByRole('alert').waitFor();
      expect(await page.getByRole('alert').innerText()).toMatch(/perHourTokens/);
      await product.call('agents.delete', { agentId: 'e2e-poor' });
    });
  });

  test.each(['light', 'dark'] as const)('axe finds nothing serious inside a conversation and in the dialogs, %s', async (colorScheme) => {
    const ref = await say(`A long beginning ${'with many words '.repeat(80)}`, 'ada:axe');
    for (let at = 0; at < 10; at++) await say(`Part ${at} ${'with many words '.repeat(30)}`, 'ada:axe');
    await product.call('session.compact', { conversationRef: ref });
    await store('The owl sees at night', { tags: ['birds'] });
    const context = await browser.context({ colorScheme, bypassCSP: true, reducedMotion: 'reduce' });
    const page = await context.newPage();
    await page.goto(`${product.url}/#token=${product.token}`);
    await page.getByRole('textbox', { name: 'Message' }).waitFor();
    await page.goto(`${product.url}/conversations/${ref}/3`);
    await page.locator('.history > .wanted').waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole('button', { name: 'Erase the content' }).click();
    expect(await seriousFindings(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await openPage(page, 'Conversations');
    await page.getByRole('searchbox', { name: 'Search the conversations' }).fill('words');
    await page.locator('mark').first().waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await openPage(page, 'Memory');
    await page.getByRole('searchbox', { name: 'Search the memories' }).fill('owl');
    await page.locator('.reasons').first().waitFor();
    await page.locator('.memory-row input').first().check();
    expect(await seriousFindings(page)).toEqual([]);
    await page.locator('.memory-text').first().click();
    await page.getByRole('dialog').getByText('Belongs to').waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await openPage(page, 'Spend');
    await page.getByRole('meter').first().waitFor();
    await page.getByText('As a table').click();
    expect(await seriousFindings(page)).toEqual([]);
    await context.close();
  });
});
