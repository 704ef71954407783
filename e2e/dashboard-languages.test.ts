import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { logInTo, openTab } from './lib/dashboard.ts';
import { layoutProblems } from './lib/layout.ts';
import { type Product, startProduct } from './lib/product.ts';

describe.skipIf(chromiumPath === undefined)('the language of the dashboard', () => {
  let product: Product;
  let browser: Browser;
  beforeAll(async () => {
    [product, browser] = await Promise.all([startProduct(), startBrowser()]);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await product?.[Symbol.asyncDispose]();
  });

  test('is chosen in the navigation, stays after a reload and reaches the agent', async () => {
    await using tab = await logInTo(product, browser, product.token, { bypassCSP: true });
    const { page, complaints } = tab;
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    product.provider.queue({ text: 'Hello.' }, { text: 'Hallo.' });
    await page.getByRole('textbox', { name: 'Message' }).fill('One');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('Hello.').waitFor();
    expect(JSON.stringify(product.provider.requests.at(-1)?.body)).not.toContain('The locale of the user');
    expect(requests.filter((url) => /\/de-\w+\.js/.test(url))).toEqual([]);

    await page.getByRole('combobox', { name: 'Language' }).selectOption('Deutsch');
    await page.getByRole('link', { name: 'Unterhaltungen' }).waitFor();
    await page.reload();
    await page.getByRole('textbox', { name: 'Nachricht' }).fill('Zwei');
    expect(await page.evaluate(() => document.documentElement.lang)).toBe('de');
    await page.getByRole('button', { name: 'Senden' }).click();
    await page.getByText('Hallo.').waitFor();
    expect(JSON.stringify(product.provider.requests.at(-1)?.body)).toContain('The locale of the user is de.');

    await page.getByRole('link', { name: 'Token', exact: true }).click();
    await page.getByRole('heading', { name: 'Token' }).waitFor();
    await page
      .getByText(/^verwendet (gerade eben|vor)/)
      .first()
      .waitFor();
    for (const [width, path] of [360, 1280].flatMap((one) =>
      ['chat', 'spend', 'schedule', 'agents', 'settings', 'system'].map((to) => [one, to] as const),
    )) {
      await page.setViewportSize({ width, height: 900 });
      await page.evaluate((to) => {
        history.pushState(null, '', to);
        dispatchEvent(new PopStateEvent('popstate'));
      }, `/${path}`);
      await page.waitForFunction(
        () => document.querySelector('main h1, main textarea') !== null && document.querySelector('.skeleton, [aria-busy=true]') === null,
      );
      expect([path, width, await layoutProblems(page)]).toEqual([path, width, []]);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.getByRole('combobox', { name: 'Sprache' }).selectOption('English');
    await page.getByRole('link', { name: 'Conversations' }).waitFor();
    expect(complaints).toEqual([]);
  });

  test('is that of the browser before any choice, and English when the dashboard does not speak it', async () => {
    await using german = await openTab(browser, { locale: 'de-CH' });
    await german.page.goto(product.url);
    await german.page.getByLabel('Zugriffstoken').waitFor();
    await using other = await openTab(browser, { locale: 'nl-NL' });
    await other.page.goto(product.url);
    await other.page.getByLabel('Access token').waitFor();
    expect(await other.page.evaluate(() => document.documentElement.lang)).toBe('en');
    expect([...german.complaints, ...other.complaints]).toEqual([]);
  });

  test('falls back to English when its file is gone', async () => {
    await using tab = await openTab(browser, { locale: 'de' });
    await tab.page.route(/\/de-[\w-]+\.js/, (route) => route.abort());
    await tab.page.goto(product.url);
    await tab.page.getByLabel('Access token').waitFor();
    expect(await tab.page.getByLabel('Zugriffstoken').count()).toBe(0);
  });
});
