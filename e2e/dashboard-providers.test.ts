import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { seriousFindings } from './lib/axe.ts';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { logInTo, openPage } from './lib/dashboard.ts';
import { type Product, startProduct } from './lib/product.ts';

const sentence = 'Incorrect API key provided: it was withdrawn';

/** The state of model providers, and causes of failures, in the dashboard. */
describe.skipIf(chromiumPath === undefined)('a model provider that refuses the credentials, in the dashboard', () => {
  let product: Product;
  let browser: Browser;
  let isRefused = true;

  beforeAll(async () => {
    [product, browser] = await Promise.all([
      startProduct({
        provider: {
          answer: ({ path, body }) => {
            if (!path.endsWith('/chat/completions')) return undefined;
            if (JSON.stringify(body).includes('BAD')) return { status: 400, error: { message: 'The parameter fruit takes no bananas' } };
            return isRefused ? { status: 401, error: { message: sentence } } : { text: 'Done.' };
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

  test('the badge names the reason and links to the provider, which shows its cause and is retried at once', async () => {
    await using session = await logInTo(product, browser, product.token);
    const { page, complaints } = session;
    await page.getByRole('button', { name: 'Running' }).waitFor();
    // Somebody wrote this configuration: the checklist of a new installation is not offered.
    expect(await page.getByRole('link', { name: /^Get started/ }).count()).toBe(0);
    const { runId } = (await product.call('session.spawn', { task: 'Work' })) as { runId: string };
    const badge = page.getByRole('button', { name: 'Degraded' });
    await badge.waitFor();
    expect(await badge.getAttribute('title')).toBe('A model provider refused the credentials');
    await page.getByRole('link', { name: 'A model provider refused the credentials' }).click();
    await page.getByRole('heading', { level: 1, name: 'Agents & models' }).waitFor();
    const provider = page.getByRole('region', { name: 'Provider local' });
    await provider.getByText(/^refused, next call \d/).waitFor();
    await provider.getByText(sentence).waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    isRefused = false;
    await provider.getByRole('button', { name: 'Retry now: local' }).click();
    await provider.getByText('ok', { exact: true }).waitFor();
    await provider.getByText('work waiting for local is retried now').waitFor();
    await page.getByRole('button', { name: 'Running' }).waitFor();
    expect(await page.getByRole('link', { name: 'A model provider refused the credentials' }).count()).toBe(0);
    // The waiting work runs without further action.
    const { results } = (await product.call('subagent.wait', { runIds: [runId], timeoutMs: 20_000 })) as {
      results: { completion?: { endReason: string } }[];
    };
    expect(results[0]?.completion?.endReason).toBe('completed');
    expect(complaints).toEqual([]);
  });

  test("a failed sub-agent and a failed node show the provider's message", async () => {
    await using session = await logInTo(product, browser, product.token);
    const { page, complaints } = session;
    const { runId, rootRunId } = (await product.call('session.spawn', { task: 'BAD fruit' })) as { runId: string; rootRunId: string };
    await product.call('subagent.wait', { runIds: [runId], timeoutMs: 20_000 });
    await openPage(page, 'Runs');
    const twist = page.locator(`[data-row="${rootRunId}"]`).getByRole('button', { name: /^Sub-agents of/ });
    await twist.waitFor();
    if ((await twist.getAttribute('aria-expanded')) === 'false') await twist.click();
    await page
      .locator('.run-row')
      .filter({ hasText: 'BAD fruit' })
      .getByRole('button', { name: `…${runId.slice(-8)}` })
      .click();
    await page.getByRole('dialog').getByText('takes no bananas').waitFor();
    await page.keyboard.press('Escape');
    const { graphId } = (await product.call('graph.execute', { nodes: [{ node_id: 'one', task: 'BAD work' }] })) as { graphId: string };
    await page.goto(`${product.url}/graphs/runs/${graphId}`);
    await page.locator('.react-flow__node').filter({ hasText: 'one' }).click();
    await page.getByRole('region', { name: 'Node one' }).getByText('takes no bananas').waitFor();
    expect(complaints).toEqual([]);
  });
});
