import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { type Browser, complaintsOf } from './browser.ts';
import type { Product } from './product.ts';

/** A tab with the complaints of its page. */
export interface Tab extends AsyncDisposable {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly complaints: readonly string[];
}

/** Opens the tab that tests use one after the other, or with options one in a new profile. */
export async function openTab(browser: Browser, options?: BrowserContextOptions): Promise<Tab> {
  const page = options === undefined ? await browser.sharedTab() : await (await browser.context(options)).newPage();
  const context = page.context();
  return { context, page, complaints: complaintsOf(page), [Symbol.asyncDispose]: () => (options === undefined ? empty(page) : context.close()) };
}

/** Removes what a test left in the shared tab. */
async function empty(page: Page): Promise<void> {
  for (const event of ['console', 'dialog', 'pageerror', 'request', 'response'] as const) page.removeAllListeners(event);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  // A page of the next test at the same path would only change the part after '#' and load nothing.
  const loadsAgain = new URL(page.url()).pathname !== '/';
  await page.evaluate(() => {
    // The page stays until the next test loads its own: it must send, report and store nothing any more.
    globalThis.fetch = () => new Promise(() => undefined);
    localStorage.clear();
    sessionStorage.clear();
    Storage.prototype.setItem = () => undefined;
  });
  // Ends its requests, the event stream among them.
  await page.evaluate('stop()');
  if (loadsAgain) return;
  // Of the same origin, so that the tab keeps its process; with an icon, so that the browser requests none.
  await page.route('**/empty', (route) => route.fulfill({ contentType: 'text/html', body: '<link rel="icon" href="data:,">' }));
  await page.goto(new URL('/empty', page.url()).href);
  await page.unrouteAll();
}

/** Opens a tab that is logged in by the printed link. */
export async function logInTo({ url }: Product, browser: Browser, token: string, options?: BrowserContextOptions): Promise<Tab> {
  const tab = await openTab(browser, options);
  await tab.page.goto(`${url}/#token=${token}`);
  await tab.page.getByRole('textbox', { name: 'Message' }).waitFor();
  return tab;
}

/** Pages that are tabs under one entry of the navigation. */
const executions = ['Runs', 'Graphs', 'Schedule', 'Webhooks'];

/** Follows a link of the navigation, which is a menu on a narrow screen, and then the tab that leads to the page. */
export async function follow(page: Page, name: string | RegExp): Promise<void> {
  const tab = executions.find((one) => (typeof name === 'string' ? one === name : name.test(one)));
  const menu = page.getByRole('button', { name: 'Open the menu' });
  if (await menu.isVisible()) await menu.click();
  await page
    .getByRole('navigation', { name: 'Pages' })
    .getByRole('link', { name: tab === undefined ? name : 'Executions' })
    .click();
  if (tab !== undefined && tab !== 'Runs') await page.getByRole('navigation', { name: 'Executions' }).getByRole('link', { name: tab }).click();
}

/** Follows a link of the navigation and waits for the page's heading. */
export async function openPage(page: Page, name: string | RegExp, state: 'visible' | 'attached' = 'visible'): Promise<void> {
  await follow(page, name);
  await page.getByRole('heading', { level: 1, name }).waitFor({ state });
}

/** Shows another page of the dashboard without loading it again, and waits until it has its contents. */
export async function showPage(page: Page, path: string): Promise<void> {
  await page.evaluate(`history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`);
  await page.waitForFunction(`document.querySelector('main h1') !== null && document.querySelector('.skeleton, [aria-busy=true]') === null`);
}

/** Replaces texts that are shown, as folders of this machine in pictures. */
export async function replaceTexts(page: Page, texts: readonly (readonly [string, string])[]): Promise<void> {
  await page.evaluate(`{
    const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = nodes.nextNode(); node !== null; node = nodes.nextNode())
      for (const [from, to] of ${JSON.stringify(texts)}) if (node.nodeValue.includes(from)) node.nodeValue = node.nodeValue.replaceAll(from, to);
  }`);
}
