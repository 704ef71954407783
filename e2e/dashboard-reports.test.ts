import { readFile } from 'node:fs/promises';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findingsInBothSchemes } from './lib/axe.ts';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { follow, logInTo } from './lib/dashboard.ts';
import { type Product, startProduct } from './lib/product.ts';

/** Spend, audit and events in the dashboard. */
describe.skipIf(chromiumPath === undefined)('reports in the dashboard', () => {
  let product: Product;
  let browser: Browser;
  beforeAll(async () => {
    [product, browser] = await Promise.all([
      startProduct({
        config: { agents: { default: { model: 'local/test-model' }, helper: { model: 'local/test-model' } } },
      }),
      startBrowser(),
    ]);
    for (const [agentId, input] of [
      ['default', 900],
      ['helper', 5000],
    ] as const) {
      product.provider.queue({ text: 'Done', usage: { input, output: 10 } });
      await product.call('agent.execute', { message: `A walrus for ${agentId}`, agentId, sessionKey: `ada:${agentId}` });
    }
    await product.call('tokens.create', { id: 'audited', scopes: ['rpc'] });
    await product.call('tokens.revoke', { id: 'audited' });
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await product?.[Symbol.asyncDispose]();
  });

  const logIn = (options?: BrowserContextOptions) => logInTo(product, browser, product.token, options);

  async function download(page: Page, button: string): Promise<string> {
    const started = page.waitForEvent('download');
    await page.getByRole('button', { name: button }).click();
    return readFile(await (await started).path(), 'utf8');
  }

  test('spend is sorted by its columns and exported as CSV', async () => {
    await using session = await logIn({ bypassCSP: true });
    const { page, complaints } = session;
    await follow(page, 'Spend');
    const byAgent = page.getByRole('region', { name: 'By agent', exact: true });
    const names = () => byAgent.getByRole('rowheader').allInnerTexts();
    await expect.poll(names).toEqual(['helper', 'default']);
    await byAgent.getByRole('button', { name: 'Agent', exact: true }).click();
    await expect.poll(names).toEqual(['default', 'helper']);
    expect(await byAgent.getByRole('columnheader', { name: 'Agent' }).getAttribute('aria-sort')).toBe('ascending');
    await byAgent.getByRole('button', { name: 'Tokens' }).click();
    await expect.poll(names).toEqual(['helper', 'default']);
    const lines = (await download(page, 'Export by agent as CSV')).split('\r\n');
    expect(lines[0]).toBe('Agent,Cost (USD),Input tokens,Output tokens,Cached input tokens,Saved (USD),Calls,Calls without a price');
    expect(lines.slice(1, 3).map((line) => line.split(',')[0])).toEqual(['helper', 'default']);
    expect(await findingsInBothSchemes(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test('the audit is a table that is sorted, opened and exported', async () => {
    await using session = await logIn({ bypassCSP: true });
    const { page, complaints } = session;
    await follow(page, 'Audit');
    const table = page.getByRole('region', { name: 'Records' });
    const actions = () => table.locator('tbody .link-button').allInnerTexts();
    await expect.poll(async () => (await actions())[0]).toBe('tokens.revoke');
    await table.getByRole('button', { name: 'Action' }).click();
    await expect.poll(async () => (await actions()).at(-1)).toBe('tokens.revoke');
    await table.getByRole('button', { name: 'tokens.revoke' }).click();
    await table.getByText('refs:').waitFor();
    await table.getByRole('link', { name: 'Open trace' }).waitFor();
    const csv = await download(page, 'Export CSV');
    expect(csv.split('\r\n')[0]).toBe('Time,Action,Outcome,Class,Kind,Severity,Actor,Target,Id,Refs');
    expect(csv).toContain(',tokens.revoke,success,security,');
    expect(csv).not.toMatch(/(?:^|,)"?=/m);
    expect(await findingsInBothSchemes(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test('events open with the newest stored ones, and are limited to a kind and a time', async () => {
    await using session = await logIn({ bypassCSP: true });
    const { page, complaints } = session;
    await follow(page, 'Events');
    const kinds = () => page.locator('.feed-kind').allInnerTexts();
    await expect.poll(kinds).toContain('message:sent');
    await page.getByRole('button', { name: 'Only message:sent' }).first().click();
    await expect.poll(async () => new Set(await kinds())).toEqual(new Set(['message:sent']));
    expect(await kinds()).toHaveLength(2);
    await page.getByRole('button', { name: 'Last hour' }).click();
    await expect.poll(async () => (await kinds()).length).toBe(2);
    await page.getByRole('button', { name: 'Between…' }).click();
    await page.getByLabel('Until').fill('2020-01-01T00:00');
    await page.getByText('No events').waitFor();
    await page.getByRole('button', { name: 'Newest' }).click();
    await expect.poll(async () => (await kinds()).length).toBe(2);
    await page.getByRole('button', { name: 'Show all kinds' }).click();
    await expect.poll(kinds).toContain('observability:token_usage');
    expect(await findingsInBothSchemes(page)).toEqual([]);
    const link = page.locator('.feed-row', { hasText: 'message:sent' }).first().getByRole('link', { name: 'Open trace' });
    expect(await link.getAttribute('href')).toMatch(/^\/traces\/[0-9a-f]{32}$/);
    await page.locator('.feed-row', { hasText: 'message:sent' }).first().getByRole('link', { name: 'Open conversation' }).click();
    await page.getByText('A walrus for helper').first().waitFor();
    expect(complaints).toEqual([]);
  });

  test('these pages fit a phone', async () => {
    await using session = await logIn({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, colorScheme: 'dark' });
    const { page, complaints } = session;
    for (const [path, settled] of [
      ['/spend', page.getByRole('region', { name: 'By agent', exact: true })],
      ['/audit', page.getByRole('region', { name: 'Records' })],
      ['/events', page.locator('.feed-row').first()],
    ] as const) {
      await page.goto(product.url + path);
      await settled.waitFor();
      expect([path, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([path, 390]);
      const small = await page.evaluate(() =>
        [...document.querySelectorAll('main :is(button, select, input:not([type=checkbox]))')]
          .filter((one) => one.checkVisibility({ visibilityProperty: true }) && one.getBoundingClientRect().height < 44)
          .map((one) => one.className),
      );
      expect([path, small]).toEqual([path, []]);
    }
    expect(complaints).toEqual([]);
  });
});
