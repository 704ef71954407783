import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type FakeMedia, startFakeMedia } from '@gatehouse/testkit/fake-media';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findCommand } from '../tools/system-packages.mjs';
import { findingsInBothSchemes } from './lib/axe.ts';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { logInTo, openPage, openTab } from './lib/dashboard.ts';
import { type Product, scopedTokens, startProduct, tokenOf } from './lib/product.ts';

const sections = ['Chat', 'Conversations', 'Memory', 'Spend', 'Events', 'Agents & models', 'Tokens', 'API explorer'] as const;
const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

describe.skipIf(chromiumPath === undefined)('the dashboard in Chromium', () => {
  let product: Product;
  let browser: Browser;
  let speech: FakeMedia;

  beforeAll(async () => {
    speech = await startFakeMedia();
    const guillemots = { id: 'guillemots', match: { path: 'guillemots' }, messageTemplate: 'Counted {{number}}', secret: 's'.repeat(40) };
    const transcription = { providers: [{ type: 'openai-compatible', baseUrl: `${speech.url}/v1`, model: 'whisper' }] };
    [product, browser] = await Promise.all([
      startProduct({
        provider: { paceMs: 5 },
        config: { gateway: { tokens: scopedTokens }, media: { transcription }, webhooks: { mappings: [guillemots] } },
      }),
      startBrowser(['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream']),
    ]);
  });
  afterAll(async () => {
    await speech?.[Symbol.asyncDispose]();
    await browser?.[Symbol.asyncDispose]();
    await product?.[Symbol.asyncDispose]();
  });

  const logIn = (token = product.token, options?: BrowserContextOptions) => logInTo(product, browser, token, options);

  const go = (page: Page, section: (typeof sections)[number]) => openPage(page, section, 'attached');

  async function ask(page: Page, text: string): Promise<void> {
    await page.getByRole('textbox', { name: 'Message' }).fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
  }

  /** Waits until nothing is loading; the event stream stays open, so the network is never idle. */
  const settled = (page: Page) => expect.poll(() => page.getByRole('status', { name: 'Loading' }).count()).toBe(0);

  const answers = (page: Page) => page.getByRole('article', { name: 'default' });

  describe('logging in', () => {
    test('works by the link, which removes the token from the address', async () => {
      await using session = await logIn();
      const { page, complaints } = session;
      expect(page.url()).toMatch(/\/chat$/);
      expect(await page.evaluate(() => JSON.stringify(history.state))).not.toContain(product.token);
      await page.reload();
      await page.getByRole('textbox', { name: 'Message' }).waitFor();
      // Another tab has to log in separately.
      const other = await session.context.newPage();
      await other.goto(product.url);
      await other.getByLabel('Access token').waitFor();
      await other.close();
      expect(complaints).toEqual([]);
    });

    test('can be installed as an app, in the colours of its theme', async () => {
      await using session = await logIn();
      const { page, complaints } = session;
      const browserSession = await session.context.newCDPSession(page);
      const { data = '', errors } = await browserSession.send('Page.getAppManifest');
      expect(errors).toEqual([]);
      const { icons } = JSON.parse(data) as { readonly icons: readonly { readonly src: string; readonly type: string }[] };
      expect(icons.map(({ type }) => type)).toEqual(['image/svg+xml', 'image/png', 'image/png']);
      for (const { src, type } of icons) expect((await fetch(new URL(src, product.url))).headers.get('content-type')).toBe(type);
      const { installabilityErrors } = await browserSession.send('Page.getInstallabilityErrors');
      expect(installabilityErrors.map(({ errorId }) => errorId).filter((id) => id !== 'in-incognito')).toEqual([]);
      const colour = () =>
        page.evaluate(() =>
          [...document.querySelectorAll('meta[name=theme-color]')]
            .filter((one) => matchMedia((one as HTMLMetaElement).media).matches)
            .map((one) => (one as HTMLMetaElement).content),
        );
      expect(await colour()).toEqual(['#ffffff']);
      await page.evaluate(() => localStorage.setItem('gatehouse.theme', 'dark'));
      await page.reload();
      await page.getByRole('textbox', { name: 'Message' }).waitFor();
      expect(await colour()).toEqual(['#171c1f']);
      expect(complaints).toEqual([]);
    });

    test('works by pasting; a wrong token is reported, and logging out deletes the token', async () => {
      await using tab = await openTab(browser);
      const { page } = tab;
      await page.goto(product.url);
      await page.getByLabel('Access token').fill('not-a-token-of-this-gateway-at-all-000000');
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.getByRole('alert').getByText('Unknown token').waitFor();
      await page.getByLabel('Access token').fill('schlüssel-☃');
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.getByRole('alert').getByText('This is not a token').waitFor();
      // Pasting the whole line printed by the daemon works too.
      await page.getByLabel('Access token').fill(`open  ${product.url}/#token=${product.token}`);
      await page.getByLabel('Access token').press('Enter');
      await page.getByRole('textbox', { name: 'Message' }).waitFor();
      expect(await page.evaluate(() => sessionStorage.getItem('gatehouse.token'))).toBe(product.token);
      await page.getByRole('button', { name: 'Log out' }).click();
      await page.getByLabel('Access token').waitFor();
      expect(await page.evaluate(() => sessionStorage.length + localStorage.length)).toBe(0);
    });

    test('a tab that was loaded too often stays logged in and continues on its own', async () => {
      await using tab = await openTab(browser);
      const { page } = tab;
      const error = { code: -32000, message: 'Rate limit exceeded', data: { code: 'rate_limited', retryAfterMs: 900 } };
      await page.route(
        '**/rpc',
        (route) => {
          const calls = route.request().postDataJSON() as { readonly id: number }[];
          return route.fulfill({ status: 429, json: calls.map(({ id }) => ({ jsonrpc: '2.0', id, error })) });
        },
        { times: 1 },
      );
      await page.goto(`${product.url}/#token=${product.token}`);
      await page.getByRole('alert').getByText('Rate limit exceeded. Try again in').waitFor();
      await page.getByRole('textbox', { name: 'Message' }).waitFor();
      expect(await page.evaluate(() => sessionStorage.getItem('gatehouse.token'))).toBe(product.token);
    });

    test('a token with too few scopes is refused; a non-admin token sees its own pages', async () => {
      {
        await using tab = await openTab(browser);
        await tab.page.goto(`${product.url}/#token=${tokenOf('api')}`);
        await tab.page.getByRole('alert').getByText('scope rpc or admin').waitFor();
      }
      await using session = await logIn(tokenOf('rpc'));
      await go(session.page, 'Tokens');
      await session.page.getByText('This needs a token with the scope admin').waitFor();
      // The search loads, and so shows, only what the token may see.
      const called: string[] = [];
      session.page.on('request', (request) => called.push(request.postData() ?? ''));
      await session.page.keyboard.press('Control+k');
      await session.page.getByRole('combobox', { name: 'Search everything' }).fill('webhooks');
      await expect.poll(() => called.join(' ')).toContain('session.search');
      expect(called.join(' ')).not.toMatch(/webhooks\.list|config\.schema/);
      // The first one empties the field.
      await session.page.keyboard.press('Escape');
      await session.page.keyboard.press('Escape');
      await go(session.page, 'Chat');
      await ask(session.page, 'Hello from a program');
      await answers(session.page).getByText('the gateway answers').waitFor();
      expect(session.complaints).toEqual([]);
    });

    test('logging out leaves no data for the next user', async () => {
      await using session = await logIn();
      const { page } = session;
      await ask(page, 'Between you and me');
      await page.waitForURL(/\/chat\/cv_/);
      await go(page, 'API explorer');
      await page.getByRole('link', { name: 'ping' }).click();
      await page.getByRole('button', { name: 'Call', exact: true }).click();
      await page.getByRole('heading', { name: 'Calls in this tab' }).waitFor();
      await go(page, 'Chat');
      await page.getByRole('button', { name: 'Log out' }).click();
      expect(new URL(page.url()).pathname).toBe('/');
      await page.getByLabel('Access token').fill(tokenOf('rpc'));
      await page.getByLabel('Access token').press('Enter');
      await go(page, 'API explorer');
      await page.getByRole('link', { name: 'ping' }).click();
      await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
      expect(await page.getByRole('heading', { name: 'Calls in this tab' }).count()).toBe(0);
      expect(await page.evaluate(() => JSON.stringify(sessionStorage))).not.toContain('Between you');
    });

    test('a second link in the same tab ends the first session', async () => {
      await using session = await logIn();
      const { page } = session;
      await page.getByRole('button', { name: 'Running' }).waitFor();
      await go(page, 'Events');
      await page.getByText('Live', { exact: true }).waitFor();
      const ended = page.waitForEvent('requestfailed', (request) => request.url().includes('/api/events'));
      await page.evaluate((token) => (location.hash = `token=${token}`), tokenOf('rpc'));
      await ended;
      await page.getByText('Events of your conversations').waitFor();
      await page.evaluate(() => (location.hash = 'token=one-that-nobody-gave-out'));
      await page.getByRole('alert').getByText('Unknown token').waitFor();
      expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
    });

    test('revoking the token ends the session', async () => {
      const made = (await product.call('tokens.create', { scopes: ['rpc'] })) as { id: string; secret: string };
      await using session = await logIn(made.secret);
      await product.call('tokens.revoke', { id: made.id });
      await session.page.getByRole('alert').getByText('Unknown token').waitFor({ timeout: 15_000 });
      expect(await session.page.evaluate(() => sessionStorage.length)).toBe(0);
    });
  });

  describe('the chat', () => {
    test('streams, assigns the conversation an address, and finds it again', async () => {
      const rest = Promise.withResolvers<void>();
      const beforeDelta = async (nth: number) => (nth > 0 ? rest.promise : undefined);
      product.provider.queue({ text: ['**Walruses** ', 'live ', 'in the ', '`Arctic`.'], beforeDelta });
      await using session = await logIn();
      const { page, complaints } = session;
      await ask(page, 'Where do walruses live?');
      // The first words are visible before the last ones arrive.
      await answers(page).locator('strong', { hasText: 'Walruses' }).waitFor();
      expect(await answers(page).locator('code').count()).toBe(0);
      await page.getByRole('button', { name: 'Stop' }).waitFor();
      rest.resolve();
      await answers(page).locator('code', { hasText: 'Arctic' }).waitFor();
      await page.waitForURL(/\/chat\/cv_/);
      await answers(page)
        .getByText(/\d+ tokens/)
        .waitFor();
      await page.reload();
      await answers(page).locator('code', { hasText: 'Arctic' }).waitFor();
      const search = page.getByRole('searchbox', { name: 'Search conversations' });
      await search.fill('walruses');
      await page
        .getByRole('complementary')
        .getByRole('link', { name: /Where do walruses live/ })
        .waitFor();
      await search.fill('nothing of this kind');
      await page.getByText('Nothing found').waitFor();
      expect(complaints).toEqual([]);
    });

    test('chats are renamed, pinned, found by their messages, saved as a file, archived and deleted; jobs are not among them', async () => {
      await product.call('agent.execute', { message: 'Where do herons nest?', sessionKey: 'dashboard:herons' });
      await product.call('agent.execute', { message: 'Report the tides', sessionKey: 'cron:tides' });
      await using session = await logIn();
      const { page, complaints } = session;
      const list = page.getByRole('complementary', { name: 'Conversations' });
      const dialog = page.getByRole('dialog', { name: 'Conversation' });
      const change = async (title: string) => {
        await list.getByRole('button', { name: `Change ${title}` }).click();
        await dialog.waitFor();
      };
      await change('Where do herons nest?');
      expect(await list.getByText('Report the tides').count()).toBe(0);
      await dialog.getByLabel('Title').fill('Herons');
      await dialog.getByRole('button', { name: 'Rename' }).click();
      await list.getByRole('link', { name: /^Herons/ }).waitFor();
      await change('Herons');
      await dialog.getByRole('button', { name: 'Pin', exact: true }).click();
      await list.getByRole('list', { name: 'Pinned' }).getByText('Herons').waitFor();
      await page.getByRole('searchbox', { name: 'Search conversations' }).fill('nest');
      await list
        .getByRole('list', { name: 'Found messages' })
        .getByRole('link', { name: /Herons.*Where do herons nest/s })
        .click();
      await page.waitForURL(/\/chat\/cv_/);
      await page.getByRole('searchbox', { name: 'Search conversations' }).fill('');
      await change('Herons');
      const [download] = await Promise.all([page.waitForEvent('download'), dialog.getByRole('button', { name: 'Markdown' }).click()]);
      expect(download.suggestedFilename()).toMatch(/\.md$/);
      expect(await readFile((await download.path()) ?? '', 'utf8')).toMatch(/^# Herons\n\n## User\n[^]*Where do herons nest\?\n\n## Assistant\n/);
      await dialog.getByRole('button', { name: 'Archive', exact: true }).click();
      await expect.poll(() => list.getByText('Herons').count()).toBe(0);
      await list.getByRole('button', { name: 'Archived' }).click();
      await list.getByRole('link', { name: /^Herons/ }).waitFor();
      // Neither Enter nor a click deletes when it comes twice.
      await change('Herons');
      const deletions: string[] = [];
      page.on('request', (request) => deletions.push(...(/session\.delete/.exec(request.postData() ?? '') ?? [])));
      const confirm = page.getByRole('dialog', { name: 'Delete this conversation?' });
      await dialog.getByRole('button', { name: 'Delete…' }).press('Enter');
      await confirm.waitFor();
      await page.keyboard.press('Enter');
      await dialog.getByRole('button', { name: 'Delete…' }).dblclick();
      await confirm.getByRole('button', { name: 'Delete' }).dispatchEvent('click', { detail: 2 });
      expect(deletions).toEqual([]);
      await confirm.getByRole('button', { name: 'Delete' }).click();
      await list.getByRole('link', { name: /^Herons/ }).waitFor({ state: 'detached' });
      expect(deletions).toHaveLength(1);
      expect(complaints).toEqual([]);
    });

    test('an earlier question is edited in a branch, and the original stays', async () => {
      const say = (message: string) => product.call('agent.execute', { message, sessionKey: 'dashboard:branched' });
      const { conversationRef } = (await say('What do otters eat?')) as { conversationRef: string };
      await say('And beavers?');
      await say('And badgers?');
      await using session = await logIn();
      const { page, complaints } = session;
      await page.goto(`${product.url}/chat/${conversationRef}`);
      const questions = page.getByRole('article', { name: 'You' });
      await questions.nth(1).getByRole('button', { name: 'Edit in a branch' }).click();
      await page.waitForURL((url) => /\/chat\/cv_/.test(url.pathname) && !url.pathname.endsWith(conversationRef));
      expect(await page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('And beavers?');
      await expect.poll(() => questions.allInnerTexts()).toHaveLength(1);
      await ask(page, 'And bears?');
      await expect.poll(() => questions.count()).toBe(2);
      await expect.poll(() => answers(page).count()).toBe(2);
      await page.getByRole('link', { name: 'Branch: show the original' }).click();
      await expect.poll(() => questions.count()).toBe(3);
      expect((await questions.allInnerTexts()).join(' ')).not.toContain('bears');
      expect(complaints).toEqual([]);
    });

    test('Ctrl-K goes to pages and conversations by the keyboard alone; Esc stops an answer', async () => {
      await product.call('agent.execute', { message: 'Where do puffins winter?', sessionKey: 'dashboard:puffins' });
      const job = {
        name: 'Count guillemots',
        schedule: { kind: 'every', everyMs: 86_400_000 },
        payload: { kind: 'agent_turn', message: 'How many?' },
      };
      await product.call('cron.add', job);
      const { graphId } = (await product.call('graph.execute', {
        label: 'Guillemots',
        nodes: [{ node_id: 'gate', task: 'Shall they be counted?', type_id: 'approval-gate', type_config: { timeout_minutes: 5 } }],
        announceChannelType: 'gateway',
        announceChannelId: 'inbox',
      })) as { graphId: string };
      product.provider.queue({ text: Array.from({ length: 400 }, (_, at) => `word${at} `), paceMs: 50 });
      await using session = await logIn();
      const { page, complaints } = session;
      const search = page.getByRole('combobox', { name: 'Search everything' });
      await page.keyboard.press('Control+k');
      await search.fill('something else');
      await page.keyboard.press('Escape');
      await search.waitFor({ state: 'detached' });
      await page.keyboard.press('Control+k');
      await search.fill('spen');
      await page.getByRole('option', { name: /^Spend/ }).waitFor();
      await page.keyboard.press('Enter');
      await page.waitForURL(/\/spend$/);
      await page.keyboard.press('?');
      await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
      await page.keyboard.press('Escape');
      // Objects of all kinds, each of which opens at its address.
      const found = (group: string, name: RegExp) => page.getByRole('group', { name: group, exact: true }).getByRole('option', { name });
      await page.keyboard.press('Control+k');
      await search.fill('guillemots');
      await found('Jobs', /^Count guillemots/).waitFor();
      await found('Runs', /^Guillemots/).waitFor();
      await found('Webhooks', /^guillemots/).waitFor();
      await found('Waiting for you', /^Guillemots/).waitFor();
      await page.keyboard.press('ArrowUp');
      await expect.poll(() => found('Webhooks', /^guillemots/).getAttribute('aria-selected')).toBe('true');
      await page.keyboard.press('Enter');
      await page.waitForURL(/\/webhooks\/guillemots$/);
      await page.locator('li:focus', { hasText: '/hooks/guillemots' }).waitFor();
      await page.keyboard.press('Control+k');
      await search.fill('guillemots');
      await page.keyboard.press('Enter');
      await page.locator('article:focus', { hasText: 'Shall they be counted?' }).waitFor();
      await product.call('graph.cancel', { graphId });
      await page.keyboard.press('Control+k');
      await search.fill('gateway.ratelimit.maxrequests');
      await found('Settings', /gateway\.rateLimit\.maxRequests$/).waitFor();
      await page.keyboard.press('Enter');
      await page.waitForURL(/\/settings\/config\/gateway\/gateway\.rateLimit\.maxRequests$/);
      await page.locator('[id="setting-gateway.rateLimit.maxRequests"] :focus').waitFor();
      await page.keyboard.press('Control+k');
      await search.fill('new job');
      await page.keyboard.press('Enter');
      await page.getByRole('dialog', { name: 'New job' }).waitFor();
      await page.keyboard.press('Escape');
      await page.keyboard.press('Control+k');
      await search.fill('puffins');
      await page
        .getByRole('option', { name: /Where do puffins winter/ })
        .first()
        .waitFor();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('ArrowUp');
      await page.keyboard.press('Enter');
      await page.waitForURL(/\/chat\/cv_/);
      await ask(page, 'Write for a long time');
      await answers(page).getByText('word2').waitFor();
      await page.getByRole('textbox', { name: 'Message' }).press('Escape');
      await answers(page).getByText('Stopped by you').waitFor();
      expect(complaints).toEqual([]);
    });

    test('stops immediately, at the provider too, and asks again', async () => {
      product.provider.queue({ text: Array.from({ length: 400 }, (_, at) => `word${at} `), paceMs: 50 });
      await using session = await logIn();
      const { page } = session;
      await ask(page, 'Write for a long time');
      await answers(page).getByText('word2').waitFor();
      const before = product.provider.aborted();
      await page.getByRole('button', { name: 'Stop' }).click();
      await answers(page).getByText('Stopped by you').waitFor();
      await expect.poll(() => product.provider.aborted()).toBe(before + 1);
      expect(await answers(page).innerText()).not.toContain('word399');
      await page.getByRole('button', { name: 'Try again' }).click();
      await answers(page).getByText('the gateway answers').waitFor();
      expect(await answers(page).count()).toBe(1);
    });

    test('a stopped conversation has an address, and its question can be edited', async () => {
      product.provider.queue({ text: Array.from({ length: 400 }, (_, at) => `word${at} `), paceMs: 50 });
      await using session = await logIn();
      const { page } = session;
      await ask(page, 'Write abuot walruses');
      await answers(page).getByText('word2').waitFor();
      await page.getByRole('button', { name: 'Stop' }).click();
      await page.waitForURL(/\/chat\/cv_/);
      // The stored version does not replace the one on the page.
      await answers(page).getByText('Stopped by you').waitFor();
      await page.getByRole('button', { name: 'Edit question' }).click();
      expect(await page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('Write abuot walruses');
      expect(await answers(page).count()).toBe(0);
      await ask(page, 'Write about walruses');
      await answers(page).getByText('the gateway answers').waitFor();
    });

    test("follows the answer until the user scrolls up, and doesn't take the focus", async () => {
      const [turned, scrolled, followed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const beforeDelta = async (nth: number) => {
        // More text arrives while the user scrolls.
        if (nth === 70) await turned.promise;
        if (nth > 70 && nth < 130) await wait(12);
        if (nth === 130) await scrolled.promise;
        if (nth === 190) await followed.promise;
      };
      product.provider.queue({ text: Array.from({ length: 250 }, (_, at) => `line ${at}\n\n`), beforeDelta });
      await using session = await logIn();
      const { page } = session;
      const place = () =>
        page.getByRole('region', { name: 'Messages' }).evaluate(({ scrollTop, scrollHeight, clientHeight }) => ({
          top: scrollTop,
          below: scrollHeight - scrollTop - clientHeight,
        }));
      await ask(page, 'Count');
      await answers(page).getByText('line 60').waitFor();
      await expect.poll(async () => (await place()).below).toBeLessThan(60);
      await page.getByRole('region', { name: 'Messages' }).hover();
      // One notch of the wheel, which is less than the incoming text.
      const turning = page.mouse.wheel(0, -60);
      turned.resolve();
      await turning;
      await page.getByRole('button', { name: 'Scroll to end' }).waitFor();
      const { top } = await place();
      scrolled.resolve();
      await answers(page).getByText('line 189').waitFor();
      expect((await place()).top).toBe(top);
      await page.getByRole('button', { name: 'Scroll to end' }).click();
      await expect.poll(async () => (await place()).below).toBeLessThan(60);
      const search = page.getByRole('searchbox', { name: 'Search conversations' });
      await search.focus();
      followed.resolve();
      await answers(page).getByText('line 249').waitFor();
      await expect.poll(async () => (await place()).below).toBeLessThan(60);
      await page.getByRole('button', { name: 'Send' }).waitFor();
      await page.waitForURL(/\/chat\/cv_/);
      expect(await search.evaluate((field) => field === document.activeElement)).toBe(true);
    });

    test('speech is recorded and converted to text for the message, and a failure says why', async () => {
      await using session = await logIn();
      const { page, complaints } = session;
      const field = page.getByRole('textbox', { name: 'Message' });
      const record = async () => {
        await page.getByRole('button', { name: 'Record' }).click();
        await page.getByRole('status').getByText('Recording').waitFor();
        await page.getByRole('button', { name: 'Stop recording' }).click();
      };
      await field.fill('Please note:');
      await record();
      await expect.poll(() => field.inputValue()).toBe('Please note: Hello from the recording.');
      expect(speech.requests.at(-1)?.form).toMatchObject({ model: 'whisper' });
      speech.queue({ status: 400, json: { error: { message: 'no speech in it' } } });
      await record();
      await page.getByRole('alert').getByText('no speech in it').waitFor();
      expect(await field.inputValue()).toBe('Please note: Hello from the recording.');
      expect(complaints).toEqual([]);
    });

    test('keeps unsent messages for each conversation', async () => {
      await using session = await logIn();
      const { page } = session;
      const field = page.getByRole('textbox', { name: 'Message' });
      await page.locator('input[type=file]').setInputFiles({ name: 'kept.txt', mimeType: 'text/plain', buffer: Buffer.from('kept') });
      await page.getByRole('list', { name: 'Attachments' }).getByText('4 B').waitFor();
      await field.fill('Half a thought');
      await go(page, 'Tokens');
      await go(page, 'Chat');
      expect(await field.inputValue()).toBe('Half a thought');
      await page.getByRole('list', { name: 'Attachments' }).getByText('kept.txt').waitFor();
      await page.getByRole('button', { name: 'New chat', exact: true }).click();
      await expect.poll(() => field.inputValue()).toBe('');
    });

    test('reports a failure, and retries on request', async () => {
      product.provider.queue({ status: 400, error: { message: 'The model is on holiday' } });
      await using session = await logIn();
      const { page } = session;
      await ask(page, 'Is anybody there?');
      await page
        .getByRole('alert')
        .getByText(/holiday/)
        .waitFor();
      await page.getByRole('button', { name: 'Try again' }).click();
      await answers(page).getByText('the gateway answers').waitFor();
      expect(await page.getByRole('alert').count()).toBe(0);
    });

    test('accepts files by button, paste and drop', async () => {
      await using session = await logIn();
      const { page, complaints } = session;
      await page
        .locator('input[type=file]')
        .setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('The harvest is on Tuesday.') });
      await transfer(page, 'paste', 'pasted.txt');
      await transfer(page, 'drop', 'dropped.txt');
      const uploads = page.getByRole('list', { name: 'Attachments' });
      for (const name of ['notes.txt', 'pasted.txt', 'dropped.txt']) await uploads.getByText(name).waitFor();
      await expect.poll(() => uploads.getByText('uploading').count()).toBe(0);
      await page.getByRole('button', { name: 'Remove dropped.txt' }).click();
      await ask(page, 'When is the harvest?');
      await answers(page).getByText('the gateway answers').waitFor();
      expect(JSON.stringify(product.provider.requests.at(-1)?.body)).toContain('The harvest is on Tuesday.');
      await page.getByRole('article', { name: 'You' }).getByText('pasted.txt').waitFor();
      await page.waitForURL(/\/chat\/cv_/);
      await page.reload();
      const saving = page.waitForEvent('download');
      await page.getByRole('article', { name: 'You' }).getByRole('button', { name: 'Save notes.txt' }).click();
      const saved = await saving;
      expect([saved.suggestedFilename(), await readFile(await saved.path(), 'utf8')]).toEqual(['notes.txt', 'The harvest is on Tuesday.']);
      expect(complaints).toEqual([]);
    });

    test('shows an attached picture without a token in its address', async () => {
      await using session = await logIn();
      const { page, complaints } = session;
      await page.locator('input[type=file]').setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: png });
      await page.getByRole('list', { name: 'Attachments' }).getByText('dot.png').waitFor();
      await ask(page, 'What is in the picture?');
      const picture = page.getByRole('article', { name: 'You' }).getByRole('img', { name: 'dot.png' });
      await picture.waitFor();
      expect(await picture.getAttribute('src')).toMatch(/^blob:/);
      // The model of this gateway takes no images, which is reported.
      await page.getByRole('alert').getByText(/image/).waitFor();
      expect(complaints.filter((text) => !text.includes('status of 400'))).toEqual([]);
    });

    test('shows hostile text as text', async () => {
      const corpus = [
        '<script>window.taken=1</script>',
        '<img src=x onerror="window.taken=1">',
        '<svg onload="window.taken=1"></svg>',
        '[a](javascript:window.taken=1)',
        '<iframe srcdoc="<script>parent.taken=1</script>"></iframe>',
        '```"><img src=x onerror=window.taken=1>\nx\n```',
        '| <img src=x onerror=window.taken=1> |\n| --- |\n| x |',
      ].join('\n\n');
      await using canary = await startCanary();
      product.provider.queue({ text: `${corpus}\n\n![secret](${canary.url}/leak.png)\n\n<img src="${canary.url}/x">\n\nthe end` });
      await using session = await logIn();
      const { page, complaints } = session;
      await ask(page, corpus);
      await answers(page).getByText('the end').waitFor();
      expect(await page.evaluate(() => 'taken' in window)).toBe(false);
      expect(await page.locator('.message :is(script, img, iframe, svg:not(.icon))').count()).toBe(0);
      expect(await page.locator('.message a').evaluateAll((links) => links.map((link) => link.getAttribute('href')))).toEqual([
        `${canary.url}/leak.png`,
        expect.stringMatching(/^\/traces\/[0-9a-f]{32}$/),
      ]);
      expect(canary.connections()).toBe(0);
      expect(complaints).toEqual([]);
    });
  });

  describe('the other pages', () => {
    test('hostile names, files and errors are shown as text everywhere', async () => {
      const hostile = '<img src=x onerror="window.taken=1">';
      await product.call('agents.create', { agentId: 'e2e-hostile', config: { name: hostile, instructions: hostile } });
      await using session = await logIn();
      const { page } = session;
      await go(page, 'Events');
      await page.getByText('Live', { exact: true }).waitFor();
      await go(page, 'Chat');
      product.provider.queue({ status: 400, error: { message: hostile } });
      await page.locator('input[type=file]').setInputFiles({ name: `${hostile}.txt`, mimeType: 'text/plain', buffer: Buffer.from('x') });
      await page.getByRole('list', { name: 'Attachments' }).getByText('1 B').waitFor();
      await ask(page, hostile);
      await page.getByRole('alert').waitFor();
      await go(page, 'Agents & models');
      await page.getByRole('heading', { name: hostile }).waitFor();
      await page.getByRole('button', { name: 'Edit e2e-hostile' }).click();
      expect(await page.getByLabel('Instructions').inputValue()).toBe(hostile);
      await page.keyboard.press('Escape');
      await go(page, 'Events');
      for (const entry of await page.locator('.feed-entry').all()) await entry.click();
      await go(page, 'Conversations');
      await page.getByRole('link', { name: hostile }).first().waitFor();
      await page.goto(`${product.url}/explorer/${encodeURIComponent(hostile)}`);
      await page.getByText(`No method ${hostile}`).waitFor();
      expect(await page.evaluate(() => 'taken' in window || document.querySelector('main :is(img, script, iframe)') !== null)).toBe(false);
      await product.call('agents.delete', { agentId: 'e2e-hostile' });
    });

    test('an agent created while the page is open can be used', async () => {
      await using session = await logIn();
      const { page } = session;
      await page.getByRole('button', { name: 'Running' }).waitFor();
      await product.call('agents.create', { agentId: 'e2e-late', config: { model: 'local/test-model' } });
      await page.getByLabel('Agent', { exact: true }).selectOption('e2e-late');
      await ask(page, 'Are you new here?');
      await page.getByRole('article', { name: 'e2e-late' }).getByText('the gateway answers').waitFor();
      await page
        .getByRole('complementary')
        .getByRole('link', { name: /Are you new here.*e2e-late/ })
        .waitFor();
      expect(session.complaints).toEqual([]);
      await product.call('agents.delete', { agentId: 'e2e-late' });
    });

    test('many conversations all get their titles, and many agents load in parts', async () => {
      const made = Array.from({ length: 14 }, (_, at) => `e2e-many-${String(at).padStart(2, '0')}`);
      await Promise.all(made.map((agentId) => product.call('agents.create', { agentId })));
      for (let at = 0; at < 16; at++) await product.call('agent.execute', { message: `One of many, ${at}`, sessionKey: `ada:many-${at}` });
      await using session = await logIn(product.token, { viewport: { width: 1280, height: 1400 } });
      const { page } = session;
      await go(page, 'Conversations');
      for (const at of [15, 8, 0])
        await page
          .getByRole('main')
          .getByRole('link', { name: `One of many, ${at}`, exact: true })
          .waitFor();
      await go(page, 'Agents & models');
      await expect.poll(() => page.locator('.card').count()).toBe(12);
      await page.getByRole('searchbox', { name: 'Search agents' }).fill('many-13');
      await page.getByRole('button', { name: 'Edit e2e-many-13' }).waitFor();
      expect(await page.locator('.card').count()).toBe(1);
      await Promise.all(made.map((agentId) => product.call('agents.delete', { agentId })));
    });

    test('conversations are exported and deleted', async () => {
      await product.call('agent.execute', { message: 'To be deleted soon', sessionKey: 'ada:gone' });
      await using session = await logIn();
      const { page, complaints } = session;
      await go(page, 'Conversations');
      await page.getByRole('link', { name: 'To be deleted soon' }).waitFor();
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export To be deleted soon' }).click()]);
      const kept = JSON.parse(await readFile(await download.path(), 'utf8')) as { messages: { content: string }[] };
      expect(kept.messages[0]?.content).toBe('To be deleted soon');
      await page.getByRole('button', { name: 'Delete To be deleted soon' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
      await expect.poll(() => page.getByRole('link', { name: 'To be deleted soon' }).count()).toBe(0);
      expect(complaints).toEqual([]);
    });

    test('events arrive live, are filtered, and are held back while the feed is paused', async () => {
      await using session = await logIn();
      const { page, complaints } = session;
      await go(page, 'Events');
      await page.getByText('Live', { exact: true }).waitFor();
      await product.call('agent.execute', { message: 'A walrus event', sessionKey: 'ada:events' });
      await page.getByText('message:received').first().waitFor();
      await page.getByText('observability:token_usage').first().waitFor();
      await page.getByRole('button', { name: 'Messages' }).click();
      await expect.poll(() => page.locator('.feed-kind', { hasText: 'message:' }).count()).toBe(0);
      await page.getByRole('button', { name: 'Messages' }).click();
      await page.getByRole('searchbox', { name: 'Filter' }).fill('walrus');
      await expect.poll(() => page.locator('.feed-kind').allInnerTexts()).toEqual(['message:received']);
      await page.locator('.feed-entry').click();
      await page.locator('.json-key', { hasText: 'traceId' }).waitFor();
      await page.getByRole('searchbox', { name: 'Filter' }).fill('');
      await page.getByRole('button', { name: 'Pause' }).click();
      await product.call('agents.create', { agentId: 'made-while-paused' });
      await page.getByRole('button', { name: /Resume \(\d+ new\)/ }).click();
      await page.getByText('agent:hot_added').first().waitFor();
      await product.call('agents.delete', { agentId: 'made-while-paused' });
      expect(complaints).toEqual([]);
    });

    test('an agent is created, edited, suspended, resumed and deleted; models show their price', async () => {
      await using session = await logIn();
      const { page, complaints } = session;
      await go(page, 'Agents & models');
      await page.getByRole('row', { name: /test-model text 128,000 8,192 1 2/ }).waitFor();
      await page.getByRole('button', { name: 'New agent' }).click();
      const form = page.getByRole('dialog');
      await form.getByLabel('Id').fill('e2e-scout');
      await form.getByLabel('Name').fill('Scout');
      await form.getByLabel('Model').fill('local/none-such');
      await form.getByRole('button', { name: 'Create' }).click();
      await form.getByRole('alert').waitFor();
      await form.getByLabel('Model').fill('local/test-model');
      await form.getByRole('button', { name: 'Create' }).click();
      await page.getByRole('heading', { name: 'Scout e2e-scout' }).waitFor();
      await page.getByRole('button', { name: 'Edit e2e-scout' }).click();
      await form.getByLabel('Steps per turn').fill('7');
      await form.getByRole('button', { name: 'Save' }).click();
      await page.getByText('up to 7').waitFor();
      await page.getByRole('button', { name: 'Suspend e2e-scout' }).click();
      await page.getByText('Suspended').waitFor();
      await page.getByRole('button', { name: 'Resume e2e-scout' }).click();
      await page.getByRole('button', { name: 'Suspend e2e-scout' }).waitFor();
      await page.getByRole('button', { name: 'Delete e2e-scout' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
      await expect.poll(() => page.getByRole('heading', { name: 'Scout e2e-scout' }).count()).toBe(0);
      await page.getByRole('button', { name: 'Check configuration of local' }).click();
      await page.getByText('used by default').waitFor();
      expect(complaints).toEqual([]);
    });

    test('a token is created, shown once, rotated and revoked', async () => {
      await using session = await logIn();
      const { page, complaints } = session;
      await go(page, 'Tokens');
      await page.getByRole('button', { name: 'New token' }).click();
      await page.getByLabel('Id').fill('e2e-made');
      await page.getByRole('button', { name: 'Create' }).click();
      const secret = async () => (await page.getByLabel('Secret', { exact: true }).innerText()).trim();
      const opens = async (token: string) => (await fetch(`${product.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } })).status;
      const first = await secret();
      expect(await opens(first)).toBe(200);
      await page.getByRole('button', { name: 'I have stored it' }).click();
      await page.getByText('e2e-made').waitFor();
      expect(await page.content()).not.toContain(first);
      await page.getByRole('button', { name: 'Rotate e2e-made' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
      await page.getByRole('button', { name: 'I have stored it' }).waitFor();
      const second = await secret();
      expect([await opens(first), await opens(second)]).toEqual([401, 200]);
      await page.getByRole('button', { name: 'I have stored it' }).click();
      await page.getByRole('button', { name: 'Revoke e2e-made' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
      await expect.poll(() => page.getByText('e2e-made').count()).toBe(0);
      expect(await opens(second)).toBe(401);
      expect(complaints).toEqual([]);
    });

    test.skipIf(findCommand('curl') === undefined)('the explorer calls methods by form and by JSON, shows errors, and keeps a history', async () => {
      await using session = await logIn(product.token, { permissions: ['clipboard-read', 'clipboard-write'] });
      const { page, complaints } = session;
      await go(page, 'API explorer');
      await page.getByRole('searchbox', { name: 'Search methods' }).fill('session.list');
      await page.getByRole('link', { name: 'list' }).click();
      await page.getByLabel('limit').fill('1');
      await page.getByLabel('kind').selectOption('dm');
      await page.getByRole('button', { name: 'Call', exact: true }).click();
      await page.getByLabel('Answer').getByText('hasMore').waitFor();
      await page.getByRole('button', { name: 'Copy curl' }).click();
      await page.getByRole('button', { name: 'Copied' }).waitFor();
      const line = await page.evaluate(() => navigator.clipboard.readText());
      expect(line).not.toContain(product.token);
      const { stdout } = await promisify(execFile)('sh', ['-c', line], { env: { ...process.env, GATEHOUSE_TOKEN: product.token } });
      expect(JSON.parse(stdout)).toMatchObject({ result: { limit: 1 } });
      await page.getByRole('button', { name: 'As JSON' }).click();
      await page.getByLabel('Parameters as JSON').fill('{"limit": 100000}');
      await page.getByRole('button', { name: 'Call', exact: true }).click();
      await page.getByLabel('Answer').getByText('invalid_params').waitFor();
      await page.getByLabel('Parameters as JSON').fill('[1]');
      await page.getByRole('button', { name: 'Call', exact: true }).click();
      await page.getByText('must be a JSON object').waitFor();
      await page.reload();
      await page
        .getByRole('region', { name: 'Calls in this tab' })
        .getByRole('button', { name: /session\.list.*"limit":1,.*ok/ })
        .click();
      expect(await page.getByLabel('limit').inputValue()).toBe('1');
      await page.getByRole('searchbox', { name: 'Search methods' }).fill('tokens.revoke');
      await page.getByRole('link', { name: 'revoke' }).click();
      await page.getByLabel('id *').fill('none-such');
      await page.getByRole('button', { name: 'Call', exact: true }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Call it' }).click();
      await page.getByLabel('Answer').getByText('not_found').waitFor();
      expect(complaints).toEqual([]);
    });

    test('the explorer shows the HTTP routes, each with a program that runs', async () => {
      await using session = await logIn();
      const { page, complaints } = session;
      await go(page, 'API explorer');
      await page.getByRole('link', { name: 'HTTP routes' }).click();
      await page.getByRole('searchbox', { name: 'Search routes' }).fill('completions');
      await page.getByRole('link', { name: '/v1/chat/completions POST' }).click();
      await page.getByRole('cell', { name: 'messages *' }).waitFor();
      await page.getByRole('button', { name: 'JavaScript', exact: true }).click();
      const program = await page.getByLabel('As a program').locator('pre').innerText();
      const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
        env: { ...process.env, GATEHOUSE_TOKEN: product.token },
      });
      expect(stdout).toContain("object: 'chat.completion'");
      // The language is that of the next route too.
      await page.getByRole('searchbox', { name: 'Search routes' }).fill('');
      await page.getByRole('link', { name: '/media/{id} DELETE' }).click();
      await page.getByRole('heading', { name: 'DELETE /media/{id}' }).waitFor();
      expect(await page.getByRole('button', { name: 'JavaScript', exact: true }).getAttribute('aria-pressed')).toBe('true');
      expect(complaints).toEqual([]);
    });
  });

  describe('without a gateway', () => {
    test('says so on each page, and continues when the gateway is back', async () => {
      await using own = await startProduct();
      await using session = await logInTo(own, browser, own.token, {});
      const { page } = session;
      await page.getByRole('button', { name: 'Running' }).waitFor();
      // The code of the other pages is loaded a few seconds after the login.
      const loaded = () => page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => /(\w+)-page-/.exec(name)?.[1]));
      await expect.poll(loaded).toEqual(expect.arrayContaining(['memory', 'spend', 'tokens', 'explorer']));
      await own.daemon.kill();
      await page.getByRole('button', { name: 'No connection' }).waitFor();
      await ask(page, 'Is anybody there?');
      // The conversation list may show the same error.
      await answers(page).getByRole('alert').getByText('The gateway does not respond').waitFor();
      for (const section of ['Conversations', 'Memory', 'Spend', 'Agents & models', 'Tokens', 'API explorer'] as const) {
        await go(page, section);
        await page.getByRole('alert').getByText('The gateway does not respond').waitFor();
      }
      await own.restart();
      await page.getByRole('button', { name: 'Running' }).waitFor();
      await go(page, 'Chat');
      await page.getByRole('button', { name: 'Try again' }).click();
      await answers(page).getByText('the gateway answers').waitFor();
      expect(await page.getByRole('alert').count()).toBe(0);
    });
  });

  describe('as a page', () => {
    test('opens at the address of each section, and stays there after a reload', async () => {
      await using session = await logIn();
      const { page, complaints } = session;
      for (const [path, name] of [
        ['/conversations', 'Conversations'],
        ['/memory', 'Memory'],
        ['/spend', 'Spend'],
        ['/events', 'Events'],
        ['/agents', 'Agents & models'],
        ['/tokens', 'Tokens'],
        ['/explorer/session.list', 'API explorer'],
        ['/explorer/http/chatCompletions', 'API explorer'],
        ['/none/such', 'No such page'],
      ] as const) {
        await page.goto(product.url + path);
        await page.getByRole('heading', { level: 1, name }).waitFor();
        expect(new URL(page.url()).pathname).toBe(path);
      }
      await page.goBack();
      await page.getByRole('heading', { level: 1, name: 'API explorer' }).waitFor();
      expect(complaints).toEqual([]);
    });

    test('works with the keyboard only', async () => {
      await using tab = await openTab(browser);
      const { page } = tab;
      await page.goto(product.url);
      await page.getByLabel('Access token').waitFor();
      await page.keyboard.type(product.token);
      await page.keyboard.press('Enter');
      await page.getByRole('textbox', { name: 'Message' }).waitFor();
      await expect.poll(() => focused(page)).toBe('Message');
      await page.keyboard.type('Hello by keyboard');
      await page.keyboard.press('Enter');
      await answers(page).getByText('the gateway answers').waitFor();
      await page.evaluate(() => (document.activeElement instanceof HTMLElement ? document.activeElement.blur() : undefined));
      await tabTo(page, 'Skip to content');
      await tabTo(page, 'Tokens');
      await page.keyboard.press('Enter');
      // The heading of the page that was opened, where a screen reader reads on.
      await expect
        .poll(() => page.evaluate(() => document.activeElement?.matches('h1') === true && document.activeElement.textContent))
        .toBe('Tokens');
      await tabTo(page, 'New token');
      await page.keyboard.press('Enter');
      await page.getByRole('dialog').waitFor();
      await tabTo(page, 'Cancel');
      await page.keyboard.press('Escape');
      await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
      await expect.poll(() => focused(page)).toBe('New token');
    });

    test('the focus stays where an element was that is removed', async () => {
      for (const id of ['focus-1', 'focus-2', 'focus-3']) await product.call('tokens.create', { id, scopes: ['api'] });
      await using session = await logIn();
      const { page } = session;
      await go(page, 'Tokens');
      const confirm = async (opener: string, name: string): Promise<void> => {
        await page.getByRole('button', { name: opener }).focus();
        await page.keyboard.press('Enter');
        await tabTo(page, name);
        await page.keyboard.press('Enter');
      };
      // The next row, for the last one the row before.
      await confirm('Revoke focus-2', 'Revoke');
      await expect.poll(() => focused(page)).toBe('Revoke focus-3');
      await confirm('Revoke focus-3', 'Revoke');
      await expect.poll(() => focused(page)).toBe('Revoke focus-1');
      // The row is another one afterwards, and so is the opener of the dialog.
      await confirm('Rotate focus-1', 'Rotate');
      await tabTo(page, 'I have stored it');
      await page.keyboard.press('Enter');
      await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
      expect(await focused(page)).toMatch(/^Rotate /);
      await product.call('tokens.revoke', { id: 'focus-1' });
    });

    test('the menu and the list of a phone keep the focus, and close with Escape', async () => {
      await using session = await logIn(product.token, { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true });
      const { page } = session;
      for (const name of ['Open the menu', 'Show conversations']) {
        const opener = page.getByRole('button', { name });
        await opener.focus();
        await page.keyboard.press('Enter');
        // The message field is covered.
        await expect.poll(() => page.getByRole('textbox', { name: 'Message' }).evaluate((field) => field.closest('[inert]') !== null)).toBe(true);
        await page.keyboard.press('Escape');
        await expect.poll(() => focused(page)).toBe(name);
        expect(await page.getByRole('textbox', { name: 'Message' }).evaluate((field) => field.closest('[inert]'))).toBe(null);
      }
    });

    test('fits a phone', async () => {
      await using session = await logIn(product.token, { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true });
      const { page, complaints } = session;
      product.provider.queue({
        text: `\`\`\`\n${'wide '.repeat(80)}\n\`\`\`\n\n| ${'column | '.repeat(12)}\n|${' --- |'.repeat(12)}\n| ${'value | '.repeat(12)}\n\n${'unbroken'.repeat(40)}`,
      });
      await ask(page, 'Something wide');
      await answers(page).getByText('unbroken').waitFor();
      for (const section of sections) {
        await go(page, section);
        await settled(page);
        const wide = () =>
          page.evaluate(() =>
            [...document.querySelectorAll('main *')]
              .filter(
                (one) => one.getBoundingClientRect().right > innerWidth + 1 && one.closest('.table-scroll, pre, .visually-hidden, .icon') === null,
              )
              .map((one) => one.getAttribute('class')),
          );
        // A chart gets its width after its first drawing, and is wider than the page until then.
        await expect.poll(async () => [section, await wide()]).toEqual([section, []]);
        await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
        const small = () =>
          page.evaluate(() =>
            [...document.querySelectorAll('button, select, .nav-item, .picker-item, input:not([type=checkbox])')]
              .filter((one) => one.checkVisibility({ visibilityProperty: true }) && one.getBoundingClientRect().height < 44)
              .map((one) => one.className),
          );
        await expect.poll(async () => [section, await small()]).toEqual([section, []]);
      }
      expect(complaints).toEqual([]);
    });

    test('is dark when the system is, or when selected', async () => {
      const background = (page: Page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
      await using light = await logIn(product.token, { colorScheme: 'light' });
      const dark = await light.context.newPage();
      await dark.emulateMedia({ colorScheme: 'dark' });
      await dark.goto(`${product.url}/#token=${product.token}`);
      await dark.getByRole('textbox', { name: 'Message' }).waitFor();
      const [bright, dim] = [await background(light.page), await background(dark)];
      await dark.close();
      expect(bright).not.toBe(dim);
      await light.page.getByRole('button', { name: 'System colours; switch to light' }).click();
      await light.page.getByRole('button', { name: 'Light colours; switch to dark' }).click();
      expect(await background(light.page)).toBe(dim);
      await light.page.reload();
      expect(await background(light.page)).toBe(dim);
    });

    test('has no serious axe findings, light and dark', { timeout: 90_000 }, async () => {
      // Bypasses the policy for the injected checker, which is not part of the page.
      await using tab = await openTab(browser, { bypassCSP: true, reducedMotion: 'reduce' });
      const { page } = tab;
      await page.goto(product.url);
      await page.getByLabel('Access token').waitFor();
      expect(await findingsInBothSchemes(page)).toEqual([]);
      await page.goto(`${product.url}/#token=${product.token}`);
      product.provider.queue({ text: '# Head\n\n> quote with [link](https://example.com)\n\n```ts\ncode\n```\n\n| a | b |\n| - | - |\n| 1 | `2` |' });
      await ask(page, 'Show everything');
      await answers(page).getByText('quote with').waitFor();
      await page.getByRole('button', { name: 'Change Show everything' }).first().click();
      await page.getByRole('dialog', { name: 'Conversation' }).waitFor();
      expect(await findingsInBothSchemes(page)).toEqual([]);
      await page.keyboard.press('Escape');
      await page.keyboard.press('Control+k');
      await page.getByRole('dialog').getByRole('option').first().waitFor();
      expect(await findingsInBothSchemes(page)).toEqual([]);
      await page.keyboard.press('Escape');
      for (const section of sections) {
        await go(page, section);
        await settled(page);
        expect([section, await findingsInBothSchemes(page)]).toEqual([section, []]);
      }
      await page.getByRole('link', { name: 'create' }).first().click();
      await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
      expect(await findingsInBothSchemes(page)).toEqual([]);
      await go(page, 'Tokens');
      await page.getByRole('button', { name: 'New token' }).click();
      expect(await findingsInBothSchemes(page)).toEqual([]);
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: /^Running|^Degraded/ }).click();
      await page.getByText('Event stream').waitFor();
      expect(await findingsInBothSchemes(page)).toEqual([]);
      // The checker does detect problems.
      await page.setContent(`<meta name="color-scheme" content="light dark"><button></button>
        <p style="color: #ccc; background: #fff">pale</p>
        <p style="color: light-dark(#000, #333); background: light-dark(#fff, #000)">pale when dark</p>`);
      const rules = (await findingsInBothSchemes(page)).map((finding) => finding.split(/: ?</)[0]);
      expect(rules.toSorted()).toEqual([
        'button-name',
        'color-contrast',
        'dark: color-contrast',
        'dark: color-contrast',
        'document-title',
        'html-has-lang',
      ]);
    });

    test('loads in less than 200 KiB, in few requests', async () => {
      await using tab = await openTab(browser, {});
      const { page } = tab;
      const made = (await product.call('tokens.create', { scopes: ['admin'] })) as { secret: string };
      const limit = async () =>
        Number(
          (await fetch(`${product.url}/v1/models/none`, { headers: { authorization: `Bearer ${made.secret}` } })).headers.get('ratelimit-remaining'),
        );
      const before = await limit();
      const sizes: Promise<number>[] = [];
      page.on('response', (response) => {
        // The event stream never ends.
        if (!response.url().includes('/api/events'))
          sizes.push(
            response
              .request()
              .sizes()
              .then(({ responseBodySize, responseHeadersSize }) => responseBodySize + responseHeadersSize),
          );
      });
      await page.goto(`${product.url}/#token=${made.secret}`);
      await page.getByRole('textbox', { name: 'Message' }).waitFor();
      await page.getByRole('button', { name: 'Running' }).waitFor();
      await expect.poll(() => page.getByRole('complementary').getByRole('status', { name: 'Loading' }).count()).toBe(0);
      const all = await Promise.all(sizes);
      expect(all.reduce((sum, size) => sum + size, 0)).toBeLessThan(200 * 1024);
      // The texts of the language come before the rest of the code, which is therefore a second file.
      expect(all.length).toBeLessThan(18);
      // A token has a hundred requests a minute, and each call of a batch counts.
      const used = before - (await limit());
      expect(used).toBeGreaterThan(3);
      expect(used).toBeLessThan(30);
    });

    test('fills a page that was opened beyond the request limit when the limit is free again', async () => {
      await using tab = await openTab(browser, {});
      const { page } = tab;
      await page.clock.install();
      let isFree = false;
      await page.route('**/rpc', async (route) => {
        if (isFree || route.request().postData()?.includes('"tokens.list"') !== true) return route.continue();
        return route.fulfill({ status: 429, headers: { 'retry-after': '49' }, json: { error: { message: 'Too many requests' } } });
      });
      await page.goto(`${product.url}/tokens#token=${product.token}`);
      await page.getByText('Try again in 49 s.').waitFor();
      isFree = true;
      await page.clock.runFor(50_000);
      await page
        .getByRole('button', { name: /^Revoke / })
        .first()
        .waitFor();
      expect(await page.getByText('Try again in').count()).toBe(0);
    });

    test('contacts only its own server, whatever an address contains', async () => {
      await using canary = await startCanary();
      const names = [
        'gatewayUrl',
        'gateway',
        'url',
        'ws',
        'wsUrl',
        'server',
        'serverUrl',
        'host',
        'endpoint',
        'api',
        'apiUrl',
        'base',
        'baseUrl',
        'backend',
        'origin',
        'proxy',
        'redirect',
        'next',
        'return',
        'callback',
        'src',
        'config',
      ];
      const values = [canary.url, canary.url.replace('http', 'ws'), canary.url.slice('http:'.length)];
      await using tab = await openTab(browser, {});
      const { page } = tab;
      const asked: string[] = [];
      page.on('request', (request) => asked.push(new URL(request.url()).origin));
      for (const value of values) {
        const all = new URLSearchParams(names.map((name) => [name, value]));
        for (const address of [`/?${all}#token=${product.token}`, `/#token=${product.token}&${all}`, `/chat?${all}#${all}`]) {
          await page.goto(product.url + address);
          await page.getByRole('textbox', { name: 'Message' }).waitFor();
        }
      }
      // What the tab may have kept of one address applies to the next one; this is for the last one.
      await page.reload();
      await page.getByRole('textbox', { name: 'Message' }).waitFor();
      // The page's address must not be used for a token either.
      const other = await tab.context.newPage();
      other.on('request', (request) => asked.push(new URL(request.url()).origin));
      await other.goto(`${product.url}/?token=${product.token}`);
      await other.getByLabel('Access token').waitFor();
      expect(new Set(asked)).toEqual(new Set([product.url]));
      expect(canary.connections()).toBe(0);
    });
  });

  /** Pastes or drops a file into the message field. */
  function transfer(page: Page, how: 'paste' | 'drop', name: string): Promise<void> {
    return page.getByRole('textbox', { name: 'Message' }).evaluate(
      (field, given) => {
        const data = new DataTransfer();
        data.items.add(new File(['The harvest is late.'], given.name, { type: 'text/plain' }));
        const event =
          given.how === 'paste'
            ? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
            : new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true });
        field.dispatchEvent(event);
      },
      { how, name },
    );
  }
});

/** A server that must never be called. */
async function startCanary() {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    connections: () => connections,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

/** Returns the name of the focused element: its label, or its text. */
function focused(page: Page): Promise<string> {
  return page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? (document.activeElement?.textContent ?? '').trim());
}

async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press('Tab');
    if ((await focused(page)) === name) return;
  }
  throw new Error(`the tab key does not lead to "${name}"`);
}
