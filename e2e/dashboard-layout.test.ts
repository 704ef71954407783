import { rm } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { logInTo, showPage, type Tab } from './lib/dashboard.ts';
import { askToWrite, type FilledProduct, startFilledProduct, watching } from './lib/filled-product.ts';
import { layoutProblems } from './lib/layout.ts';

const widths = [360, 600, 900, 1280, 1920];
/** Texts without a space, which wrap only where a style lets them. */
const word = 'Verwaltungsgerichtsbarkeitsangelegenheit'.repeat(2);
const address = `https://example.com/${'a-long-path-without-spaces'.repeat(6)}`;
const agentId = 'a'.repeat(60);

async function addLongTexts({ product }: FilledProduct): Promise<void> {
  await product.call('agents.create', { agentId, config: { name: `${word} again`, model: 'local/test-model' } });
  await product.call('tokens.create', { id: `token-${'x'.repeat(50)}`, scopes: ['rpc', 'api', 'ws'] });
  await product.call('agent.execute', { message: `${address} ${word}`, sessionKey: 'ada:long', agentId });
  await product.call('cron.add', {
    name: word,
    agentId,
    schedule: { kind: 'every', everyMs: 2_700_000 },
    payload: { kind: 'agent_turn', message: address },
  });
  await product.call('memory.store', { content: `${address}${word}`, memoryType: 'semantic', tags: ['t'.repeat(40), 'u'.repeat(40)] });
  await product.call('graph.save', { label: word, nodes: [{ node_id: 'n'.repeat(60), task: address, agent: 'scout' }] });
  await product.call('session.spawn', { task: `${address} ${word} ${watching}`, agent: 'scout' });
}

/** Returns the problems of the shown page at each width. */
async function problemsOf(page: Page, what: string, at: readonly number[] = widths): Promise<string[]> {
  const found: string[] = [];
  for (const width of at) {
    await page.setViewportSize({ width, height: 900 });
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    for (const problem of await layoutProblems(page)) found.push(`${what} at ${width} px: ${problem}`);
  }
  return found;
}

describe.skipIf(chromiumPath === undefined)('pages at five widths, with long words', () => {
  let filled: FilledProduct;
  let browser: Browser;
  let tab: Tab;
  beforeAll(async () => {
    [filled, browser] = await Promise.all([startFilledProduct(), startBrowser()]);
    await addLongTexts(filled);
    askToWrite(filled.product, 'ada:plan');
    tab = await logInTo(filled.product, browser, filled.product.token, { bypassCSP: true });
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await filled?.product[Symbol.asyncDispose]();
    if (filled !== undefined) await rm(filled.folder, { recursive: true });
  });

  test('show each text whole, and nothing over anything else', async () => {
    const { page, complaints } = tab;
    const linked = await page
      .getByRole('navigation', { name: 'Pages' })
      .getByRole('link')
      .evaluateAll((links) => links.map((link) => new URL((link as HTMLAnchorElement).href).pathname));
    const others = [
      '/graphs',
      '/graphs/new',
      '/executions',
      '/schedule',
      '/webhooks',
      '/help',
      '/help/agents',
      '/explorer/session.history',
      ...['scout', agentId].flatMap((id) => ['', '/tools', '/workspace', '/skills'].map((rest) => `/agents/${id}${rest}`)),
      `/graphs/runs/${filled.graphId}`,
      `/conversations/${filled.longRef}`,
      `/chat/${filled.longRef}`,
    ];
    expect(linked.length).toBeGreaterThan(15);
    const found: string[] = [];
    for (const path of [...linked, ...others]) {
      await showPage(page, path);
      found.push(...(await problemsOf(page, path)));
    }
    expect(found).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test.each([
    ['/agents', 'New agent'],
    ['/schedule', 'New job'],
    ['/tokens', 'New token'],
    ['/channels', 'Add a channel'],
  ])('%s, after %s', async (path, button) => {
    const { page } = tab;
    await showPage(page, path);
    await page.locator('main').getByRole('button', { name: button }).first().click();
    await page.getByRole('dialog').waitFor();
    expect(await problemsOf(page, button)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  test.each([
    ['a page that scrolls sideways', 'main { width: 2400px }', /scrolls sideways/],
    ['text that is cut off', 'dt, dd { width: 20px; overflow: hidden; white-space: nowrap }', /cut off at the side/],
    ['text over text', 'dd { margin-left: -60px; }', /overlap/],
  ])('finds %s', async (_, style, problem) => {
    const { page } = tab;
    await showPage(page, '/agents');
    const added = await page.addStyleTag({ content: style });
    expect((await problemsOf(page, '/agents', [1280])).join('\n')).toMatch(problem);
    await added.evaluate((element) => (element as Element).remove());
  });
});
