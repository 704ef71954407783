import { readFile } from 'node:fs/promises';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findingsInBothSchemes } from './lib/axe.ts';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { logInTo } from './lib/dashboard.ts';
import { longestTask } from './lib/main-thread.ts';
import { type Product, startProduct } from './lib/product.ts';

const rich = [
  'A formula: $e^{i\\pi} + 1 = 0$, which costs $5 and $6.\n\n$$\n\\int_0^1 x^2 \\, dx = \\frac{1}{3}\n$$\n\n',
  'As shown[^proof].\n\n[^proof]: By *induction*.\n\n',
  '```ts title=answer.ts\nconst answer: number = 42; // because\n```\n\n',
  '```mermaid\nflowchart LR\n  A[Client] --> B[Gateway]\n```\n\n',
  '```mermaid\nflowchart LR\n  A[Client --> \n```\n\nThat is all.',
];

describe.skipIf(chromiumPath === undefined)('the chat of the dashboard', () => {
  let product: Product;
  let browser: Browser;

  beforeAll(async () => {
    [product, browser] = await Promise.all([startProduct({ provider: { paceMs: 5 } }), startBrowser()]);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await product?.[Symbol.asyncDispose]();
  });

  const logIn = (options?: BrowserContextOptions) => logInTo(product, browser, product.token, options);
  const answers = (page: Page) => page.getByRole('article', { name: 'default' });
  async function ask(page: Page, text: string): Promise<void> {
    await page.getByRole('textbox', { name: 'Message' }).fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
  }

  test('draws code, formulas, footnotes and diagrams, without anything that the policy refuses', async () => {
    product.provider.queue({ text: rich });
    await using session = await logIn({ bypassCSP: false });
    const { page, complaints } = session;
    await ask(page, 'Show me everything');
    const answer = answers(page);
    await answer.getByText('That is all.').waitFor();
    await expect.poll(() => answer.locator('math').count()).toBe(2);
    expect(await answer.locator('math[display=block] mfrac').count()).toBe(1);
    expect(await answer.getByText('costs $5 and $6').count()).toBe(1);
    await answer.locator('.hl-keyword', { hasText: 'const' }).waitFor();
    const saving = page.waitForEvent('download');
    await answer.getByRole('button', { name: 'Save code as a file' }).first().click();
    const saved = await saving;
    expect([saved.suggestedFilename(), await readFile(await saved.path(), 'utf8')]).toEqual([
      'answer.ts',
      'const answer: number = 42; // because\n',
    ]);
    await answer.getByRole('button', { name: 'Footnote 1', exact: true }).click();
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toContain('By induction.');
    const picture = answer.getByRole('img', { name: 'Diagram: flowchart LR' });
    await picture.waitFor();
    await expect.poll(() => picture.evaluate((image) => (image instanceof HTMLImageElement ? image.naturalWidth : 0))).toBeGreaterThan(100);
    await answer.getByText("The diagram can't be drawn").waitFor();
    await answer.getByRole('button', { name: 'Source' }).click();
    await answer.getByText('A[Client] --> B[Gateway]').waitFor();
    expect(complaints).toEqual([]);
  });
});
