import { createHmac } from 'node:crypto';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeTelegram, startFakeTelegram } from '../packages/testkit/src/fake-telegram.ts';
import { findingsInBothSchemes, seriousFindings } from './lib/axe.ts';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { logInTo, openPage } from './lib/dashboard.ts';
import { type Product, scopedTokens, startProduct, tokenOf } from './lib/product.ts';

const secret = 's'.repeat(40);
const sentence = 'The parameter fruit takes no bananas';
const hostile = '<img src=x onerror="window.taken=1">';

/** Traces, and the way from each failure to its cause. */
describe.skipIf(chromiumPath === undefined)('traces in the dashboard', () => {
  let product: Product;
  let browser: Browser;
  let telegram: FakeTelegram;

  beforeAll(async () => {
    telegram = await startFakeTelegram();
    const bot = { type: 'telegram', token: telegram.token, apiUrl: telegram.url, dm: { policy: 'open' } };
    [product, browser] = await Promise.all([
      startProduct({
        provider: {
          answer({ path, body }) {
            if (!path.endsWith('/chat/completions')) return undefined;
            const text = JSON.stringify(body);
            if (text.includes('BAD')) return { status: 400, error: { message: sentence } };
            if (text.includes('WAIT')) return { hang: true };
            if (!text.includes('LIST') || text.includes('tool_call_id')) return { text: 'Two files.', usage: { input: 300, output: 8 } };
            return { toolCalls: [{ id: 'call-1', name: 'read', arguments: '{"path":"none.md"}' }], usage: { input: 200, output: 20 } };
          },
        },
        config: {
          gateway: { tokens: scopedTokens },
          providers: (url) => ({ other: { type: 'openai-compatible', baseUrl: url, apiKey: 'k', models: [{ id: 'other-model' }] } }),
          agents: { default: { model: 'local/test-model' } },
          channels: { bot, revoked: { ...bot, token: '4242:another-token' }, away: { ...bot, apiUrl: 'http://127.0.0.1:9' } },
          mcp: { servers: { broken: { transport: 'http', url: 'http://127.0.0.1:9/mcp', allowPrivate: true } } },
          webhooks: { mappings: [{ id: 'build', match: { path: 'build' }, messageTemplate: 'BAD build {{number}}', secret }] },
        },
      }),
      startBrowser(),
    ]);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await product?.[Symbol.asyncDispose]();
    await telegram?.[Symbol.asyncDispose]();
  });

  const panel = (page: Page) => page.getByRole('region', { name: 'Selected step' });

  describe('failures', () => {
    /** Opens a page, clicks at most three times, and waits for the cause. */
    async function reaches(page: Page, path: string, clicks: readonly Locator[]): Promise<void> {
      await page.goto(product.url + path);
      for (const target of clicks) await target.click();
      expect(clicks.length).toBeLessThanOrEqual(3);
      await panel(page).getByText(sentence).first().waitFor();
    }

    test('each show their cause, or lead to it with at most three clicks', async () => {
      await using session = await logInTo(product, browser, product.token);
      const { page, complaints } = session;

      // An answer in the chat: the cause is part of it.
      await page.getByRole('textbox', { name: 'Message' }).fill('BAD question');
      await page.keyboard.press('Enter');
      await page.getByRole('alert').getByText(sentence).waitFor();
      await page.getByRole('article').last().getByRole('link', { name: 'Trace' }).click();
      await panel(page).getByText(sentence).first().waitFor();
      await page.getByRole('link', { name: 'Open conversation' }).waitFor();
      expect(await findingsInBothSchemes(page)).toEqual([]);

      // A sub-agent.
      const { runId, rootRunId } = (await product.call('session.spawn', { task: 'BAD work' })) as { runId: string; rootRunId: string };
      await product.call('subagent.wait', { runIds: [runId], timeoutMs: 20_000 });
      await page.goto(`${product.url}/runs`);
      const root = page.locator(`[data-row="${rootRunId}"]`);
      await root.getByText(sentence).first().waitFor();
      await reaches(page, '/runs', [root.getByRole('link', { name: /^Trace of/ })]);
      // Its id leads to it.
      await page.goto(`${product.url}/runs/${runId}`);
      await page.getByRole('dialog').getByText(sentence).waitFor();
      // So do the alert in the inbox, and its event.
      await page.goto(`${product.url}/inbox`);
      await page
        .getByRole('list', { name: 'Messages' })
        .getByRole('link')
        .filter({ hasText: /^Unread: Sub-agent|^Sub-agent/ })
        .first()
        .click();
      await page.getByRole('article').filter({ hasText: runId }).getByRole('link', { name: 'Open run' }).click();
      await page.getByRole('dialog').getByText(sentence).waitFor();
      await page.goto(`${product.url}/events`);
      await page.getByRole('link', { name: 'Open run' }).first().click();
      await page.getByRole('dialog').getByText(sentence).waitFor();
      // The lines of the log about the turn lead to its trace.
      await page.goto(`${product.url}/logs`);
      await page.getByRole('link', { name: 'Open trace' }).first().click();
      await panel(page).getByText(sentence).first().waitFor();

      // A node of a graph.
      const { graphId } = (await product.call('graph.execute', { nodes: [{ node_id: 'one', task: 'BAD node' }] })) as { graphId: string };
      const node = page.getByRole('navigation', { name: 'Nodes' }).getByRole('button', { name: /^one.*failed/ });
      await reaches(page, `/graphs/runs/${graphId}`, [node, page.getByRole('link', { name: 'Trace of one' })]);

      // A job.
      await product.call('cron.add', {
        name: 'report',
        schedule: { kind: 'every', everyMs: 3_600_000 },
        payload: { kind: 'agent_turn', message: 'BAD report' },
      });
      await product.call('cron.run', { jobName: 'report' });
      await page.goto(`${product.url}/schedule`);
      const job = page.getByRole('table', { name: 'Jobs' }).getByRole('row').filter({ hasText: 'report' });
      await job.getByText(sentence).waitFor();
      await reaches(page, '/schedule', [job.getByRole('link', { name: 'Trace' })]);

      // A webhook.
      const body = '{"number":7}';
      const signature = createHmac('sha256', secret).update(body).digest('hex');
      const headers = { 'content-type': 'application/json', 'x-webhook-signature': signature };
      expect((await fetch(`${product.url}/hooks/build`, { method: 'POST', body, headers })).status).toBe(200);
      const delivery = page.getByRole('list', { name: 'Deliveries' }).getByRole('listitem').filter({ hasText: 'BAD build 7' });
      await page.goto(`${product.url}/webhooks`);
      await delivery.getByText('failed', { exact: true }).waitFor();
      await reaches(page, '/webhooks', [delivery.locator('summary'), delivery.getByRole('link', { name: 'Trace' })]);

      // A channel, whose platform refuses the token.
      await page.goto(`${product.url}/channels`);
      const channels = page.getByRole('list', { name: 'Channels' });
      const channel = channels.getByRole('listitem').filter({ hasText: 'revoked' });
      await channel.getByText('refused', { exact: true }).waitFor();
      await channel
        .getByRole('status')
        .getByText(/Unauthorized|token/)
        .waitFor();

      // A channel whose platform does not answer says when it is tried again.
      await channels
        .getByRole('listitem')
        .filter({ hasText: 'away' })
        .getByText(/Next try at/)
        .waitFor();

      // A message of a chat whose turn failed.
      telegram.chats.say({ id: 1001, first_name: 'Ada' }, 'BAD message');
      const incoming = page.getByRole('list', { name: 'Messages in' }).getByRole('listitem').filter({ hasText: 'BAD message' });
      await incoming.getByText('failed', { exact: true }).waitFor();
      const toConversation = incoming.getByRole('link', { name: /^cv_/ });
      await reaches(page, '/channels', [incoming.locator('summary'), toConversation, page.getByRole('link', { name: 'Trace of message 1' })]);
      const failed = page.getByRole('list', { name: 'Traces' }).getByRole('link').first();
      await reaches(page, '/channels', [page.getByRole('link', { name: 'Failed turns of bot' }), failed]);

      // An answer that was not delivered.
      telegram.chats.say({ id: 1002, first_name: 'Eve' }, 'hello');
      telegram.chats.block(1002);
      const outgoing = page.getByRole('list', { name: 'Messages out' }).getByRole('listitem').filter({ hasText: 'rejected' });
      await page.goto(`${product.url}/channels`);
      await outgoing.locator('summary').click();
      await outgoing.getByText('bot was blocked by the user').waitFor();
      await outgoing.getByRole('link', { name: 'Trace' }).click();
      await page.getByRole('treeitem', { name: /^Delivery .* failed/ }).waitFor();

      // An MCP server.
      await page.goto(`${product.url}/agents/default/mcp`);
      await page.getByText('No answer from 127.0.0.1:9').first().waitFor();
      await page.getByRole('link', { name: 'Failed turns with tools of broken' }).click();
      await page.getByText('No traces').waitFor();
      expect(await page.getByLabel('Condition').inputValue()).toBe('tool ~ "mcp__broken--" and toolErrors > 0');
      expect(complaints.filter((one) => !one.startsWith('Applying inline style') && !/status of [45]/.test(one))).toEqual([]);
    });
  });

  test('a trace shows its steps on a time axis with the texts of the conversation, for the keyboard and on a phone', async () => {
    await using session = await logInTo(product, browser, product.token);
    const { page } = session;
    await product.call('agent.execute', { message: `LIST ${hostile}`, sessionKey: 'ada:desk' });
    const { messages } = (await product.call('session.history', { sessionKey: 'ada:desk' })) as { messages: { turnId: string }[] };
    await page.goto(`${product.url}/traces/${messages[0]?.turnId}`);
    const tree = page.getByRole('tree', { name: 'Steps' });
    await tree.getByRole('treeitem', { name: /^Tool call read error/ }).waitFor();
    await panel(page).getByText(`LIST ${hostile}`).waitFor();
    await panel(page).getByText('Two files.').waitFor();
    await tree.focus();
    for (let tries = 0; tries < 12 && !(await panel(page).getByRole('heading', { level: 2, name: 'read' }).isVisible()); tries += 1)
      await page.keyboard.press('ArrowDown');
    await panel(page).getByRole('region', { name: 'Arguments' }).getByText('"path"').waitFor();
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowLeft');
    await expect.poll(() => tree.getByRole('treeitem').count()).toBe(1);
    await page.keyboard.press('ArrowRight');
    await page.setViewportSize({ width: 390, height: 780 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    expect(await findingsInBothSchemes(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 800 });
    expect(await page.evaluate(() => 'taken' in window)).toBe(false);
    // A caller that may not see the turn learns nothing of it.
    await using other = await logInTo(product, browser, tokenOf('rpc'), {});
    await other.page.goto(`${product.url}/traces/${messages[0]?.turnId}`);
    await other.page.getByText('No trace').waitFor();
  });

  test('a turn is replayed on another model, next to the original, without being kept', async () => {
    await using session = await logInTo(product, browser, product.token);
    const { page } = session;
    await product.call('agent.execute', { message: 'How many files?', sessionKey: 'ada:replay' });
    const { messages } = (await product.call('session.history', { sessionKey: 'ada:replay' })) as { messages: { turnId: string }[] };
    await page.goto(`${product.url}/traces/${messages[0]?.turnId}`);
    await page.getByRole('button', { name: 'Replay on another model' }).click();
    const dialog = page.getByRole('dialog', { name: 'Replay on another model' });
    await dialog.getByLabel('Model').fill('other/other-model');
    await dialog.getByRole('button', { name: 'Replay', exact: true }).click();
    const compared = dialog.getByRole('region', { name: 'Original and replay' });
    await expect
      .poll(() => compared.getByRole('row').allInnerTexts())
      .toEqual([
        expect.stringContaining('Model') as string,
        expect.stringMatching(/^Original\s+local\/test-model\s+stop/) as string,
        expect.stringMatching(/^Replay\s+other\/other-model\s+stop/) as string,
      ]);
    expect(await seriousFindings(page)).toEqual([]);
    expect((await product.call('session.history', { sessionKey: 'ada:replay' })) as object).toMatchObject({ total: messages.length });
    await compared.getByRole('link', { name: 'Trace of the replay' }).click();
    await page.getByRole('status').getByText('synthetic').waitFor();
  });

  test('evaluations are listed, with a report of each case and the way to its trace', async () => {
    await using session = await logInTo(product, browser, product.token);
    const { page } = session;
    const cases = [
      { name: 'counts', input: 'How many files?', checks: { contains: 'Two' } },
      { name: 'names', input: `What are ${hostile}?`, checks: { contains: 'Three' } },
    ];
    await product.call('eval.run', { name: 'Files', cases, variants: [{ agentId: 'default' }, { agentId: 'default', model: 'other/other-model' }] });
    await openPage(page, 'Evaluations');
    const row = page.getByRole('row').filter({ hasText: 'Files' });
    await expect.poll(async () => (await page.getByRole('button', { name: 'Refresh' }).click(), row.innerText())).toContain('completed');
    await row.getByText(/1 of 2.*1 of 2/).waitFor();
    await row.getByRole('link', { name: 'Files' }).click();
    const failed = page.getByRole('row').filter({ hasText: 'names' });
    await failed.getByText('contains Three').first().waitFor();
    expect(await failed.getByText('failed', { exact: true }).count()).toBe(2);
    await failed.getByText('Question and answer').first().click();
    await failed.getByText(`What are ${hostile}?`).first().waitFor();
    expect(await findingsInBothSchemes(page)).toEqual([]);
    await failed.getByRole('link', { name: 'Trace' }).first().click();
    await page.getByRole('status').getByText('synthetic').waitFor();
    expect(await page.evaluate(() => 'taken' in window)).toBe(false);
  });

  test('a trace of hundreds of steps draws only the rows in view', async () => {
    await using session = await logInTo(product, browser, product.token);
    const { page } = session;
    const steps = Array.from({ length: 500 }, (_, id) => ({
      id,
      kind: 'tool',
      name: `tool ${id}`,
      at: id * 20,
      ms: 15,
      outcome: id === 470 ? 'error' : 'ok',
    }));
    const tokens = { in: 1, out: 1, cached: 0, cacheWritten: 0 };
    const counts = { modelCalls: 1, toolCalls: 500, toolErrors: 1, tokens, costNano: 5, droppedSteps: 0 };
    const about = {
      id: 'tn_long',
      kind: 'turn',
      traceId: 'a'.repeat(32),
      principalId: 'token:x',
      agentId: 'default',
      startedAtMs: 1_790_000_000_000,
    };
    const ended = {
      endedAtMs: 1_790_000_010_000,
      outcome: 'degraded',
      endReason: 'stop',
      error: null,
      model: 'local/m',
      synthetic: false,
      refs: {},
      facts: {},
    };
    await page.route('**/rpc', async (route) => {
      const asked = route.request().postDataJSON() as { id: number; method?: string };
      if (asked.method !== 'obs.trace.get') return route.fallback();
      return route.fulfill({
        json: { jsonrpc: '2.0', id: asked.id, result: { records: [{ ...about, ...ended, ...counts, steps }], truncated: false } },
      });
    });
    await page.goto(`${product.url}/traces/tn_long`);
    const rows = page.getByRole('treeitem');
    await page.getByRole('treeitem', { name: /tool 0 ok/ }).waitFor();
    expect(await rows.count()).toBeLessThan(90);
    await page.getByRole('tree').focus();
    await page.keyboard.press('End');
    await page.getByRole('treeitem', { name: /tool 499 ok/, selected: true }).waitFor();
    expect(await rows.count()).toBeLessThan(90);
    expect(await seriousFindings(page)).toEqual([]);
  });

  test('a turn is shown while it runs', async () => {
    await using session = await logInTo(product, browser, product.token);
    const { page } = session;
    await page.getByRole('textbox', { name: 'Message' }).fill('WAIT a moment');
    await page.keyboard.press('Enter');
    await page.getByRole('article').last().getByRole('link', { name: 'Trace' }).click();
    await page.getByRole('status').getByText('running').first().waitFor();
    const call = page.getByRole('treeitem', { name: /^Model call .* running/ });
    await call.waitFor();
    expect(await call.count()).toBe(1);
  });

  test('the pages Health and Logs show the state of the gateway and its log, live', async () => {
    await using session = await logInTo(product, browser, product.token);
    const { page } = session;
    await openPage(page, 'Health');
    await page.getByRole('region', { name: 'Checks' }).getByText('Storage and disk').waitFor();
    await page.getByRole('region', { name: 'Model providers' }).getByText('local').first().waitFor();
    await page.getByRole('region', { name: 'Storage and process' }).getByText('writable').waitFor();
    for (const text of [/^[\d.,]+ [KMG]iB free$/, 'not used yet'])
      await page.getByRole('region', { name: 'Storage and process' }).getByText(text).waitFor();
    await page.getByRole('region', { name: 'Records' }).getByText('kept 400 days').first().waitFor();
    expect(await findingsInBothSchemes(page)).toEqual([]);
    await openPage(page, 'Logs');
    await page.getByText('Live', { exact: true }).waitFor();
    const lines = page.getByRole('list', { name: 'Log lines' });
    await product.call('daemon.setLogLevel', { level: 'info', module: 'system' });
    await lines.getByText('Log level changed').first().waitFor();
    await page.getByLabel('Module').selectOption('system');
    await lines.locator('summary').first().click();
    await lines.getByText('"system"').first().waitFor();
    expect(await findingsInBothSchemes(page)).toEqual([]);
    await page.setViewportSize({ width: 390, height: 780 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    await page.setViewportSize({ width: 1280, height: 800 });
  });
});
