import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { findCommand } from '../../tools/system-packages.mjs';

/** Path of the system's Chromium; undefined where there is none. */
export const chromiumPath = findCommand('chromium') ?? findCommand('chromium-browser') ?? findCommand('google-chrome');

/** Turns off the vendor's services that the browser would call on its own, so that a test sees every connection. */
const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-default-apps',
];

/** A real browser with its own profile, which is removed on disposal. */
export interface Browser extends AsyncDisposable {
  /** Creates a profile that shares nothing with the others: storage, cache, colours, size. */
  context(options?: BrowserContextOptions): Promise<BrowserContext>;
}

export async function startBrowser(args: readonly string[] = []): Promise<Browser> {
  if (chromiumPath === undefined) throw new Error('there is no Chromium on this machine');
  const profile = await mkdtemp(join(tmpdir(), 'gatehouse-browser-'));
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    args: [...quiet, ...args],
    env: { PATH: process.env['PATH'] ?? '', HOME: profile },
  });
  return {
    async context(options) {
      const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1280, height: 800 }, ...options });
      // Below the limit of a test, so that the failure names the awaited element.
      context.setDefaultTimeout(15_000);
      return context;
    },
    async [Symbol.asyncDispose]() {
      await browser.close();
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Collects the complaints of a page: uncaught errors, console errors and policy violations. */
export function complaintsOf(page: Page): string[] {
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(`uncaught: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' || /Content Security Policy|TrustedHTML/i.test(message.text())) complaints.push(message.text());
  });
  return complaints;
}
