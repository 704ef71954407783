import { readFile } from 'node:fs/promises';
import type { BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findingsInBothSchemes } from './lib/axe.ts';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { logInTo, openPage } from './lib/dashboard.ts';
import { type Product, scopedTokens, startProduct, tokenOf } from './lib/product.ts';

/** Conversations, memory and spend in the dashboard. */
describe.skipIf(chromiumPath === undefined)('conversations, memory and spend in the dashboard', () => {
  let product: Product;
  let browser: Browser;

  beforeAll(async () => {
    [product, browser] = await Promise.all([
      startProduct({
        config: {
          gateway: { tokens: scopedTokens },
          agents: { default: { model: 'local/test-model', budgets: { perHourTokens: 1_000_000, perDayUsd: 5 } } },
        },
      }),
      startBrowser(),
    ]);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await product?.[Symbol.asyncDispose]();
  });

  const logIn = (token = product.token, options?: BrowserContextOptions) => logInTo(product, browser, token, options);

  async function say(message: string, sessionKey: string): Promise<string> {
    const { conversationRef } = (await product.call('agent.execute', { message, sessionKey })) as { conversationRef: string };
    return conversationRef;
  }

  const store = async (content: string, part: object = {}) => ((await product.call('memory.store', { content, ...part })) as { id: string }).id;

  describe('a conversation', () => {
    test('is found by a term of any message, opened at that message and forked there', async () => {
      const ref = await say('Describe <b>kingfishers</b> please', 'ada:found');
      for (let at = 0; at < 20; at++) await say(`More of it, part ${at}`, 'ada:found');
      await using session = await logIn();
      const { page, complaints } = session;
      await openPage(page, 'Conversations');
      await page.getByRole('searchbox', { name: 'Search conversations' }).fill('kingfisher');
      const hit = page.getByRole('region', { name: 'Found messages' });
      expect(await hit.locator('mark').first().innerText()).toBe('kingfishers');
      expect(await hit.locator('b').count()).toBe(0);
      await hit.getByRole('link').first().click();
      await page.waitForURL(new RegExp(`/conversations/${ref}/1$`));
      const message = page.getByRole('article', { name: 'Message 1', exact: true });
      await expect.poll(() => message.evaluate((one) => one.closest('li') === document.activeElement)).toBe(true);
      // The newest messages are not on this page.
      expect(await page.getByRole('article', { name: 'Message 42' }).count()).toBe(0);
      await page.getByRole('button', { name: 'Later' }).click();
      await page.getByRole('article', { name: 'Message 42' }).waitFor();
      await page.getByRole('button', { name: 'Fork here, after message 20' }).click();
      const dialog = page.getByRole('dialog');
      expect(await dialog.getByLabel('Last message to include').inputValue()).toBe('20');
      await dialog.getByLabel('Session key').fill('ada:fork-of-found');
      await dialog.getByRole('button', { name: 'Fork with 20 messages' }).click();
      await page.waitForURL(/\/chat\/cv_/);
      expect(page.url()).not.toContain(ref);
      await page.getByRole('article', { name: 'default' }).last().waitFor();
      expect(await product.call('session.history', { sessionKey: 'ada:fork-of-found', limit: 1 })).toMatchObject({ total: 20 });
      expect(complaints).toEqual([]);
    });

    test('is compacted, and its summaries are shown as a tree with keyboard navigation', async () => {
      const ref = await say(`The harvest begins on Tuesday. ${'And more words. '.repeat(60)}`, 'ada:long');
      for (let at = 0; at < 14; at++) await say(`Part ${at}: ${'the harvest continues '.repeat(30)}`, 'ada:long');
      await using session = await logIn();
      const { page, complaints } = session;
      await page.goto(`${product.url}/conversations/${ref}`);
      await page.getByText('The model sees messages 1 to 30 in full.').waitFor();
      expect(await page.getByRole('tree').count()).toBe(0);
      await page.getByRole('button', { name: 'Compact' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Compact' }).click();
      await page.getByText(/^Compacted from/).waitFor();
      const tree = page.getByRole('tree', { name: 'Summaries' });
      const items = tree.getByRole('treeitem');
      await items.first().waitFor();
      expect(await items.first().getAttribute('aria-level')).toBe('1');
      expect(await items.filter({ hasText: 'in view' }).count()).toBeGreaterThan(0);
      // The drawing matches the list.
      expect(await page.locator('.tree-bar').count()).toBe(await items.count());
      await items.first().focus();
      await page.keyboard.press('End');
      expect(await items.last().evaluate((item) => item === document.activeElement)).toBe(true);
      expect(await items.last().getAttribute('aria-selected')).toBe('true');
      await page
        .getByRole('region', { name: 'Selected summary' })
        .getByText(/tokens?, created/)
        .waitFor();
      await page.getByRole('link', { name: /^Read messages/ }).click();
      await page.waitForURL(new RegExp(`/conversations/${ref}/\\d+$`));
      await page.locator('.history > .wanted').waitFor();
      expect(complaints).toEqual([]);
    });

    test('is reset, erased and deleted, each after a description of the effects', async () => {
      const ref = await say('Short-lived words', 'ada:short');
      await using session = await logIn();
      const { page, complaints } = session;
      await page.goto(`${product.url}/conversations/${ref}`);
      const dialog = page.getByRole('dialog');
      await page.getByRole('button', { name: 'Reset' }).click();
      await dialog.getByText('no longer sees the earlier messages of Short-lived words').waitFor();
      await dialog.getByRole('button', { name: 'Reset' }).click();
      await page.getByText('2 earlier messages can still be read').waitFor();
      await page.getByText('The model sees nothing of this conversation. Reset after message 2.').waitFor();
      await page.getByRole('button', { name: 'Erase content' }).click();
      const derived = dialog.getByRole('checkbox', { name: /derived from those/ });
      expect(await derived.isDisabled()).toBe(true);
      await dialog.getByRole('checkbox', { name: /Memories from this conversation/ }).check();
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

    test('shows a non-admin token only its own actions and data', async () => {
      const foreign = await say('Words of the owner', 'ada:private');
      await using session = await logIn(tokenOf('rpc'));
      const { page } = session;
      await page.getByRole('textbox', { name: 'Message' }).fill('My own words');
      await page.getByRole('button', { name: 'Send' }).click();
      await page.waitForURL(/\/chat\/cv_/);
      await page.getByRole('link', { name: 'Details' }).click();
      await page.getByRole('button', { name: 'Reset' }).waitFor();
      expect(await page.getByRole('button', { name: /Delete|Erase/ }).count()).toBe(0);
      await openPage(page, 'Conversations');
      await page.getByRole('searchbox', { name: 'Search conversations' }).fill('words');
      await page.getByText('1 message', { exact: true }).waitFor();
      expect(await page.getByRole('button', { name: /^Delete/ }).count()).toBe(0);
      await openPage(page, 'Memory');
      await page.getByRole('searchbox', { name: 'Search memories' }).waitFor();
      expect(await page.getByRole('button', { name: /^(Store|Flush|Export|Maintenance)$/ }).count()).toBe(0);
      await openPage(page, 'Spend');
      await page.getByText('Model costs of your conversations.').waitFor();
      await page.goto(`${product.url}/conversations/${foreign}`);
      await page.getByRole('alert').waitFor();
      expect(await page.getByText('Words of the owner').count()).toBe(0);
    });
  });

  describe('memory', () => {
    test('is stored, searched with explanations, inspected, filtered, exported and deleted', async () => {
      await store('The heron nests behind the mill', { tags: ['birds'], memoryType: 'episodic' });
      await store('Nothing of the kind', { trustLevel: 'external' });
      await using session = await logIn();
      const { page, complaints } = session;
      await openPage(page, 'Memory');
      await page.getByRole('button', { name: 'Store', exact: true }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Content').fill('The bittern booms at dawn <img src=x onerror="window.taken=1">');
      await dialog.getByLabel('Tags').fill('birds, dawn');
      await dialog.getByRole('button', { name: 'Store' }).click();
      await page.getByText('Stored.', { exact: true }).waitFor();
      await page.getByRole('button', { name: /The bittern booms/ }).waitFor();
      expect(await page.evaluate(() => 'taken' in window)).toBe(false);
      await page.getByRole('searchbox', { name: 'Search memories' }).fill('where does the heron nest');
      const first = page.locator('.memory-row').first();
      await first.getByText('rank 1').waitFor();
      expect(await first.locator('.memory-text').innerText()).toBe('The heron nests behind the mill');
      await first.getByRole('button', { name: 'The heron nests behind the mill' }).click();
      await dialog.getByText('everyone').waitFor();
      await dialog.getByText('operator').first().waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('searchbox', { name: 'Search memories' }).fill('');
      await page.getByLabel('Trust').selectOption('external');
      await expect.poll(() => page.locator('.memory-text').allInnerTexts()).toEqual(['Nothing of the kind']);
      await page.getByLabel('Trust').selectOption('');
      await page.getByRole('button', { name: 'Filter by tag dawn' }).click();
      await expect.poll(() => page.locator('.memory-row').count()).toBe(1);
      await page.getByRole('button', { name: 'Remove filter: tag dawn' }).click();
      await expect.poll(() => page.locator('.memory-row').count()).toBe(3);
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export' }).click()]);
      const kept = JSON.parse(await readFile(await download.path(), 'utf8')) as { entries: { content: string }[] };
      expect(kept.entries.map(({ content }) => content)).toContain('The heron nests behind the mill');
      await page.getByRole('checkbox', { name: /Select: Nothing of the kind/ }).check();
      await page.getByRole('button', { name: 'Delete selected' }).click();
      await dialog.getByRole('button', { name: 'Delete' }).click();
      await page.getByText('Deleted 1 memory.').waitFor();
      await expect.poll(() => page.locator('.memory-row').count()).toBe(2);
      expect(complaints).toEqual([]);
    });

    test('shows the lifecycle plan before applying it, and requires the agent id to flush', async () => {
      const expiresAt = Date.now() + 2_000;
      await store('Soon over', { expiresAt });
      await store('To be flushed');
      await using session = await logIn();
      const { page, complaints } = session;
      await openPage(page, 'Memory');
      await page.getByRole('button', { name: 'Maintenance' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('button', { name: 'Review now' }).click();
      await page.getByText(/^Reviewed \d+ conversations? of default/).waitFor();
      await expect.poll(() => Date.now()).toBeGreaterThan(expiresAt);
      await page.getByRole('button', { name: 'Maintenance' }).click();
      await dialog.getByRole('button', { name: 'Show plan' }).click();
      await dialog.getByText(/1 to evict/).waitFor();
      await dialog.getByRole('cell', { name: 'expired' }).waitFor();
      await dialog.getByRole('button', { name: 'Apply' }).click();
      await page.getByText(/^Swept: .* 1 evicted/).waitFor();
      await page.getByRole('button', { name: 'Flush', exact: true }).click();
      const confirm = dialog.getByRole('button', { name: 'Flush' });
      await dialog.getByLabel('Type default to confirm').fill('defaul');
      expect(await confirm.isDisabled()).toBe(true);
      await dialog.getByLabel('Type default to confirm').fill('default');
      await confirm.click();
      await page.getByText(/^Flushed: /).waitFor();
      await page.getByText('No memories yet').waitFor();
      expect(complaints).toEqual([]);
    });
  });

  describe('spend', () => {
    test('is shown by day, agent, model and conversation, and next to the budgets', async () => {
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
      await page.getByRole('region', { name: 'By operation', exact: true }).getByRole('row', { name: /turns/ }).waitFor();
      const meters = page.getByRole('meter');
      await expect.poll(() => meters.count()).toBe(2);
      expect(await meters.first().getAttribute('aria-valuetext')).toMatch(/^[\d.]+K? tokens of 1M tokens used/);
      expect(await meters.last().getAttribute('aria-valuetext')).toMatch(/^\$0\.\d\d of \$5\.00 used/);
      await page.getByRole('button', { name: '24 h' }).click();
      await expect.poll(() => byDay.getByRole('rowheader').count()).toBe(2);
      await page.locator('.chip').getByText('Tokens', { exact: true }).click();
      await byDay.getByText('Tokens by day').waitFor();
      await page.locator(`a[href="/conversations/${ref}"]`).click();
      await page.getByRole('heading', { level: 1, name: 'Spend something' }).waitFor();
      expect(complaints).toEqual([]);
    });

    test('of a turn is shown next to its answer with the cached share, also after a reload', async () => {
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

    test('beyond a budget is refused with a clear message', async () => {
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

  test('has no serious axe findings inside a conversation and in the dialogs, light and dark', async () => {
    const ref = await say(`A long beginning ${'with many words '.repeat(80)}`, 'ada:axe');
    for (let at = 0; at < 10; at++) await say(`Part ${at} ${'with many words '.repeat(30)}`, 'ada:axe');
    await product.call('session.compact', { conversationRef: ref });
    await store('The owl sees at night', { tags: ['birds'] });
    await using session = await logIn(product.token, { bypassCSP: true, reducedMotion: 'reduce' });
    const { page } = session;
    await page.goto(`${product.url}/conversations/${ref}/3`);
    await page.locator('.history > .wanted').waitFor();
    expect(await findingsInBothSchemes(page)).toEqual([]);
    await page.getByRole('button', { name: 'Erase content' }).click();
    expect(await findingsInBothSchemes(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await openPage(page, 'Conversations');
    await page.getByRole('searchbox', { name: 'Search conversations' }).fill('words');
    await page.locator('mark').first().waitFor();
    expect(await findingsInBothSchemes(page)).toEqual([]);
    await openPage(page, 'Memory');
    await page.getByRole('searchbox', { name: 'Search memories' }).fill('owl');
    await page.locator('.reasons').first().waitFor();
    await page.locator('.memory-row input').first().check();
    expect(await findingsInBothSchemes(page)).toEqual([]);
    await page.locator('.memory-text').first().click();
    await page.getByRole('dialog').getByText('Owner', { exact: true }).waitFor();
    expect(await findingsInBothSchemes(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await openPage(page, 'Spend');
    await page.getByRole('meter').first().waitFor();
    await page.getByText('As a table').click();
    expect(await findingsInBothSchemes(page)).toEqual([]);
  });
});
