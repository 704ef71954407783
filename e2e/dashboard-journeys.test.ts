import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { logInTo } from './lib/dashboard.ts';
import { pdf } from './lib/pdf.ts';
import { type Product, startProduct } from './lib/product.ts';

/** Tasks of the chat, with a bound on what a person does beyond typed text: clicks and keys. */
describe.skipIf(chromiumPath === undefined)('journeys in the chat', () => {
  let product: Product;
  let browser: Browser;
  beforeAll(async () => {
    [product, browser] = await Promise.all([
      startProduct({
        provider: {
          answer: ({ body }) => {
            const text = JSON.stringify(body);
            if (text.includes('bananas') && !text.includes('No fruit')) return { status: 400, error: { message: 'There are no bananas' } };
            return text.includes('at length') ? { text: long, paceMs: 50 } : undefined;
          },
        },
        config: { agents: { default: { model: 'local/test-model' } } },
      }),
      startBrowser(),
    ]);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await product?.[Symbol.asyncDispose]();
  });

  const long = Array.from({ length: 400 }, (_, at) => `word${at} `);
  const answers = (page: Page) => page.getByRole('article', { name: 'default' });
  const field = (page: Page) => page.getByRole('textbox', { name: 'Message' });
  const list = (page: Page) => page.getByRole('complementary', { name: 'Conversations' });
  /** Returns the name of the focused element: its label, or its text. */
  const focusedName = (page: Page) =>
    page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? (document.activeElement?.textContent ?? '').trim());
  const say = (message: string, key: string) =>
    product.call('agent.execute', { message, sessionKey: `dashboard:${key}` }) as Promise<{ readonly conversationRef: string }>;

  /** Runs a journey and returns the number of its inputs; `act` takes each of them. */
  async function inputsOf(run: (page: Page, act: (input: Promise<unknown>) => Promise<void>) => Promise<void>, path = '/'): Promise<number> {
    await using session = await logInTo(product, browser, product.token);
    if (path !== '/') await session.page.goto(product.url + path);
    let count = 0;
    await run(session.page, async (input) => {
      count += 1;
      await input;
    });
    // A page without its gateway reports connections that fail.
    expect(session.complaints.filter((complaint) => !complaint.includes('net::ERR_'))).toEqual([]);
    return count;
  }

  test('a first chat, an earlier answer and a failed job take two, three and four inputs of the keyboard alone', async () => {
    await say('When do storks arrive?', 'storks');
    await product.call('cron.add', {
      name: 'report',
      schedule: { kind: 'every', everyMs: 86_400_000 },
      payload: { kind: 'agent_turn', message: 'Count the bananas' },
    });
    await product.call('cron.run', { jobName: 'report' });
    await inputsOf(async (page) => {
      const { keyboard } = page;
      const waiting = page.getByRole('link', { name: 'Waiting for you 1 pending' });
      await waiting.waitFor();
      let inputs = 0;
      const press = async (key: string): Promise<void> => {
        inputs += 1;
        await keyboard.press(key);
      };
      /** Moves the focus, as others move a pointer. */
      const moveTo = async (name: string, most: number): Promise<void> => {
        for (let moves = 0; (await focusedName(page)) !== name; moves++) {
          expect(moves, `moves to ${name}`).toBeLessThan(most);
          await keyboard.press('Tab');
        }
      };
      const goTo = async (text: string, option: RegExp): Promise<void> => {
        await press('Control+k');
        await page.getByRole('combobox', { name: 'Search everything' }).waitFor();
        await keyboard.type(text);
        await page.getByRole('option', { name: option }).first().waitFor();
        await press('Enter');
      };

      await keyboard.type('Good morning');
      await press('Enter');
      await answers(page).getByText('the gateway answers').waitFor();
      expect(inputs).toBeLessThanOrEqual(2);

      inputs = 0;
      await goTo('storks', /When do storks arrive/);
      // The conversation, or the message in it that was found.
      await page.getByRole('article').getByText('When do storks arrive?').waitFor();
      await page.getByRole('article').getByText('the gateway answers').waitFor();
      expect(inputs).toBeLessThanOrEqual(3);

      inputs = 0;
      await goTo('waiting', /^Waiting for you/);
      await expect.poll(() => focusedName(page)).toBe('Waiting for you');
      await page.getByRole('article', { name: 'report' }).waitFor();
      await moveTo('Edit report', 8);
      await press('Enter');
      await expect.poll(() => page.getByLabel('Message', { exact: true }).evaluate((field) => field === document.activeElement)).toBe(true);
      await keyboard.type('No fruit today. ');
      await press('Control+Enter');
      await page.getByText('Nothing waits for you', { exact: true }).waitFor();
      expect(await page.evaluate(() => document.activeElement?.closest('main') !== null)).toBe(true);
      expect(inputs).toBeLessThanOrEqual(4);
    });
  });

  test('the first question is branched, and both answers compared, with four inputs; and so are later ones', async () => {
    const inputs = await inputsOf(async (page, act) => {
      const questions = page.getByRole('article', { name: 'You' });
      const ask = async (text: string, answer: number): Promise<void> => {
        await field(page).fill(text);
        await field(page).press('Enter');
        await answers(page).nth(answer).getByText('the gateway answers').waitFor();
      };
      await ask('What do otters eat?', 0);
      await act(questions.getByRole('button', { name: 'Edit in a branch' }).click());
      await page.getByText('Ask default something').waitFor();
      await expect.poll(() => field(page).inputValue()).toBe('What do otters eat?');
      await act(ask('What do bears eat?', 0));
      await act(page.getByRole('button', { name: 'Previous branch' }).click());
      await questions.getByText('What do otters eat?').waitFor();
      await act(page.getByRole('button', { name: 'Next branch' }).click());
      await questions.getByText('What do bears eat?').waitFor();
      await list(page).getByRole('link', { name: 'What do bears eat?' }).waitFor();
      await ask('And their cubs?', 1);
      await questions.nth(1).getByRole('button', { name: 'Edit in a branch' }).click();
      await expect.poll(() => field(page).inputValue()).toBe('And their cubs?');
      await expect.poll(() => questions.allInnerTexts()).toEqual([expect.stringContaining('What do bears eat?')]);
    });
    expect(inputs).toBeLessThanOrEqual(4);
  });

  test('a PDF is attached and asked about with three inputs', async () => {
    const inputs = await inputsOf(async (page, act) => {
      const chosen = page.waitForEvent('filechooser');
      await act(page.getByRole('button', { name: 'Attach files' }).click());
      const file = { name: 'tides.pdf', mimeType: 'application/pdf', buffer: pdf('The tide turns at noon.') };
      await act(chosen.then((chooser) => chooser.setFiles(file)));
      await page.getByRole('list', { name: 'Attachments' }).getByText('tides.pdf').waitFor();
      await expect.poll(() => page.getByText('uploading').count()).toBe(0);
      await field(page).fill('When does the tide turn?');
      await act(field(page).press('Enter'));
      await answers(page).getByText('the gateway answers').waitFor();
    });
    expect(inputs).toBeLessThanOrEqual(3);
    expect(JSON.stringify(product.provider.requests.at(-1)?.body)).toContain('The tide turns at noon.');
  });

  test('a running answer is stopped and steered with three inputs', async () => {
    const inputs = await inputsOf(async (page, act) => {
      await field(page).fill('Write at length');
      await act(field(page).press('Enter'));
      await answers(page).getByText('word2').waitFor();
      await field(page).fill('Only the first line');
      await act(field(page).press('Enter'));
      await act(page.getByRole('button', { name: 'Stop and send now' }).click());
      await expect.poll(() => answers(page).count()).toBe(2);
    });
    expect(inputs).toBeLessThanOrEqual(3);
  });

  test('the model is switched with three inputs', async () => {
    const inputs = await inputsOf(async (page, act) => {
      await act(page.getByRole('button', { name: 'Model: that of the agent' }).click());
      await act(page.getByRole('combobox', { name: 'Model' }).selectOption('local/test-model'));
      await page.getByRole('button', { name: /^Model: .*test-model/ }).waitFor();
    });
    expect(inputs).toBeLessThanOrEqual(3);
  });

  test('a conversation is shared as a file with three inputs', async () => {
    await say('Where do terns nest?', 'terns');
    const inputs = await inputsOf(async (page, act) => {
      await act(list(page).getByRole('button', { name: 'Change Where do terns nest?' }).click());
      const saved = page.waitForEvent('download');
      await act(page.getByRole('dialog').getByRole('button', { name: 'Markdown' }).click());
      expect((await saved).suggestedFilename()).toMatch(/\.md$/);
    });
    expect(inputs).toBeLessThanOrEqual(3);
  });

  test('the page recovers without any input when the daemon restarts', async () => {
    const { conversationRef } = await say('Where do swifts sleep?', 'swifts');
    const inputs = await inputsOf(async (page) => {
      await answers(page).getByText('the gateway answers').waitFor();
      await product.daemon.kill();
      await page.getByRole('button', { name: 'No connection' }).waitFor();
      await product.restart();
      await page.getByRole('button', { name: 'Running' }).waitFor();
      await field(page).fill('And where do they eat?');
      await field(page).press('Enter');
      await expect.poll(() => answers(page).count()).toBe(2);
      await expect.poll(() => page.getByRole('alert').count()).toBe(0);
    }, `/chat/${conversationRef}`);
    expect(inputs).toBe(0);
  });
});
