import { hasIrcServer, type IrcPerson, type IrcServer, joinIrc, startIrcServer } from '@gatehouse/testkit/irc';
import type { BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rpcCall } from '../proving/lib/rpc.ts';
import { seriousFindings } from './lib/axe.ts';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { logInTo, openPage } from './lib/dashboard.ts';
import { type Product, startProduct } from './lib/product.ts';

const hostile = '<img src=x onerror="window.taken=1">';
const missing = chromiumPath === undefined || !hasIrcServer('ngircd');
if (missing) console.warn('The page of channels is not tested: Chromium or ngircd is not installed');

describe.skipIf(missing)('chat platforms in the dashboard', () => {
  let product: Product;
  let browser: Browser;
  let ircd: IrcServer;
  let ada: IrcPerson;
  beforeAll(async () => {
    ircd = await startIrcServer('ngircd');
    const net = { type: 'irc', host: '127.0.0.1', port: ircd.port, tls: false, nick: 'gate' };
    [product, browser] = await Promise.all([
      startProduct({ config: { agents: { default: { model: 'local/test-model' } }, channels: { net } } }),
      startBrowser(),
    ]);
    ada = await joinIrc(ircd.port, 'ada');
  });
  afterAll(async () => {
    ada?.[Symbol.dispose]();
    await browser?.[Symbol.asyncDispose]();
    await product?.[Symbol.asyncDispose]();
    await ircd?.[Symbol.asyncDispose]();
  });

  test('a sender is approved by the code, and messages both ways are listed', async () => {
    await using session = await logInTo(product, browser, product.token);
    const { page } = session;
    await openPage(page, /^Channels/);
    const channels = page.getByRole('list', { name: 'Channels' });
    await channels.getByText('connected', { exact: true }).waitFor();
    ada.say(`PRIVMSG gate :hello ${hostile}`);
    const pairings = page.getByRole('list', { name: 'Pairings' });
    await pairings.getByText('pending').waitFor();
    await expect.poll(() => ada.messages.length).toBe(1);
    await page.getByLabel('Code').fill(ada.messages[0]?.slice(-8) ?? '');
    await page.getByLabel('Person (optional)').fill('ada');
    await page.getByRole('button', { name: 'Approve' }).click();
    await pairings.getByText('approved').waitFor();
    ada.say('PRIVMSG gate :What is new?');
    const incoming = page.getByRole('list', { name: 'Messages in' });
    await incoming.getByText('What is new?').first().waitFor();
    await incoming.getByText('done', { exact: true }).waitFor();
    await page.getByRole('list', { name: 'Messages out' }).getByText('accepted', { exact: true }).first().waitFor();
    await incoming.locator('summary').first().click();
    await incoming.getByRole('link', { name: /^cv_/ }).click();
    await page.getByText('What is new?').first().waitFor();
    expect(await page.evaluate(() => 'taken' in window)).toBe(false);
  });

  test('the channel is disabled and enabled, and a sender is removed', async () => {
    await using session = await logInTo(product, browser, product.token);
    const { page } = session;
    await openPage(page, /^Channels/);
    await page.getByRole('button', { name: 'Disable net' }).click();
    await page.getByRole('button', { name: 'Enable net' }).click();
    await page.getByRole('list', { name: 'Channels' }).getByText('connected', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Remove ada' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await expect.poll(() => page.getByRole('list', { name: 'Pairings' }).count()).toBe(0);
  });

  test('somebody who writes for the first time waits for a decision, and is accepted there', async () => {
    await using session = await logInTo(product, browser, product.token);
    const { page, complaints } = session;
    const before = ada.messages.length;
    ada.say('PRIVMSG gate :hello again');
    await page.getByRole('link', { name: 'Waiting for you 1 pending' }).click();
    const card = page.getByRole('article', { name: 'ada wants to write to your agent' });
    await expect.poll(() => ada.messages.length).toBeGreaterThan(before);
    await card.getByLabel('Code of ada').fill('WRONGCOD');
    await page.keyboard.press('Enter');
    await card.getByRole('alert').waitFor();
    await card.getByLabel('Code of ada').fill(ada.messages.at(-1)?.slice(-8) ?? '');
    await page.keyboard.press('Enter');
    await card.waitFor({ state: 'detached' });
    await page.getByText('Nothing waits for you', { exact: true }).waitFor();
    expect(complaints.filter((one) => !one.includes('Failed to load resource'))).toEqual([]);
  });

  test('the settings of a channel are edited: who may write, groups, quiet hours', async () => {
    await using session = await logInTo(product, browser, product.token, { bypassCSP: true });
    const { page } = session;
    await openPage(page, /^Channels/);
    await page.getByRole('button', { name: 'Settings of net' }).click();
    await page.getByRole('region', { name: 'People' }).getByLabel('Policy').selectOption('allowlist');
    await page.getByRole('region', { name: 'Groups' }).getByLabel('Policy').selectOption('disabled');
    const picture = process.env['GATEHOUSE_PICTURES'];
    if (picture !== undefined) await page.screenshot({ path: `${picture}/channel-settings.png`, fullPage: true });
    const quiet = page.getByRole('region', { name: 'Quiet hours' }).first();
    await quiet.getByLabel(/^Start/).fill('22:00');
    await quiet.getByLabel(/^End/).fill('06:30');
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole('button', { name: 'Review and save' }).click();
    const dialog = page.getByRole('dialog', { name: 'Review and save' });
    await dialog
      .getByRole('checkbox')
      .check({ timeout: 2_000 })
      .catch(() => undefined);
    await dialog.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText(/Saved as version/).waitFor();
    const { config } = (await rpcCall(product, 'config.read', {})) as { readonly config: { readonly channels: { readonly net: unknown } } };
    expect(config.channels.net).toMatchObject({
      dm: { policy: 'allowlist' },
      groups: { policy: 'disabled' },
      quietHours: { start: '22:00', end: '06:30' },
    });
    await page.getByRole('button', { name: 'Back to channels' }).click();
    await page.getByRole('list', { name: 'Channels' }).getByText('net').waitFor();
  });

  test('a channel is added: what the platform needs, then whether it connects', async () => {
    await using session = await logInTo(product, browser, product.token, { bypassCSP: true });
    const { page } = session;
    await openPage(page, /^Channels/);
    await page.getByRole('button', { name: 'Add a channel' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add a channel' });
    await dialog.getByLabel('Platform').selectOption('Telegram');
    expect(await dialog.getByLabel('Bot token').getAttribute('type')).toBe('password');
    await dialog.getByText('Write /newbot to @BotFather').waitFor();
    await dialog.getByLabel('Platform').selectOption('IRC');
    await dialog.getByLabel('Name of the channel').fill('second');
    await dialog.getByLabel('Server').fill('127.0.0.1');
    await dialog.getByLabel('Port').fill(String(ircd.port));
    await dialog.getByLabel(/Without encryption/).check();
    await dialog.getByLabel('Nick').fill('helper');
    expect(await seriousFindings(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Connect' }).click();
    await dialog.getByText('Connected as helper.').waitFor();
    const picture = process.env['GATEHOUSE_PICTURES'];
    if (picture !== undefined) await page.screenshot({ path: `${picture}/channels-add.png` });
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('list', { name: 'Channels' }).getByText('second').waitFor();
  });

  test.each([
    ['light, on a phone', { colorScheme: 'light', viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }],
    ['dark, on a screen', { colorScheme: 'dark', viewport: { width: 1280, height: 800 } }],
  ] as const satisfies readonly (readonly [string, BrowserContextOptions])[])('everybody can use the page: %s', async (_, look) => {
    await using session = await logInTo(product, browser, product.token, { ...look, bypassCSP: true });
    const { page } = session;
    await openPage(page, /^Channels/);
    await page.getByRole('list', { name: 'Messages out' }).locator('summary').first().click();
    expect(await seriousFindings(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)).toBe(false);
    const picture = process.env['GATEHOUSE_PICTURES'];
    if (picture !== undefined) await page.screenshot({ path: `${picture}/channels-${look.colorScheme}.png`, fullPage: true });
  });
});
