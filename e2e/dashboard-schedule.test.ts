import { createHmac } from 'node:crypto';
import type { BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { seriousFindings } from './lib/axe.ts';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { logInTo, openPage } from './lib/dashboard.ts';
import { type Product, scopedTokens, startProduct, tokenOf } from './lib/product.ts';

const hostile = '<img src=x onerror="window.taken=1">';
const secret = 's'.repeat(40);

/** Jobs, heartbeats, webhooks and the inbox in the dashboard. */
describe.skipIf(chromiumPath === undefined)('scheduled and triggered work in the dashboard', () => {
  let product: Product;
  let browser: Browser;

  beforeAll(async () => {
    [product, browser] = await Promise.all([
      startProduct({
        config: {
          gateway: { tokens: scopedTokens },
          agents: { default: { model: 'local/test-model' } },
          webhooks: {
            presets: ['github'],
            mappings: [{ id: 'build', match: { path: 'build' }, messageTemplate: 'Build {{number}} of {{repo.name}}', secret }],
          },
        },
      }),
      startBrowser(),
    ]);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await product?.[Symbol.asyncDispose]();
  });

  const logIn = (token = tokenOf('admin'), options?: BrowserContextOptions) => logInTo(product, browser, token, options);

  const job = async (name: string) =>
    ((await product.call('cron.list')) as { jobs: { name: string; schedule: unknown; payload: unknown; lifecycle: { state: string } }[] }).jobs.find(
      (one) => one.name === name,
    );

  test('a job is added with a preview of its next runs, run, inspected, changed, paused and deleted', async () => {
    await using session = await logIn(tokenOf('admin'), { timezoneId: 'Europe/Berlin' });
    const { page, complaints } = session;
    await openPage(page, /^Schedule/);
    await page.getByRole('button', { name: 'New job' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill(`report ${hostile}`);
    const times = dialog.getByRole('region', { name: 'Next runs', exact: true }).getByRole('listitem');
    await expect.poll(() => times.count()).toBe(10);
    // Errors appear at their fields, before and after saving.
    const expression = dialog.getByLabel('Expression');
    await expression.fill('99 * * * *');
    await dialog.locator('.field-error').waitFor();
    expect(await expression.getAttribute('aria-invalid')).toBe('true');
    expect(await times.count()).toBe(0);
    await expression.fill('*/30 * * * *');
    await expect.poll(() => times.count()).toBe(10);
    await dialog.getByLabel('Time zone').fill('Nowhere/Land');
    await dialog.getByLabel('Message', { exact: true }).fill('What is due?');
    await dialog.getByRole('button', { name: 'Add' }).click();
    await dialog.getByText('Failed to save.').waitFor();
    expect(await dialog.getByLabel('Time zone').getAttribute('aria-invalid')).toBe('true');
    await dialog.getByLabel('Time zone').fill('Europe/Berlin');
    await dialog.getByRole('button', { name: 'Add' }).click();
    await page.getByText(`report ${hostile} added.`).waitFor();
    expect(await job(`report ${hostile}`)).toMatchObject({
      schedule: { kind: 'cron', expr: '*/30 * * * *', tz: 'Europe/Berlin' },
      payload: { kind: 'agent_turn', message: 'What is due?' },
    });
    await page.getByText('As a list').click();
    await expect.poll(() => page.getByRole('list', { name: 'Next runs' }).getByRole('listitem').count()).toBeGreaterThanOrEqual(47);
    await page.getByRole('button', { name: '7 days' }).click();
    await page.getByText('There are more runs in this period.').waitFor();
    product.provider.queue({ text: 'Nothing is due' });
    await page.getByRole('button', { name: `Run now: report ${hostile}` }).click();
    await page.getByText('Started report').waitFor();
    await expect
      .poll(async () => {
        await page.getByRole('button', { name: `Runs of report ${hostile}` }).click();
        await dialog.getByRole('list', { name: 'Runs' }).getByRole('listitem').first().waitFor();
        const text = await dialog.getByRole('list', { name: 'Runs' }).innerText();
        await page.keyboard.press('Escape');
        return text;
      })
      .toMatch(/completed[\s\S]*manual/);
    // Two days of a year ago, which no scheduler has run.
    await page.getByRole('button', { name: `Back-fill report ${hostile}` }).click();
    await dialog.getByText('Every time has run').waitFor();
    await dialog.getByLabel('From').fill('2025-11-03T10:05');
    await dialog.getByLabel('To').fill('2025-11-03T11:05');
    await expect.poll(() => dialog.getByRole('list', { name: 'Times to run' }).getByRole('listitem').count()).toBe(2);
    await dialog.getByText('2 times, which run one after another.').waitFor();
    await dialog.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText(`2 times of report ${hostile} queued.`).waitFor();
    await expect
      .poll(async () => {
        const { runs } = (await product.call('cron.runs', { jobName: `report ${hostile}` })) as { runs: { trigger: string; status: string }[] };
        return runs.filter(({ trigger, status }) => trigger === 'catchup' && status === 'completed').length;
      })
      .toBe(2);
    await page.getByRole('button', { name: `Edit report ${hostile}` }).click();
    expect(await dialog.getByLabel('Expression').inputValue()).toBe('*/30 * * * *');
    await dialog.getByLabel('Runs', { exact: true }).selectOption('every');
    await dialog.getByLabel('Every').fill('2');
    await dialog.getByLabel('Unit').selectOption('hours');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('updated.').waitFor();
    expect(await job(`report ${hostile}`)).toMatchObject({ schedule: { kind: 'every', everyMs: 7_200_000 } });
    await page.getByRole('button', { name: `Pause report ${hostile}` }).click();
    await page.getByText('paused.').waitFor();
    expect((await job(`report ${hostile}`))?.lifecycle.state).toBe('paused');
    await page.getByRole('button', { name: `Resume report ${hostile}` }).click();
    await page.getByText('resumed.').waitFor();
    await page.getByRole('button', { name: `Delete report ${hostile}` }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('deleted.').waitFor();
    expect(await job(`report ${hostile}`)).toBeUndefined();
    expect(await page.evaluate(() => 'taken' in window)).toBe(false);
    expect(complaints.filter((one) => !one.includes('Failed to load resource'))).toEqual([]);
  });

  test('heartbeats are enabled, triggered and disabled', async () => {
    await using session = await logIn();
    const { page, complaints } = session;
    await openPage(page, /^Schedule/);
    await page.getByRole('link', { name: 'Heartbeats' }).click();
    const row = page.getByRole('list', { name: 'Heartbeats' }).getByRole('listitem').first();
    await row.getByText('Off', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Enable heartbeat of default' }).click();
    await page.getByText('Heartbeat of default enabled.').waitFor();
    await page.getByRole('button', { name: 'Trigger now: default' }).click();
    await page.getByText(/^(Triggered the|A) heartbeat of default/).waitFor();
    await page.getByRole('button', { name: 'Disable heartbeat of default' }).click();
    await row.getByText('Off', { exact: true }).waitFor();
    expect(complaints).toEqual([]);
  });

  test('webhooks: a payload is tested, a delivery links to its conversation and is replayed', async () => {
    await using session = await logIn();
    const { page, complaints } = session;
    await openPage(page, /^Webhooks/);
    const mappings = page.getByRole('list', { name: 'Mappings' });
    await mappings.getByText(`${product.url}/hooks/build`).waitFor();
    await page.getByRole('button', { name: 'Test build' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Payload').fill('{"number": 7');
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await dialog.getByRole('alert').getByText('The payload is not valid JSON').waitFor();
    await dialog.getByLabel('Payload').fill(JSON.stringify({ number: 7, repo: { name: hostile } }));
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await dialog.getByText(`Build 7 of ${hostile}`).waitFor();
    await page.keyboard.press('Escape');
    product.provider.queue({ text: 'Seen' }, { text: 'Seen again' });
    const body = JSON.stringify({ number: 8, repo: { name: hostile } });
    const taken = await fetch(`${product.url}/hooks/build`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-webhook-signature': createHmac('sha256', secret).update(body).digest('hex') },
      body,
    });
    expect(taken.status).toBe(200);
    const feed = page.getByRole('list', { name: 'Deliveries' });
    await expect
      .poll(async () => {
        await page.getByRole('button', { name: 'Refresh' }).click();
        return feed.getByText('done', { exact: true }).count();
      })
      .toBe(1);
    await feed.getByRole('listitem').first().locator('summary').click();
    await feed.getByRole('button', { name: /^Replay: wd_/ }).click();
    await dialog.getByRole('button', { name: 'Replay' }).click();
    await page.getByText(/^Replayed as wd_/).waitFor();
    await page.getByLabel('State').selectOption('done');
    await expect
      .poll(async () => {
        await page.getByRole('button', { name: 'Refresh' }).click();
        return feed.getByRole('listitem').count();
      })
      .toBe(2);
    await feed.getByRole('listitem').last().locator('summary').click();
    await feed.getByRole('listitem').last().getByRole('link', { name: /^cv_/ }).click();
    await page.getByText('Seen again').waitFor();
    expect(await page.evaluate(() => 'taken' in window)).toBe(false);
    expect(complaints).toEqual([]);
  });

  test('the inbox counts messages that arrive while the page is open, and those read', async () => {
    await using session = await logIn(product.token);
    const { page, complaints } = session;
    const { conversationRef } = (await product.call('agent.execute', { message: 'Hello', sessionKey: 'ada:inbox' })) as { conversationRef: string };
    await product.call('cron.add', {
      name: 'tea',
      schedule: { kind: 'in', seconds: 86_400 },
      payload: { kind: 'delivery', text: `Tea time ${hostile}` },
      deliveryTarget: {
        conversation: {
          conversationScope: {
            tenantId: 'default',
            agentId: 'default',
            partition: { kind: 'principal-key', principalId: 'token:env', sessionKey: 'ada:inbox' },
          },
          conversationRef,
        },
        destinationEndpoint: { channelType: 'gateway', channelInstanceId: 'gateway', conversationId: 'inbox', conversationKind: 'direct' },
      },
    });
    await page.getByRole('link', { name: 'Inbox', exact: true }).waitFor();
    await product.call('cron.run', { jobName: 'tea' });
    await page.getByRole('link', { name: 'Inbox 1 unread' }).click();
    await page.getByRole('list', { name: 'Messages' }).getByRole('link', { name: 'Tea time' }).click();
    await page.getByRole('article').getByText(`Tea time ${hostile}`).waitFor();
    await page.getByText('No unread messages.').waitFor();
    await page.getByRole('link', { name: 'Inbox', exact: true }).waitFor();
    expect(await page.evaluate(() => 'taken' in window)).toBe(false);
    expect(complaints).toEqual([]);
  });

  test('a non-admin token sees its jobs and its inbox only', async () => {
    await using session = await logIn(tokenOf('rpc'));
    const { page } = session;
    const pages = page.getByRole('navigation', { name: 'Pages' });
    await openPage(page, /^Schedule/);
    await page.getByText('No jobs yet').waitFor();
    expect(await page.getByRole('link', { name: 'Heartbeats' }).count()).toBe(0);
    await openPage(page, /^Inbox/);
    await page.getByText('No messages yet').waitFor();
    expect(await pages.getByRole('link', { name: 'Webhooks' }).count()).toBe(0);
    for (const path of ['/webhooks', '/schedule/heartbeats']) {
      await page.goto(product.url + path);
      await page.getByText('This needs a token with the scope admin').waitFor();
    }
  });

  test.each([
    ['light, on a phone', { colorScheme: 'light', viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }],
    ['dark, on a screen', { colorScheme: 'dark', viewport: { width: 1280, height: 800 } }],
  ] as const)('nobody is kept from using the pages: %s', async (_, look) => {
    await product.call('cron.add', {
      name: `axe ${look.colorScheme}`,
      schedule: { kind: 'every', everyMs: 3_600_000 },
      payload: { kind: 'agent_turn', message: 'Hi' },
    });
    await using session = await logIn(product.token, { ...look, bypassCSP: true });
    const { page } = session;
    const check = async (place: string): Promise<void> => {
      expect([place, await seriousFindings(page)]).toEqual([place, []]);
      expect([place, await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)]).toEqual([place, false]);
    };
    await openPage(page, /^Schedule/);
    await page.getByText('As a list').click();
    await check('jobs');
    await page
      .getByRole('button', { name: /^Edit axe/ })
      .first()
      .click();
    await page.getByRole('dialog').getByText('Options', { exact: true }).click();
    await page.getByRole('region', { name: 'Next runs', exact: true }).getByRole('listitem').first().waitFor();
    await check('editor');
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Heartbeats' }).click();
    await page.getByRole('list', { name: 'Heartbeats' }).getByRole('listitem').first().waitFor();
    await check('heartbeats');
    await openPage(page, /^Webhooks/);
    const first = page.getByRole('list', { name: 'Deliveries' }).locator('summary').first();
    await first.click();
    await check('webhooks');
    await page.getByRole('button', { name: 'Test build' }).click();
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.getByLabel('Message', { exact: true }).waitFor();
    await check('test of a webhook');
    await page.keyboard.press('Escape');
  });
});
