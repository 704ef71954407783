import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '@gatehouse/testkit/free-port';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeProvider, startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, root, startDaemon } from '../proving/lib/daemon.ts';
import { makeHome, removeHome } from '../proving/lib/home.ts';
import { rpcCall } from '../proving/lib/rpc.ts';
import { findingsInBothSchemes } from './lib/axe.ts';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { follow, openTab } from './lib/dashboard.ts';

const run = promisify(execFile);
const key = 'sk-the-key-of-a-person-in-a-browser';

/** The dashboard of an empty installation, from the first page to everything set up. */
describe.skipIf(chromiumPath === undefined)('the first run in the dashboard', () => {
  let home: string;
  let daemon: Daemon;
  let provider: FakeProvider;
  let browser: Browser;
  let link: string;

  beforeAll(async () => {
    home = await makeHome();
    [provider, browser] = await Promise.all([
      startFakeProvider({ apiKey: key, models: ['m-large', 'm-small'], answer: () => ({ text: 'I am Gate, and I work.' }) }),
      startBrowser(),
    ]);
    daemon = await startDaemon({ home, port: await freePort(), token: null });
    link = `http://127.0.0.1:${daemon.port}/#token=${await readToken()}`;
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await daemon?.kill();
    await provider?.close();
    await removeHome(home);
  });

  const readToken = async () => (await readFile(join(home, 'token'), 'utf8')).trim();
  const start = (page: Page) => page.getByRole('link', { name: /^Get started/ });
  const progress = (page: Page, text: string) => page.getByText(text, { exact: true }).first().waitFor();

  test('an empty installation opens on the checklist, from which five inputs lead to the first answer', async () => {
    await using session = await openTab(browser, { bypassCSP: true });
    const { page, complaints } = session;
    await page.goto(link);
    await page.getByRole('heading', { level: 1, name: 'Get started' }).waitFor();
    // It can be skipped and found again.
    await page.getByRole('link', { name: 'Skip for now' }).click();
    // The empty chat names what is missing.
    await page.getByText('No model is connected').first().waitFor();
    await page.getByRole('link', { name: 'Connect a model' }).click();
    await page.getByRole('heading', { level: 1, name: 'Get started' }).waitFor();
    await follow(page, 'Chat');
    await start(page).click();
    await progress(page, '0 of 5 done');

    let inputs = 0;
    const input = async (act: Promise<unknown>) => {
      await act;
      inputs += 1;
    };
    await input(page.getByLabel('Vendor').selectOption('OpenAI-compatible server'));
    await input(page.getByLabel('Address').fill(provider.url));
    // A refused key shows the sentence of the provider.
    await page.getByLabel('API key').fill('sk-wrong');
    await page.getByRole('button', { name: 'Test', exact: true }).click();
    await page.getByText('The provider refused the key.').waitFor();
    await page.getByText('Incorrect API key provided').waitFor();
    expect(await findingsInBothSchemes(page)).toEqual([]);
    await input(page.getByLabel('API key').fill(key));
    // The keyboard alone, from here.
    await input(page.getByLabel('API key').press('Enter'));
    await page.getByText(/^The provider answered in/).waitFor();
    expect(await page.getByLabel('Model', { exact: true }).inputValue()).toBe('m-large');
    await input(page.getByRole('button', { name: 'Use this model and say hello' }).press('Enter'));
    await page.getByText('I am Gate, and I work.').waitFor();
    expect(inputs).toBe(5);
    await progress(page, '2 of 5 done');
    expect(await page.content()).not.toContain(key);
    expect(await findingsInBothSchemes(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test('the other steps follow from what the gateway knows; when all is done the link is in the settings alone', async () => {
    await using session = await openTab(browser, { bypassCSP: true, viewport: { width: 390, height: 844 } });
    const { page, complaints } = session;
    // Tests load pages faster than people.
    await rpcCall({ token: await readToken(), port: daemon.port }, 'config.set', { path: 'gateway.rateLimit.maxRequests', value: 10_000 });
    // With a model, the chat opens first.
    await page.goto(link);
    await page.getByRole('textbox', { name: 'Message' }).waitFor();
    await follow(page, /^Get started/);
    await page.getByRole('radio', { name: /^Researcher/ }).waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
    expect(await findingsInBothSchemes(page)).toEqual([]);
    await page.getByRole('radio', { name: /^Coder/ }).check();
    await page.getByRole('button', { name: 'Apply the template' }).click();
    // The template has a budget, too.
    await progress(page, '4 of 5 done');
    expect(await readFile(join(home, 'workspaces', 'default', 'ROLE.md'), 'utf8')).toContain('software engineer');

    const line = await page.locator('code', { hasText: 'connect openai' }).innerText();
    const [npx, command, ...args] = line.replaceAll("'", '').split(' ');
    expect([npx, command]).toEqual(['npx', 'gatehouse']);
    await run(process.execPath, [join(root, 'dist', 'cli.js'), ...args], { env: { PATH: process.env['PATH'] ?? '', HOME: home } });
    // Another program made the token; the page hears of it.
    await page.getByText('Everything is set up.').waitFor();
    await page.getByRole('button', { name: /^Set a budget/ }).click();
    await page.getByLabel('Tokens in 24 hours').fill('3000000');
    await page.getByRole('button', { name: 'Set the limit' }).click();
    await page.getByText('At most 3,000,000 tokens a day for all agents together').waitFor();
    await page.getByRole('button', { name: 'Open the menu' }).click();
    expect(await start(page).count()).toBe(0);
    await page.getByRole('link', { name: 'Settings' }).click();
    await page.getByRole('link', { name: 'Setup checklist' }).click();
    await page.getByText('5 of 5 done').waitFor();
    expect(complaints).toEqual([]);
  });

  test('a new agent is made from a template, whose tools and limits replace the fields for them', async () => {
    await using session = await openTab(browser, { bypassCSP: true });
    const { page, complaints } = session;
    await page.goto(link.replace('/#', '/agents#'));
    await page.getByRole('button', { name: 'New agent' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Id').fill('scout');
    await dialog.getByLabel('Steps per turn').waitFor();
    await dialog.getByLabel('Template').selectOption('Researcher');
    await dialog.getByText('Reads many sources, compares them and writes reports with references.').waitFor();
    expect(await dialog.getByLabel('Steps per turn').count()).toBe(0);
    expect(await findingsInBothSchemes(page)).toEqual([]);
    await dialog.getByLabel('Name').fill('Scout');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await dialog.waitFor({ state: 'detached' });
    const { config } = (await rpcCall({ token: await readToken(), port: daemon.port }, 'agents.get', { agentId: 'scout' })) as {
      config: { name: string; maxSteps: number; tools: { allow: string[] } };
    };
    expect(config).toMatchObject({ name: 'Scout', maxSteps: 120, tools: { allow: expect.arrayContaining(['web_search', 'sessions_spawn']) } });
    expect(await readFile(join(home, 'workspaces', 'scout', 'ROLE.md'), 'utf8')).toContain('You are a researcher');
    expect(complaints).toEqual([]);
  });
});
