import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findingsInBothSchemes, seriousFindings } from './lib/axe.ts';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { follow, logInTo } from './lib/dashboard.ts';
import { type Product, scopedTokens, startProduct, tokenOf } from './lib/product.ts';

const hostile = '<img src=x onerror="window.taken=1">';
const refusal = 'The parameter fruit takes no bananas';
const phone = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true } as const;

/** The pages that answer what waits for a person, and what ran. */
describe.skipIf(chromiumPath === undefined)('what waits and what ran, in the dashboard', () => {
  let product: Product;
  let browser: Browser;
  beforeAll(async () => {
    [product, browser] = await Promise.all([
      startProduct({
        provider: {
          answer: ({ body }) => {
            const text = JSON.stringify(body);
            if (text.includes('BAD')) return { status: 400, error: { message: refusal } };
            const path = /Write (\S+\.md)/.exec(text)?.[1];
            if (path !== undefined && !text.includes('"role":"tool"'))
              return { toolCalls: [{ id: `call-${path}`, name: 'write', arguments: JSON.stringify({ path, content: 'x' }) }] };
            return { text: 'Tides come **twice**.', usage: { input: 300, output: 80 } };
          },
        },
        config: {
          gateway: { tokens: scopedTokens },
          agents: { default: { model: 'local/test-model' } },
          approvals: { rules: [{ tools: ['write'], action: 'ask' }], approvalCacheMs: 0, denialCacheMs: 0 },
          webhooks: { mappings: [{ id: 'build', match: { path: 'build' }, messageTemplate: 'Build {{number}}', secret: 's'.repeat(40) }] },
        },
      }),
      startBrowser(),
    ]);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await product?.[Symbol.asyncDispose]();
  });

  const logIn = (token = product.token, options?: BrowserContextOptions) => logInTo(product, browser, token, options);
  const waits = (page: Page) => page.getByRole('region', { name: 'What waits for you' });
  const empty = (page: Page) => page.getByText('Nothing waits for you', { exact: true });

  const gated = [
    { node_id: 'research', task: 'Collect facts about ${TOPIC}.', agent: 'default' },
    {
      node_id: 'gate',
      task: `Shall it be written? ${hostile}`,
      type_id: 'approval-gate',
      type_config: { timeout_minutes: 5 },
      depends_on: ['research'],
    },
  ];
  const inbox = { announceChannelType: 'gateway', announceChannelId: 'inbox' };
  const execute = async (label: string) =>
    ((await product.call('graph.execute', { nodes: gated, label, variables: { TOPIC: 'tides' }, ...inbox })) as { graphId: string }).graphId;

  /** Starts a turn whose call needs an approval. */
  function askToWrite(path: string): Promise<unknown> {
    const turn = product.call('agent.execute', { message: `Write ${path}`, sessionKey: `ada:${path}` });
    turn.catch(() => undefined);
    return turn;
  }

  async function addFailedJob(name: string): Promise<void> {
    await product.call('cron.add', {
      name,
      schedule: { kind: 'every', everyMs: 86_400_000 },
      payload: { kind: 'agent_turn', message: 'BAD question' },
    });
    await product.call('cron.run', { jobName: name });
  }

  /** Counts what a person does: clicks, taps and keys; typed text does not count. */
  function counted(): { readonly act: (action: Promise<unknown>) => Promise<void>; readonly count: () => number } {
    let done = 0;
    return {
      act: async (action) => {
        done += 1;
        await action;
      },
      count: () => done,
    };
  }

  test('a call is allowed from a phone with two taps', async () => {
    await using session = await logIn(product.token, phone);
    const { page, complaints } = session;
    const { act, count } = counted();
    const turn = askToWrite('phone.md');
    await act(page.getByRole('link', { name: '1 waiting for you' }).tap());
    await act(page.getByRole('article', { name: 'write' }).getByRole('button', { name: 'Allow once' }).tap());
    await turn;
    expect(count()).toBeLessThanOrEqual(2);
    await empty(page).waitFor();
    expect(await product.call('workspace.readFile', { agentId: 'default', filePath: 'phone.md' })).toMatchObject({ content: 'x' });
    expect(complaints).toEqual([]);
  });

  test('a failed job is fixed with three inputs, and one number counts everything', async () => {
    await using session = await logIn();
    const { page, complaints } = session;
    await addFailedJob('report');
    const turn = askToWrite('counted.md');
    await page.getByRole('link', { name: 'Waiting for you 2 pending' }).waitFor();
    expect(await page.title()).toMatch(/^\(2\) /);
    const { act, count } = counted();
    await act(page.getByRole('link', { name: 'Waiting for you 2 pending' }).click());
    const card = page.getByRole('article', { name: 'report' });
    await card.getByText(refusal).waitFor();
    await act(card.getByRole('button', { name: 'Edit report' }).click());
    await page.getByRole('dialog').getByLabel('Message', { exact: true }).fill('A good question');
    await act(page.getByRole('dialog').getByRole('button', { name: 'Save and run again' }).click());
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await card.waitFor({ state: 'detached' });
    expect(count()).toBeLessThanOrEqual(3);
    await expect.poll(() => page.title()).toMatch(/^\(1\) /);
    await page.getByRole('button', { name: 'Deny' }).click();
    await turn;
    await empty(page).waitFor();
    expect(await page.title()).toBe('Waiting for you · Gatehouse');
    await expect
      .poll(async () => ((await product.call('cron.runs', { jobName: 'report' })) as { runs: { status: string }[] }).runs[0]?.status)
      .toBe('completed');
    expect(complaints).toEqual([]);
  });

  test('questions of graphs and failed webhooks are decided where they are shown, by keyboard, or dismissed', async () => {
    await using session = await logIn();
    const { page, complaints } = session;
    await page.goto(`${product.url}/waiting`);
    await empty(page).waitFor();
    const graphId = await execute('Tides');
    const other = await execute('Moon');
    const [gate, next] = [page.getByRole('article', { name: 'Tides' }), page.getByRole('article', { name: 'Moon' })];
    await next.waitFor();
    await gate.getByText(`Shall it be written? ${hostile}`).waitFor();
    await gate.getByRole('button', { name: 'Approve' }).focus();
    await page.keyboard.press('Enter');
    await gate.waitFor({ state: 'detached' });
    // The question itself, not its buttons: another Enter must not answer what nobody has read.
    await expect.poll(() => next.evaluate((card) => card === document.activeElement)).toBe(true);
    await product.call('graph.answer', { graphId: other, nodeId: 'gate', answer: 'no' });
    await next.waitFor({ state: 'detached' });
    expect(await page.evaluate(() => document.activeElement?.closest('main') !== null)).toBe(true);
    await expect.poll(async () => ((await product.call('graph.status', { graphId })) as { status: string }).status).toBe('completed');
    await product.call('webhooks.test', { mapping: 'build', payload: { number: 'BAD' }, run: true });
    const hook = page.getByRole('article', { name: 'build' });
    await hook.getByText(refusal).waitFor();
    await hook.getByRole('button', { name: 'Dismiss build' }).click();
    await hook.waitFor({ state: 'detached' });
    await page.reload();
    await empty(page).waitFor();
    await product.call('webhooks.test', { mapping: 'build', payload: { number: 'BAD again' }, run: true });
    await hook.getByText('Build BAD again').waitFor();
    await hook.getByRole('button', { name: 'Run again: build' }).click();
    // The replay fails as well, and is a new item.
    const replays = async () =>
      ((await product.call('webhooks.deliveries', { state: 'failed' })) as { deliveries: { replayOf: string | null }[] }).deliveries.filter(
        ({ replayOf }) => replayOf !== null,
      ).length;
    await expect.poll(replays).toBe(1);
    await expect.poll(() => hook.count()).toBe(1);
    await page.evaluate(() => localStorage.clear());
    await page.reload();
    await expect.poll(() => hook.count()).toBe(3);
    for (let left = 3; left > 0; left -= 1) {
      await hook.first().getByRole('button', { name: 'Dismiss build' }).click();
      await expect.poll(() => hook.count()).toBe(left - 1);
    }
    expect(await page.evaluate(() => 'taken' in window)).toBe(false);
    expect(complaints).toEqual([]);
  });

  test('a token without admin sees its own jobs and questions, and nothing of others', async () => {
    await execute('Of another');
    await using session = await logIn(tokenOf('rpc'));
    const { page, complaints } = session;
    await follow(page, 'Waiting for you');
    await empty(page).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(complaints).toEqual([]);
    // An admin sees the graph of another principal, and may not answer for it.
    await page.goto(`${product.url}/#token=${tokenOf('admin')}`);
    await page.getByRole('textbox', { name: 'Message' }).waitFor();
    await follow(page, 'Waiting for you');
    await expect.poll(() => waits(page).getByRole('article').count()).toBe(0);
  });

  test('notifications announce new items while another window is in front, once the user switched them on', async () => {
    await using session = await logIn(product.token, {});
    const { page } = session;
    await page.addInitScript(() => {
      const shown: string[] = [];
      class Fake extends EventTarget {
        static permission = 'default';
        static async requestPermission() {
          Fake.permission = 'granted';
          return 'granted';
        }
        constructor(title: string, { body }: { body: string }) {
          super();
          shown.push(`${title}: ${body}`);
        }
        close() {}
      }
      Object.assign(window, { Notification: Fake, shown });
      document.hasFocus = () => false;
    });
    await page.goto(`${product.url}/waiting`);
    const graphId = await execute('Quiet');
    await page.getByRole('article', { name: 'Quiet' }).waitFor();
    const shown = () => page.evaluate(() => (window as unknown as { shown: string[] }).shown);
    expect(await shown()).toEqual([]);
    await page.getByRole('button', { name: 'Notify me in this browser' }).click();
    await page.getByRole('button', { name: 'Stop notifying me' }).waitFor();
    const second = await execute('Loud');
    await expect.poll(shown).toEqual(['A graph asks for your approval: Loud']);
    for (const id of [graphId, second]) await product.call('graph.answer', { graphId: id, nodeId: 'gate', answer: 'no' });
    await expect.poll(() => page.getByRole('article', { name: /^(Quiet|Loud)$/ }).count()).toBe(0);
  });

  test('the inbox shows list and message next to each other, and the number falls when one is read', async () => {
    const graphId = await execute('Inbox');
    await using session = await logIn();
    const { page, complaints } = session;
    await product.call('inbox.markRead', { all: true });
    const second = await execute('Second');
    await page.goto(`${product.url}/inbox`);
    const list = page.getByRole('list', { name: 'Messages' });
    const unread = page.getByRole('link', { name: /^Inbox \d+ unread$/ });
    await unread.waitFor();
    const before = Number(/\d+/.exec(await unread.innerText())?.[0]);
    const first = list.getByRole('link').filter({ hasText: 'Second' }).first();
    await first.focus();
    await page.keyboard.press('ArrowDown');
    expect(await page.evaluate(() => document.activeElement?.className)).toContain('panes-item');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    const article = page.getByRole('article');
    await article.getByText(`Shall it be written? ${hostile}`).waitFor();
    await expect.poll(async () => Number(/\d+/.exec(await page.getByRole('link', { name: /^Inbox/ }).innerText())?.[0] ?? 0)).toBe(before - 1);
    await list.waitFor();
    // Answered in place.
    await article.getByRole('button', { name: 'Approve' }).click();
    await article.getByText('This question is no longer pending.').waitFor();
    await page.getByLabel('Search messages').fill('nothing like this');
    await page.getByText('No message matches').waitFor();
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByLabel('Kind').selectOption('graph');
    expect(await list.getByRole('link').count()).toBeGreaterThanOrEqual(2);
    await page.getByLabel('Kind').selectOption('webhook');
    await page.getByText('No message matches').waitFor();
    await product.call('graph.answer', { graphId, nodeId: 'gate', answer: 'no' });
    await expect.poll(async () => ((await product.call('graph.status', { graphId: second })) as { status: string }).status).toBe('completed');
    expect(await page.evaluate(() => 'taken' in window)).toBe(false);
    expect(complaints).toEqual([]);
  });

  test('a graph with a gate is run, approved and read with six inputs, and run again with another variable', async () => {
    const { id } = (await product.call('graph.save', { label: 'Six inputs', nodes: gated })) as { id: string };
    await using session = await logIn();
    const { page, complaints } = session;
    const { act, count } = counted();
    await act(page.getByRole('link', { name: 'Executions' }).click());
    await act(page.getByRole('navigation', { name: 'Executions' }).getByRole('link', { name: 'Graphs' }).click());
    await act(page.getByRole('button', { name: 'Run Six inputs' }).click());
    await page.getByRole('dialog').getByLabel('TOPIC').fill('high tides');
    await act(page.getByRole('dialog').getByRole('button', { name: 'Run' }).click());
    await act(page.getByRole('button', { name: 'Approve' }).click());
    await page.getByText('2 of 2 nodes completed').waitFor();
    await act(
      page
        .getByRole('navigation', { name: 'Nodes' })
        .getByRole('button', { name: /^research/ })
        .click(),
    );
    const node = page.getByRole('region', { name: 'Node research' });
    await node.getByText('Tides come twice').waitFor();
    expect(count()).toBeLessThanOrEqual(6);
    // The input with its variable, the model, tokens and the way to the trace.
    await node.getByText('Input').click();
    await node.getByText('Collect facts about high tides.').waitFor();
    const turn = node.getByRole('table', { name: 'Turns of research' }).getByRole('row').last();
    await turn.getByText('local/test-model').waitFor();
    expect(await turn.innerText()).toMatch(/300 in, 80 out/);
    expect(await turn.getByRole('link', { name: /^Trace of/ }).getAttribute('href')).toMatch(/^\/traces\/tn_/);
    await page.getByRole('button', { name: 'Run again' }).click();
    const topic = page.getByRole('dialog').getByLabel('TOPIC');
    expect(await topic.inputValue()).toBe('high tides');
    await topic.fill('low tides');
    await page.getByRole('dialog').getByRole('button', { name: 'Run' }).click();
    await page.getByText('TOPIC: low tides').waitFor();
    await page.getByRole('button', { name: 'Refuse' }).click();
    await page.getByText('1 failed').waitFor();
    // From the node that failed, with the result of the one before it.
    const asked = product.provider.requests.length;
    await page.getByRole('button', { name: 'From a node' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Run' }).click();
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByText('2 of 2 nodes completed').waitFor();
    expect(product.provider.requests.length).toBe(asked);
    // Runs differ by their variables, and sorted by any column.
    await page.getByRole('link', { name: 'All graphs' }).click();
    const runs = page.getByRole('table', { name: 'Graph runs' });
    const own = runs.getByRole('row').filter({ hasText: 'Six inputs' });
    await own.filter({ hasText: 'TOPIC: low tides' }).getByText('Refused').waitFor();
    await own.filter({ hasText: 'TOPIC: high tides' }).getByText('completed', { exact: true }).waitFor();
    await runs.getByRole('button', { name: 'State' }).click();
    expect(await runs.getByRole('columnheader', { name: 'State' }).getAttribute('aria-sort')).toBe('ascending');
    const states = (await runs.locator('tbody td[data-label="State"]').allInnerTexts()).map((text) => text.trim());
    expect(states).toEqual(states.toSorted());
    await product.call('graph.delete', { id });
    expect(complaints).toEqual([]);
  });

  test('a sub-agent is named by its task, and run again with another one', async () => {
    const { runId, rootRunId } = (await product.call('session.spawn', { task: `Count the tides ${hostile}` })) as {
      runId: string;
      rootRunId: string;
    };
    await product.call('subagent.wait', { runIds: [runId], timeoutMs: 20_000 });
    await using session = await logIn();
    const { page, complaints } = session;
    await follow(page, 'Runs');
    await page.locator(`[data-row="${rootRunId}"]`).getByText(`Count the tides ${hostile}`).first().waitFor();
    // The same run among all executions, which lead to their pages.
    await addFailedJob('among all');
    await page.getByRole('navigation', { name: 'Executions' }).getByRole('link', { name: 'All' }).click();
    const all = page.getByRole('table', { name: 'Executions' });
    await all.getByRole('row').filter({ hasText: 'Job ·' }).first().waitFor();
    await page.getByLabel('Kind').selectOption('run');
    await expect.poll(() => all.getByRole('row').filter({ hasText: 'Job ·' }).count()).toBe(0);
    await all.getByRole('link', { name: `Count the tides ${hostile}` }).click();
    await page.locator(`[data-row="${rootRunId}"]`).waitFor();
    await page.goto(`${product.url}/runs/${runId}`);
    await page.getByRole('dialog').getByRole('button', { name: 'Run again' }).click();
    const task = page.getByRole('dialog').getByLabel('Task');
    expect(await task.inputValue()).toBe(`Count the tides ${hostile}`);
    await task.fill('Count the moons');
    await page.getByRole('dialog').getByRole('button', { name: 'Start' }).click();
    await page.getByRole('rowheader').filter({ hasText: 'Count the moons' }).first().waitFor();
    await page.getByRole('link', { name: 'Help' }).click();
    await page.getByRole('heading', { level: 1, name: 'Sub-agents and graphs' }).waitFor();
    expect(await page.locator('.markdown').innerText()).toContain('gatehouse graph');
    expect(complaints).toEqual([]);
  });

  test.each([
    ['on a screen', {}],
    ['on a phone', phone],
  ] as const)('nobody is kept from using these pages: %s', { timeout: 90_000 }, async (_, look) => {
    await addFailedJob(`axe ${look === phone ? 'phone' : 'screen'}`);
    const turn = askToWrite(look === phone ? 'axe-phone.md' : 'axe-screen.md');
    await using session = await logIn(product.token, { ...look, bypassCSP: true, reducedMotion: 'reduce' });
    const { page } = session;
    const check = async (place: string, find = findingsInBothSchemes): Promise<void> => {
      expect([place, await find(page)]).toEqual([place, []]);
      const isCut = () => [document.documentElement, ...document.querySelectorAll('main')].some((one) => one.scrollWidth > one.clientWidth);
      expect([place, await page.evaluate(isCut)]).toEqual([place, false]);
    };
    await page.goto(`${product.url}/waiting`);
    await page.getByRole('article', { name: 'write' }).waitFor();
    await page.getByRole('article', { name: /^axe/ }).first().waitFor();
    await check('waiting');
    const picture = process.env['GATEHOUSE_PICTURES'];
    if (picture !== undefined) await page.screenshot({ path: `${picture}/waiting-${look === phone ? 'phone' : 'screen'}.png`, fullPage: true });
    await page.getByRole('button', { name: 'Deny' }).click();
    await turn;
    await page.goto(`${product.url}/inbox`);
    await page.getByRole('list', { name: 'Messages' }).getByRole('link').first().click();
    await page.getByRole('article').waitFor();
    await check('inbox');
    if (picture !== undefined) await page.screenshot({ path: `${picture}/inbox-${look === phone ? 'phone' : 'screen'}.png`, fullPage: true });
    for (const [path, settled] of [
      ['/executions', page.getByRole('table', { name: 'Executions' })],
      ['/runs', page.getByRole('table', { name: 'Root runs' })],
      ['/graphs', page.getByRole('table', { name: 'Graph runs' })],
      ['/schedule', page.getByRole('table', { name: 'Jobs', exact: true })],
      ['/help/schedule', page.locator('.markdown')],
    ] as const) {
      if (look === phone && path.startsWith('/help')) continue;
      await page.goto(product.url + path);
      await settled.waitFor();
      // Their colours are those of the pages above.
      await check(path, seriousFindings);
      if (picture !== undefined)
        await page.screenshot({
          path: `${picture}${path.replace('/help', '/help-')}-${look === phone ? 'phone' : 'screen'}.png`.replace('-/', '-'),
          fullPage: true,
        });
    }
    if (look !== phone) return;
    await page.goto(`${product.url}/inbox`);
    await page.getByRole('list', { name: 'Messages' }).getByRole('link').first().tap();
    await page.getByRole('article').waitFor();
    expect(await page.getByRole('list', { name: 'Messages' }).isVisible()).toBe(false);
    await page.getByRole('link', { name: 'All messages' }).tap();
    await page.getByRole('list', { name: 'Messages' }).waitFor();
    await check('list of the inbox', seriousFindings);
    if (picture !== undefined) await page.screenshot({ path: `${picture}/inbox-list-phone.png` });
  });
});
