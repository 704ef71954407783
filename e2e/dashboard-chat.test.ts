import { readFile } from 'node:fs/promises';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findingsInBothSchemes } from './lib/axe.ts';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { logInTo, openPage } from './lib/dashboard.ts';
import { longestTask } from './lib/main-thread.ts';
import { type Product, startProduct } from './lib/product.ts';
import { findCommand } from '../tools/system-packages.mjs';

const rich = [
  'A formula: $e^{i\\pi} + 1 = 0$, which costs $5 and $6.\n\n$$\n\\int_0^1 x^2 \\, dx = \\frac{1}{3}\n$$\n\n',
  'As shown[^proof].\n\n[^proof]: By *induction*.\n\n',
  '```ts title=answer.ts\nconst answer: number = 42; // because\n```\n\n',
  '```mermaid\nflowchart LR\n  A[Client] --> B[Gateway]\n```\n\n',
  '```mermaid\nflowchart LR\n  A[Client --> \n```\n\nThat is all.',
];

describe.skipIf(chromiumPath === undefined)('the chat of the dashboard', () => {
  let product: Product;
  let browser: Browser;

  beforeAll(async () => {
    [product, browser] = await Promise.all([
      startProduct({
        provider: { paceMs: 5 },
        config: {
          agents: { default: { model: 'local/test-model', tools: { profile: 'coding' } } },
          approvals: {
            approvalCacheMs: 0,
            denialCacheMs: 0,
            rules: [
              { tools: ['exec'], match: { argv: '*echo*' }, action: 'auto' },
              { tools: ['write'], action: 'ask' },
            ],
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

  const logIn = (options?: BrowserContextOptions) => logInTo(product, browser, product.token, options);
  const answers = (page: Page) => page.getByRole('article', { name: 'default' });
  async function ask(page: Page, text: string): Promise<void> {
    await page.getByRole('textbox', { name: 'Message' }).fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
  }

  test('draws code, formulas, footnotes and diagrams, without anything that the policy refuses', async () => {
    product.provider.queue({ text: rich });
    await using session = await logIn({ bypassCSP: false });
    const { page, complaints } = session;
    await ask(page, 'Show me everything');
    const answer = answers(page);
    await answer.getByText('That is all.').waitFor();
    await expect.poll(() => answer.locator('math').count()).toBe(2);
    expect(await answer.locator('math[display=block] mfrac').count()).toBe(1);
    expect(await answer.getByText('costs $5 and $6').count()).toBe(1);
    await answer.locator('.hl-keyword', { hasText: 'const' }).waitFor();
    const saving = page.waitForEvent('download');
    await answer.getByRole('button', { name: 'Save code as a file' }).first().click();
    const saved = await saving;
    expect([saved.suggestedFilename(), await readFile(await saved.path(), 'utf8')]).toEqual(['answer.ts', 'const answer: number = 42; // because\n']);
    await answer.getByRole('button', { name: 'Footnote 1', exact: true }).click();
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toContain('By induction.');
    const picture = answer.getByRole('img', { name: 'Diagram: flowchart LR' });
    await picture.waitFor();
    await expect.poll(() => picture.evaluate((image) => (image instanceof HTMLImageElement ? image.naturalWidth : 0))).toBeGreaterThan(100);
    await answer.getByText("The diagram can't be drawn").waitFor();
    await answer.getByRole('button', { name: 'Source' }).click();
    await answer.getByText('A[Client] --> B[Gateway]').waitFor();
    expect(complaints).toEqual([]);
  });

  test('shows reasoning and tool calls where they happen, live and after a reload', async () => {
    product.provider.queue(
      {
        reasoning: Array.from({ length: 40 }, (_, step) => `I think about step ${step}. `),
        text: 'I look at the folder.',
        toolCalls: [call('one', 'exec', { argv: ['sh', '-c', 'for i in 1 2 3 4; do echo line $i; sleep 0.4; done'] })],
        paceMs: 50,
      },
      { text: 'It is empty.' },
    );
    await using session = await logIn();
    const { page, complaints } = session;
    await ask(page, 'Look around');
    const answer = answers(page);
    await answer.getByText(/^Thinking/).waitFor();
    await answer.getByText(/I think about step 3\./).waitFor();
    await answer.locator('.tool-output', { hasText: 'line 2' }).waitFor();
    await answer.getByText('It is empty.').waitFor();
    const order = async (): Promise<readonly string[]> =>
      (await answer.innerText()).split('\n').filter((line) => /^Thought|^I look|^exec|^It is/.test(line));
    await expect.poll(order).toEqual([expect.stringMatching(/^Thought for/), 'I look at the folder.', 'exec', 'It is empty.']);
    await answer.getByText(/^Thought for/).click();
    await answer.getByText(/I think about step 39\./).waitFor();
    await answer.getByText(/done in/).click();
    await answer.getByRole('region', { name: 'Arguments of exec' }).getByText('echo line').waitFor();
    await page.waitForURL(/\/chat\/cv_/);
    await page.reload();
    await answer.getByText('It is empty.').waitFor();
    expect(await order()).toEqual([expect.stringMatching(/^Thought for/), 'I look at the folder.', 'exec', 'It is empty.']);
    await answer.getByText('exec', { exact: true }).click();
    await answer.getByRole('region', { name: 'Result of exec' }).getByText('line 4').waitFor();
    await answer.getByText(/Done in \d+ s/).waitFor();
    expect(complaints).toEqual([]);
  });

  test('a call is allowed always by a rule that is shown first, or denied with a reason that the agent reads', async () => {
    const write = (id: string) => ({ toolCalls: [call(id, 'write', { path: 'output/note.md', content: 'noted' })] });
    product.provider.queue(write('one'), { text: 'Not written.' }, write('two'), { text: 'Written once.' }, write('three'), {
      text: 'Written again.',
    });
    await using session = await logIn();
    const { page, complaints } = session;
    const asked = page.getByRole('region', { name: 'Waiting for your approval' });
    await ask(page, 'Write a note');
    await asked.getByLabel('Reason for deciding on write').fill('Use another folder');
    await asked.getByRole('button', { name: 'Deny' }).click();
    await page.getByText('Not written.').waitFor();
    expect(JSON.stringify(product.provider.requests.at(-1)?.body)).toContain('Use another folder');
    await ask(page, 'Try it');
    await asked.getByRole('button', { name: 'Always allow this…' }).click();
    const rule = await asked.getByRole('region', { name: 'Rule', exact: true }).innerText();
    await asked.getByRole('button', { name: 'Add rule and allow' }).click();
    await page.getByText('Written once.').waitFor();
    const { written } = (await product.call('config.read', { section: 'approvals', written: true })) as { written: { rules: unknown[] } };
    expect(written.rules[0]).toEqual(JSON.parse(rule));
    await ask(page, 'Again');
    await page.getByText('Written again.').waitFor();
    expect(await asked.count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('messages wait in a queue, are sent at once on request, and an answer is continued or regenerated', async () => {
    const long = { text: Array.from({ length: 400 }, (_, at) => `word${at} `), paceMs: 50 };
    product.provider.queue(long, { text: 'Second answer.' }, long, { text: 'Continued.' }, { text: 'Another ending.' });
    await using session = await logIn();
    const { page, complaints } = session;
    const field = page.getByRole('textbox', { name: 'Message' });
    const queue = page.getByRole('list', { name: 'Queued messages' });
    await ask(page, 'Write for a long time');
    await answers(page).getByText('word2').waitFor();
    for (const text of ['Not this', 'But this']) {
      await field.fill(text);
      await field.press('Enter');
    }
    await queue.getByRole('button', { name: 'Remove Not this' }).click();
    await queue.getByRole('button', { name: 'Stop and send now' }).click();
    await page.getByText('Second answer.').waitFor();
    expect(await queue.count()).toBe(0);
    await page.waitForURL(/\/chat\/cv_/);
    await ask(page, 'Again at length');
    await answers(page).nth(2).getByText('word2').waitFor();
    await field.press('Escape');
    await page.getByRole('article', { name: 'You' }).nth(2).getByRole('button', { name: 'Edit in a branch' }).waitFor();
    await page.getByRole('button', { name: 'Continue', exact: true }).click();
    await page.getByText('Continued.').waitFor();
    expect(JSON.stringify(product.provider.requests.at(-1)?.body)).toContain('word2');
    const first = page.url();
    await page.getByRole('button', { name: 'Regenerate' }).click();
    await page.getByText('Another ending.').waitFor();
    expect(await page.getByText('Continued.').count()).toBe(0);
    const branches = page.getByRole('group', { name: 'Branches' });
    await branches.getByText('2 of 2').waitFor();
    await branches.getByRole('button', { name: 'Previous branch' }).click();
    await page.getByText('Continued.').waitFor();
    expect(page.url()).toBe(first);
    // What is unsent survives a reload, for each conversation.
    await field.fill('Half a thought');
    await page.reload();
    await expect.poll(() => field.inputValue()).toBe('Half a thought');
    await branches.getByRole('button', { name: 'Next branch' }).click();
    await page.getByText('Another ending.').waitFor();
    expect(await field.inputValue()).toBe('');
    expect(complaints).toEqual([]);
  });

  test('completes commands, skills, agents and files by the keyboard', async () => {
    await product.call('workspace.init', { agentId: 'default' });
    await product.call('workspace.writeFile', { agentId: 'default', filePath: 'documents/plan.md', content: 'A plan' });
    await product.call('skills.create', {
      name: 'release-notes',
      agentId: 'default',
      content: '---\nname: release-notes\ndescription: Writes release notes.\n---\nGroup the commits.\n',
    });
    await using session = await logIn();
    const { page, complaints } = session;
    const field = page.getByRole('textbox', { name: 'Message' });
    const options = page.getByRole('listbox', { name: 'Completions' }).getByRole('option');
    await field.pressSequentially('/rel');
    await options.getByText('/release-notes').waitFor();
    await field.press('Enter');
    await expect.poll(() => field.inputValue()).toBe('/release-notes ');
    await field.fill('Read ');
    await field.press('End');
    await field.pressSequentially('@doc');
    await options.getByText('documents/').waitFor();
    await field.press('Tab');
    await options.getByText('documents/plan.md').waitFor();
    await field.press('Enter');
    await expect.poll(() => field.inputValue()).toBe('Read documents/plan.md ');
    await field.fill('');
    await field.pressSequentially('@');
    await options.getByText('@default').waitFor();
    await field.press('Escape');
    await expect.poll(() => options.count()).toBe(0);
    await page.getByRole('button', { name: 'Model: that of the agent' }).click();
    await page.getByRole('combobox', { name: 'Model' }).selectOption('local/test-model');
    const sending = page.waitForRequest(/api\/chat\/stream/);
    await ask(page, 'A question');
    expect((await sending).postDataJSON()).toMatchObject({ message: 'A question', model: 'local/test-model' });
    await page.waitForURL(/\/chat\/cv_/);
    await answers(page)
      .getByText(/^test-model · \d+ tokens/)
      .waitFor();
    await field.fill('/rename Plans of the week');
    await field.press('Enter');
    await page
      .getByRole('complementary', { name: 'Conversations' })
      .getByRole('link', { name: /^Plans of the week/ })
      .waitFor();
    expect(complaints).toEqual([]);
  });

  test('a running answer takes a message, which stays in its place with the reasoning after a reload', async () => {
    product.provider.queue(
      {
        reasoning: ['I read everything first.'],
        text: 'The whole year: ',
        toolCalls: [call('one', 'exec', { argv: ['sh', '-c', 'echo slow; sleep 3'] })],
      },
      { text: 'The last quarter: 42.' },
    );
    await using session = await logIn();
    const { page, complaints } = session;
    const field = page.getByRole('textbox', { name: 'Message' });
    const answer = answers(page);
    await ask(page, 'Sum it up');
    await answer.getByText('exec', { exact: true }).waitFor();
    await field.fill('Only the last quarter');
    await field.press('Enter');
    await page.getByRole('list', { name: 'Queued messages' }).getByRole('button', { name: 'Steer' }).click();
    await answer.getByText('The last quarter: 42.').waitFor();
    const order = async (): Promise<readonly string[]> =>
      (await answer.innerText()).split('\n').filter((line) => /^Thought|^The |^exec|^Only/.test(line));
    const shown = [expect.stringMatching(/^Thought for/), 'The whole year:', 'exec', 'Only the last quarter', 'The last quarter: 42.'];
    await expect.poll(order).toEqual(shown);
    expect(await page.getByRole('list', { name: 'Queued messages' }).count()).toBe(0);
    await page.waitForURL(/\/chat\/cv_/);
    await page.reload();
    await answer.getByText('The last quarter: 42.').waitFor();
    expect(await order()).toEqual(shown);
    await answer.getByText(/^Thought for/).click();
    await answer.getByText('I read everything first.').waitFor();
    expect(complaints).toEqual([]);
  });

  test('an agent is shown by its name with its system prompt, a model with its effort, chats by tags, and prompts by /', async () => {
    await product.call('agents.create', { agentId: 'keeper', config: { name: 'Lighthouse keeper', instructions: 'Speak of the sea.' } });
    await product.call('config.set', { path: 'providers.local.models[0].reasoning', value: true, confirm: true });
    await using session = await logIn();
    const { page, complaints } = session;
    const field = page.getByRole('textbox', { name: 'Message' });
    await page.getByRole('combobox', { name: 'Agent' }).selectOption({ label: 'Lighthouse keeper' });
    await page.getByRole('button', { name: 'System prompt of Lighthouse keeper' }).click();
    await page.getByRole('region', { name: 'System prompt' }).getByText('Speak of the sea.').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Model: that of the agent' }).click();
    await page.getByRole('combobox', { name: 'Effort' }).selectOption('High effort');
    await page.getByRole('button', { name: 'Model: that of the agent, high effort' }).waitFor();
    // A prompt is saved, and inserted by its name.
    await field.fill('/prompts');
    await field.press('Enter');
    await page.getByRole('button', { name: 'New prompt' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('tides');
    await page.getByRole('textbox', { name: 'Prompt' }).fill('When is high tide today?');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByRole('list', { name: 'Saved prompts' }).getByText('/tides').waitFor();
    await page.keyboard.press('Escape');
    await field.pressSequentially('/tid');
    await page.getByRole('option', { name: /tides/ }).waitFor();
    await field.press('Enter');
    await expect.poll(() => field.inputValue()).toBe('When is high tide today?');
    await field.press('Enter');
    await page.getByRole('article', { name: 'Lighthouse keeper' }).waitFor();
    await page.waitForURL(/\/chat\/cv_/);
    expect(product.provider.requests.at(-1)?.body).toMatchObject({ reasoning_effort: 'high' });
    const list = page.getByRole('complementary', { name: 'Conversations' });
    await list.getByRole('button', { name: /^Change .*high tide/ }).click();
    await page.getByRole('textbox', { name: 'Tags' }).fill('sea, plans');
    await page.getByRole('button', { name: 'Save tags' }).click();
    await list.getByText(/Lighthouse keeper · .*#plans · #sea/).waitFor();
    await list.getByRole('combobox', { name: 'Tag' }).selectOption('#sea');
    await expect.poll(() => list.getByRole('listitem').count()).toBe(1);
    expect(complaints).toEqual([]);
  });

  test('opens pages and pictures next to the chat, without network, with their versions', async () => {
    const html = (body: string) => ['```html\n<!doctype html><title>Clock</title>', body, '\n```\n'];
    product.provider.queue(
      {
        text: html('<p id="p">first</p><script>p.textContent += " " + origin; fetch("/health").catch(() => (p.textContent += " offline"))</script>'),
      },
      { text: html('<p>second</p>') },
    );
    await using session = await logIn();
    const { page } = session;
    await ask(page, 'A clock');
    await page.getByRole('button', { name: 'Open', exact: true }).click();
    const panel = page.getByRole('complementary', { name: 'Artifact Clock' });
    const content = panel.frameLocator('iframe');
    await content.getByText('first null offline').waitFor();
    await ask(page, 'Another one');
    await panel.getByText('1 of 2').waitFor();
    await panel.getByRole('button', { name: 'Next version' }).click();
    await content.getByText('second').waitFor();
    await panel.getByRole('button', { name: 'Source' }).click();
    await panel.getByText('<p>second</p>').waitFor();
    await panel.getByRole('button', { name: 'Close the artifact' }).click();
    expect(await panel.count()).toBe(0);
  });

  test('draws an answer of 100 KB in slices, while it is written and after a reload', async () => {
    const part = (at: number) => `## Part ${at}\n\nA paragraph with **weight**, about ${'tides '.repeat(20)}\n\n- one\n- two\n\n`;
    const long = Array.from({ length: 540 }, (_, at) => part(at));
    product.provider.queue({ text: 'Ready.' }, { text: [long.join(''), 'The end.'] });
    await using session = await logIn({});
    const { page } = session;
    // Counts the blocks that one change of the page adds.
    await page.addInitScript(() => {
      Object.assign(globalThis, { mostBlocks: 0 });
      new MutationObserver((records) => {
        const added = records.flatMap(({ addedNodes }) => [...addedNodes]).filter((node) => node instanceof Element);
        const blocks = new Set(
          added.flatMap((node) => [...(node.matches('.markdown > *') ? [node] : []), ...node.querySelectorAll('.markdown > *')]),
        );
        Object.assign(globalThis, { mostBlocks: Math.max(Number(Reflect.get(globalThis, 'mostBlocks')), blocks.size) });
      }).observe(document, { childList: true, subtree: true });
    });
    await page.reload();
    await ask(page, 'Begin');
    await answers(page).getByText('Ready.').waitFor();
    const whole = async (): Promise<void> => {
      await answers(page).getByText('The end.').waitFor();
      expect(await answers(page).last().locator('.markdown > *').count()).toBe(540 * 3 + 1);
    };
    const most = () => page.evaluate(() => Number(Reflect.get(globalThis, 'mostBlocks')));
    await ask(page, 'At length');
    await whole();
    const mostWritten = await most();
    await page.reload();
    await whole();
    for (const count of [mostWritten, await most()]) expect(count).toBeLessThan(150);
  });

  test.skipIf(findCommand('bwrap') === undefined)('a terminal session of an agent is watched and typed into', async () => {
    product.provider.queue({ toolCalls: [call('open', 'terminal', { action: 'open', argv: ['cat'] })] }, { text: 'It is open.' });
    await using session = await logIn();
    const { page, complaints } = session;
    await openPage(page, 'Runs');
    await product.call('agent.execute', { message: 'Open a terminal', sessionKey: 'terminal:desk' });
    const background = page.getByRole('region', { name: 'In the background' });
    await background.getByRole('button', { name: 'Watch cat' }).click();
    const dialog = page.getByRole('dialog', { name: 'Terminal: cat' });
    await dialog.getByRole('textbox', { name: 'Type into the terminal' }).click();
    await page.keyboard.type('typed by hand');
    await page.keyboard.press('Enter');
    // The terminal shows what is typed, and the program repeats it.
    await expect.poll(() => dialog.locator('.terminal-row', { hasText: 'typed by hand' }).count()).toBe(2);
    await dialog.getByRole('button', { name: 'Ctrl+C' }).click();
    await dialog.getByText('The session has ended.').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).last().click();
    await background.waitFor({ state: 'detached' });
    expect(complaints.filter((one) => !one.includes('404'))).toEqual([]);
  });

  test('has no serious accessibility findings, and coloured code causes no long task', async () => {
    const code = Array.from({ length: 150 }, (_, at) => `export const value${at} = compute('${at}', ${at}); // line ${at}\n`).join('');
    product.provider.queue(
      { text: 'Ready.' },
      { text: [...Array.from({ length: 4 }, (_, at) => `Part ${at}\n\n\`\`\`ts\n${code}\`\`\`\n\n`), 'The end.'] },
      { reasoning: ['Once.'], text: 'First.', toolCalls: [call('one', 'exec', { argv: ['echo', 'hello'] })] },
      { text: [...rich, '\n\n```html\n<title>A</title>\n```\n\nAll of it.'] },
    );
    await using session = await logIn({ bypassCSP: true });
    const { context, page } = session;
    // The code that the page loads is compiled before.
    await ask(page, 'Begin');
    await answers(page).getByText('Ready.').waitFor();
    const { longestMs } = await longestTask(context, page, async () => {
      await ask(page, 'Code');
      await answers(page).getByText('The end.').waitFor();
      await answers(page).locator('.hl-keyword').first().waitFor();
    });
    expect(longestMs).toBeLessThan(100);
    await ask(page, 'Everything at once');
    await answers(page).getByText('All of it.').waitFor();
    await answers(page).getByText('echo hello').first().waitFor();
    await page.getByRole('button', { name: 'Open', exact: true }).click();
    await page.getByRole('complementary', { name: 'Artifact A' }).waitFor();
    await page.getByRole('textbox', { name: 'Message' }).pressSequentially('/');
    await page.getByRole('listbox', { name: 'Completions' }).getByRole('option').first().waitFor();
    expect(await findingsInBothSchemes(page)).toEqual([]);
  });
});

const call = (id: string, name: string, args: object) => ({ id, name, arguments: JSON.stringify(args) });
