import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { findCommand } from '../../tools/system-packages.mjs';

/** Path of the system's Chromium; undefined where there is none. First the one without a user interface, which takes a third less of a processor. */
export const chromiumPath =
  findCommand('chromium-headless-shell') ?? findCommand('chromium') ?? findCommand('chromium-browser') ?? findCommand('google-chrome');

/** Turns off the vendor's services that the browser would call on its own, so that a test sees every connection, and what costs time. */
const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-default-apps',
  // Otherwise a spare process for the next site starts with each page.
  '--disable-site-isolation-trials',
  // The last list counts: the features that playwright turns off (chromiumSwitches.ts), and the suggestions of the address bar, two pages with
  // scripts that load with each profile and take a second of processor time.
  `--disable-features=${[
    'AvoidUnnecessaryBeforeUnloadCheckSync',
    'DestroyProfileOnBrowserClose',
    'HttpsUpgrades',
    'HttpsFirstBalancedModeAutoEnable',
    'LensOverlay',
    'MediaRouter',
    'PaintHolding',
    'ThirdPartyStoragePartitioning',
    'AvoidCorsURLLoaderRestartOnRedirect',
    'OptimizationHints',
    'NetworkTimeServiceQuerying',
    'AimEnabled',
    'PreconnectToSearch',
    'WebUIOmniboxPopup',
    'WebUIOmniboxAimPopup',
  ].join(',')}`,
];

/** A real browser with its own profile, which is removed on disposal. */
export interface Browser extends AsyncDisposable {
  /** Creates a profile that shares nothing with the others: storage, cache, colours, size. */
  context(options?: BrowserContextOptions): Promise<BrowserContext>;
  /** Returns the tab that tests use one after the other: its process loads and compiles the scripts of a page once. */
  sharedTab(): Promise<Page>;
}

export async function startBrowser(args: readonly string[] = []): Promise<Browser> {
  if (chromiumPath === undefined) throw new Error('there is no Chromium on this machine');
  const profile = await mkdtemp(join(tmpdir(), 'gatehouse-browser-'));
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    args: [...quiet, ...args],
    env: { PATH: process.env['PATH'] ?? '', HOME: profile },
  });
  async function create(options?: BrowserContextOptions): Promise<BrowserContext> {
    const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1280, height: 800 }, ...options });
    // Below the limit of a test, so that the failure names the awaited element.
    context.setDefaultTimeout(40_000);
    return context;
  }
  let shared: Promise<Page> | undefined;
  return {
    context: create,
    sharedTab: () => (shared ??= create().then((context) => context.newPage())),
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
