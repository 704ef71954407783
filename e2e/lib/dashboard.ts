import type { BrowserContextOptions, Page } from 'playwright-core';
import { type Browser, complaintsOf } from './browser.ts';
import type { Product } from './product.ts';

/** A page that is logged in by the link that a start prints, and what it complains about. */
export async function logInTo({ url }: Product, browser: Browser, token: string, options?: BrowserContextOptions) {
  const context = await browser.context(options);
  const page = await context.newPage();
  const complaints = complaintsOf(page);
  await page.goto(`${url}/#token=${token}`);
  await page.getByRole('textbox', { name: 'Message' }).waitFor();
  return { context, page, complaints, [Symbol.asyncDispose]: () => context.close() };
}

/** Follows a link of the navigation, which on a narrow screen is a menu. */
export async function follow(page: Page, name: string | RegExp): Promise<void> {
  const menu = page.getByRole('button', { name: 'Open the menu' });
  if (await menu.isVisible()) await menu.click();
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();
}

/** The same, until the heading of that name is there. */
export async function openPage(page: Page, name: string | RegExp, state: 'visible' | 'attached' = 'visible'): Promise<void> {
  await follow(page, name);
  await page.getByRole('heading', { level: 1, name }).waitFor({ state });
}
