import type { BrowserContextOptions, Page } from 'playwright-core';
import { type Browser, complaintsOf } from './browser.ts';
import type { Product } from './product.ts';

/** Opens a page that is logged in by the printed link, and collects its complaints. */
export async function logInTo({ url }: Product, browser: Browser, token: string, options?: BrowserContextOptions) {
  const context = await browser.context(options);
  const page = await context.newPage();
  const complaints = complaintsOf(page);
  await page.goto(`${url}/#token=${token}`);
  await page.getByRole('textbox', { name: 'Message' }).waitFor();
  return { context, page, complaints, [Symbol.asyncDispose]: () => context.close() };
}

/** Follows a link of the navigation, which is a menu on a narrow screen. */
export async function follow(page: Page, name: string | RegExp): Promise<void> {
  const menu = page.getByRole('button', { name: 'Open the menu' });
  if (await menu.isVisible()) await menu.click();
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();
}

/** Follows a link of the navigation and waits for the page's heading. */
export async function openPage(page: Page, name: string | RegExp, state: 'visible' | 'attached' = 'visible'): Promise<void> {
  await follow(page, name);
  await page.getByRole('heading', { level: 1, name }).waitFor({ state });
}
