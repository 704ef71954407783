import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findingsInBothSchemes, seriousFindings } from './lib/axe.ts';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { logInTo, openPage } from './lib/dashboard.ts';
import { type Product, scopedTokens, startProduct } from './lib/product.ts';

interface Read {
  readonly config: {
    readonly logging: { readonly level: string; readonly modules: Readonly<Record<string, string>> };
    readonly gateway: { readonly wsMaxInFlight: number; readonly rateLimit: { readonly maxRequests: number } };
    readonly agents: Readonly<Record<string, { readonly maxSteps: number }>>;
  };
  readonly restartNeeded: readonly string[];
}

const canary = `canary-of-the-settings-${'x'.repeat(32)}`;

/** Returns the complaints that are not about a call that the gateway refused, which the browser reports too. */
const othersThanRefusals = (complaints: readonly string[]) => complaints.filter((complaint) => !/status of 4\d\d/.test(complaint));

/** The settings in the dashboard: configuration, history, secrets, providers and the editor of agents. */
describe.skipIf(chromiumPath === undefined)('the settings in the dashboard', () => {
  let product: Product;
  let browser: Browser;

  beforeAll(async () => {
    [product, browser] = await Promise.all([
      startProduct({
        config: {
          gateway: { tokens: scopedTokens },
          agents: { default: { model: 'local/test-model' }, scout: { name: 'Scout', model: 'local/test-model' } },
        },
      }),
      startBrowser(),
    ]);
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await product?.[Symbol.asyncDispose]();
  });

  const file = () => join(product.home, 'config.yaml');
  const read = async () => (await product.call('config.read')) as Read;
  const logIn = () => logInTo(product, browser, product.token);

  async function openSettings(page: Page, section?: string): Promise<void> {
    await openPage(page, 'Settings');
    if (section !== undefined) await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: section, exact: true }).click();
    await page.getByRole('heading', { level: 2, name: section ?? 'Gateway' }).waitFor();
  }

  async function openPart(page: Page, name: string): Promise<void> {
    await page.getByRole('navigation', { name: 'Parts of the settings' }).getByRole('link', { name }).click();
  }

  /** Saves what is changed, and returns the removed and added lines that the dialog showed. */
  async function save(page: Page): Promise<string[]> {
    await page.getByRole('button', { name: 'Review and save' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('region', { name: 'Changes of config.yaml' }).waitFor();
    const lines = await dialog.locator('.diff-line.added, .diff-line.removed').allInnerTexts();
    const confirmation = dialog.getByRole('checkbox');
    if (await confirmation.isVisible()) {
      expect(await dialog.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true);
      await confirmation.check();
    }
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText(/^Saved as version \d+\.$/).waitFor();
    return lines.map((line) => line.replaceAll(/\s+/g, ' ').trim());
  }

  test('a key is found by its description, changed, and in force at once; a default comes back', async () => {
    await using session = await logIn();
    const { page, complaints } = session;
    await openSettings(page);
    await page.getByRole('searchbox', { name: 'Search settings' }).fill('log level');
    await page.getByText(/^\d+ settings? found$/).waitFor();
    await page.getByRole('searchbox', { name: 'Search settings' }).fill('logging.lev');
    const level = page.getByRole('combobox', { name: 'Level' });
    await level.waitFor();
    await page.keyboard.press('Enter');
    expect(await level.evaluate((field) => field === document.activeElement)).toBe(true);
    await level.selectOption('debug');
    await page.getByText('In force as soon as it is saved').waitFor();
    expect(await save(page)).toEqual(['- }', '+ }, logging: {level: debug}']);
    await page.getByText('In force now: logging.level').waitFor();
    expect((await read()).config.logging.level).toBe('debug');
    await page.getByRole('button', { name: 'Use default: Level' }).click();
    await save(page);
    expect((await read()).config.logging.level).toBe('info');
    expect(await readFile(file(), 'utf8')).not.toContain('level');
    expect(complaints).toEqual([]);
  });

  test('an invalid value is explained at its field, and nothing is written', async () => {
    await using session = await logIn();
    const { page, complaints } = session;
    const before = await readFile(file(), 'utf8');
    await openSettings(page);
    const field = page.getByRole('textbox', { name: 'Ws max in flight' });
    await field.fill('many');
    const row = page.locator('[id="setting-gateway.wsMaxInFlight"]');
    await row.getByText('expected an integer').waitFor();
    expect(await field.getAttribute('aria-invalid')).toBe('true');
    expect(await page.getByRole('button', { name: 'Review and save' }).isDisabled()).toBe(true);
    expect(await seriousFindings(page)).toEqual([]);
    // The text stays while other parts of the settings are shown; leaving them asks.
    await page.getByRole('link', { name: 'History' }).click();
    await page.getByRole('link', { name: 'Configuration', exact: true }).click();
    expect(await field.inputValue()).toBe('many');
    let asked = 0;
    page.on('dialog', (dialog) => {
      asked += 1;
      void dialog.dismiss();
    });
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Tokens' }).click();
    expect(asked).toBe(1);
    // As JSON, a text that is none yet is kept too.
    await page.getByRole('button', { name: 'JSON: Gateway' }).click();
    const json = page.getByRole('textbox', { name: 'Gateway as JSON' });
    await json.fill('{');
    await page.getByText('Not valid JSON').first().waitFor();
    await page.getByRole('button', { name: 'Discard' }).click();
    expect(JSON.parse(await json.inputValue())).toHaveProperty('tokens');
    await page.getByRole('button', { name: 'Form: Gateway' }).click();
    expect(await field.inputValue()).not.toBe('many');
    expect(await readFile(file(), 'utf8')).toBe(before);
    expect(othersThanRefusals(complaints)).toEqual([]);
  });

  test('a key that needs a restart says so until the restart', async () => {
    await using session = await logIn();
    const { page, complaints } = session;
    await openSettings(page);
    const field = page.getByRole('textbox', { name: 'Max connections' });
    const inForce = await field.inputValue();
    await field.fill('3100');
    await page.getByText('In force after a restart').waitFor();
    await save(page);
    const banner = page.getByRole('status', { name: 'Restart needed' });
    await banner.getByText('gateway.maxConnections').waitFor();
    await banner.getByRole('button', { name: 'Restart now' }).waitFor();
    expect((await read()).restartNeeded).toEqual(['gateway.maxConnections']);
    expect(await seriousFindings(page)).toEqual([]);
    await (inForce === '' ? page.getByRole('button', { name: 'Use default: Max connections' }).click() : field.fill(inForce));
    await save(page);
    await banner.waitFor({ state: 'detached' });
    expect(complaints).toEqual([]);
  });

  test('changes of others are shown, and keep what was typed', async () => {
    await using session = await logIn();
    const { page, complaints } = session;
    await openSettings(page, 'Agents');
    await page.getByRole('button', { name: 'scout local/test-model' }).click();
    await page.getByRole('textbox', { name: 'Max steps' }).fill('33');
    // By hand, as editors do.
    const text = await readFile(file(), 'utf8');
    await writeFile(`${file()}.draft`, `# edited\n${text.replace('"Scout"', '"Explorer"')}`);
    await rename(`${file()}.draft`, file());
    const notice = page.getByRole('alert').filter({ hasText: 'config.yaml has changed meanwhile' });
    await notice.getByRole('rowheader', { name: 'agents.scout.name' }).waitFor();
    expect(await page.getByRole('textbox', { name: 'Max steps' }).inputValue()).toBe('33');
    await page.getByRole('button', { name: 'Review and save' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('region', { name: 'Changes of config.yaml' }).waitFor();
    // Another one, of which the page learns only when its own is refused: until then it loads nothing.
    const refused = Promise.withResolvers<void>();
    await page.route('**/rpc', async (route) => {
      if (route.request().postData()?.includes('"config.read"') === true) await refused.promise;
      await route.continue();
    });
    await product.call('config.set', { path: 'logging.modules.turns', value: 'debug' });
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('nothing was saved').waitFor();
    refused.resolve();
    await dialog.getByRole('rowheader', { name: 'logging.modules.turns' }).waitFor();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText(/^Saved as version \d+\.$/).waitFor();
    const { config } = await read();
    expect(config.agents['scout']).toMatchObject({ name: 'Explorer', maxSteps: 33 });
    expect(config.logging.modules).toEqual({ turns: 'debug' });
    expect(othersThanRefusals(complaints)).toEqual([]);
  });

  test('protected keys ask for a confirmation; entries are added and removed', async () => {
    await using session = await logIn();
    const { page, complaints } = session;
    await openSettings(page, 'Logging');
    await page.getByRole('textbox', { name: 'Name of a new entry of Modules' }).fill('models');
    await page.keyboard.press('Enter');
    await page.getByRole('combobox', { name: 'models' }).selectOption('warn');
    await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Agents changed' }).waitFor({ state: 'detached' });
    await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Agents', exact: true }).click();
    await page.getByRole('button', { name: 'scout local/test-model' }).click();
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Ranger');
    await save(page);
    const { config } = await read();
    expect(config.agents['scout']).toMatchObject({ name: 'Ranger' });
    expect(config.logging.modules).toMatchObject({ models: 'warn' });
    expect(complaints).toEqual([]);
  });

  test('the history shows who changed what, and rolls back', async () => {
    await using session = await logIn();
    const { page, complaints } = session;
    await openSettings(page);
    await page.getByRole('link', { name: 'History' }).click();
    const versions = page.getByRole('list', { name: 'Versions of config.yaml' });
    const byHand = versions.getByRole('listitem').filter({ hasText: 'edited by hand: agents' });
    await byHand.getByText('owner', { exact: true }).waitFor();
    await byHand.getByRole('button', { name: 'edited by hand: agents' }).click();
    const dialog = page.getByRole('dialog');
    const diff = dialog.getByRole('region', { name: /^Changes of version \d+$/ });
    await diff.getByText('# edited').waitFor();
    expect(await diff.locator('.diff-line.added').count()).toBe(2);
    expect(await seriousFindings(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Changes since then' }).click();
    await diff.getByText('+ "name": Ranger').or(diff.getByText('Ranger')).first().waitFor();
    await page.keyboard.press('Escape');
    await byHand.getByRole('button', { name: /^Roll back/ }).click();
    await dialog.getByRole('region', { name: 'Changes of config.yaml' }).waitFor();
    await dialog.getByRole('checkbox').check();
    await dialog.getByRole('button', { name: 'Roll back', exact: true }).click();
    await page.getByText(/^Version \d+ is back, as version \d+\.$/).waitFor();
    await versions.getByRole('listitem').first().getByText('rollback', { exact: true }).waitFor();
    expect((await read()).config.agents['scout']).toMatchObject({ name: 'Explorer', maxSteps: 150 });
    expect(complaints).toEqual([]);
  });

  test('a secret is stored, replaced and removed; its value is never shown', async () => {
    await using session = await logIn();
    const { page, complaints } = session;
    await openSettings(page);
    await openPart(page, 'Secrets');
    await page.getByText('No secrets').waitFor();
    await page.getByRole('button', { name: 'New secret' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name' }).fill('search key');
    await dialog.getByLabel('Value').fill(canary);
    await dialog.getByRole('textbox', { name: 'What it is for' }).fill('Web search');
    await dialog.getByRole('button', { name: 'Store' }).click();
    await page.getByText('Stored SEARCH_KEY.').waitFor();
    const row = page.getByRole('list', { name: 'Secrets' }).getByRole('listitem').filter({ hasText: 'SEARCH_KEY' });
    await row.getByText('not used by config.yaml').waitFor();
    await product.call('config.set', { path: 'webhooks.token', value: '${SEARCH_KEY}', confirm: true });
    await row.getByText('webhooks.token').waitFor();
    await row.getByRole('button', { name: 'Remove SEARCH_KEY' }).click();
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click();
    await dialog.getByRole('alert').getByText('webhooks.token').waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    // The reference is shown where it is used, and the value nowhere.
    await openPart(page, 'Configuration');
    await page.getByRole('searchbox', { name: 'Search settings' }).fill('webhooks.token');
    await page.getByText('From SEARCH_KEY').waitFor();
    expect(await page.content()).not.toContain(canary);
    await product.call('config.set', { path: 'webhooks.token', value: null, confirm: true });
    await openPart(page, 'Secrets');
    await row.getByRole('button', { name: 'Remove SEARCH_KEY' }).click();
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click();
    await page.getByText('Removed SEARCH_KEY.').waitFor();
    expect(othersThanRefusals(complaints)).toEqual([]);
  });

  test('a provider is tested, added with its key and prices, and removed', async () => {
    await using session = await logIn();
    const { page, complaints } = session;
    await openSettings(page);
    await openPart(page, 'Providers');
    await page.getByRole('button', { name: 'Test local' }).click();
    await page.getByRole('region', { name: 'Provider local' }).getByText('Called: test-model.').waitFor();
    await page.getByRole('button', { name: 'Add a provider' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('combobox', { name: 'Vendor' }).selectOption('OpenAI-compatible server');
    await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill('second');
    await dialog.getByLabel('Key', { exact: true }).fill('key-of-the-second');
    await dialog.getByRole('textbox', { name: 'Base URL' }).fill('http://127.0.0.1:1/v1');
    await dialog.getByRole('button', { name: 'Test' }).click();
    await dialog.getByRole('status').locator('.notice.bad').waitFor();
    await dialog.getByRole('textbox', { name: 'Base URL' }).fill(product.provider.url);
    await dialog.getByRole('button', { name: 'Test' }).click();
    await dialog.getByRole('status').locator('.notice.good').waitFor();
    await dialog.getByRole('button', { name: 'Add a model' }).click();
    await dialog.getByRole('combobox', { name: 'Name of model 1' }).fill('test-model');
    await dialog.getByRole('textbox', { name: 'Input price of test-model' }).fill('much');
    await dialog.getByRole('textbox', { name: 'Output price of test-model' }).fill('2');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.getByText('expected a number').waitFor();
    await dialog.getByRole('textbox', { name: 'Input price of test-model' }).fill('0.5');
    expect(await seriousFindings(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByText('Added second. Its key is stored as SECOND_API_KEY.').waitFor();
    const card = page.getByRole('region', { name: 'Provider second' });
    await card.getByText('SECOND_API_KEY').waitFor();
    await card.getByText('1 model').click();
    await card.getByRole('cell', { name: '0.5' }).waitFor();
    expect(await readFile(file(), 'utf8')).toContain('${SECOND_API_KEY}');
    await card.getByRole('button', { name: 'Remove second' }).click();
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click();
    await card.waitFor({ state: 'detached' });
    expect(complaints).toEqual([]);
  });

  test('an agent is changed by subject: models from the catalog, limits, what is wrong at its field', async () => {
    await using session = await logIn();
    const { page, complaints } = session;
    await openPage(page, 'Agents & models');
    await page.locator('a[href="/agents/scout"]').first().click();
    await page.getByRole('heading', { level: 2, name: 'Model' }).waitFor();
    const parts = page.getByRole('navigation', { name: 'Parts of the configuration' });
    const fallbacks = page.getByRole('combobox', { name: 'Fallback models' });
    await fallbacks.fill('local/none');
    await page.keyboard.press('Enter');
    await page.locator('[id="setting-agents.scout.fallbackModels"]').getByText('local/none').nth(1).waitFor();
    await page.getByRole('button', { name: 'Remove local/none' }).click();
    await parts.getByRole('button', { name: /^Budgets and limits/ }).click();
    const steps = page.getByRole('textbox', { name: 'Max steps' });
    await steps.fill('0');
    await page.locator('[id="setting-agents.scout.maxSteps"] .field-error').waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await steps.fill('44');
    await parts.getByRole('button', { name: /^Heartbeat/ }).click();
    await page.getByRole('textbox', { name: 'Prompt' }).fill('Look after the garden');
    await page.getByText('In force from the next turn').waitFor();
    await page.getByRole('button', { name: 'Review and save' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('rowheader', { name: 'heartbeat.prompt' }).waitFor();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.', { exact: true }).waitFor();
    expect((await read()).config.agents['scout']).toMatchObject({ maxSteps: 44, heartbeat: { prompt: 'Look after the garden' } });
    await parts.getByRole('button', { name: /^Budgets and limits/ }).click();
    await page.getByRole('button', { name: 'Use default: Max steps' }).click();
    await page.getByRole('button', { name: 'Review and save' }).click();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.', { exact: true }).waitFor();
    expect((await read()).config.agents['scout']).toMatchObject({ maxSteps: 150 });
    expect(othersThanRefusals(complaints)).toEqual([]);
  });

  test('thousands of keys are drawn and searched in parts', async () => {
    const modules = Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`module${index}`, 'warn']));
    await product.call('config.set', { path: 'logging.modules', value: modules });
    await using session = await logIn();
    const { page, complaints } = session;
    await openSettings(page, 'Logging');
    await page.getByRole('button', { name: 'Show more (1950)' }).waitFor();
    expect(await page.locator('.setting').count()).toBeLessThan(60);
    await page.getByRole('searchbox', { name: 'Search settings' }).fill('module1999');
    await page.getByRole('button', { name: 'module1999', exact: true }).waitFor();
    await page.getByRole('searchbox', { name: 'Search settings' }).fill('a');
    await page.getByRole('button', { name: /^Show more/ }).waitFor();
    expect(await page.locator('.setting').count()).toBeLessThan(60);
    await product.call('config.set', { path: 'logging.modules', value: null });
    expect(complaints).toEqual([]);
  });

  test('has no accessibility findings, and nothing wider than a phone', async () => {
    await product.call('config.set', { path: 'secrets.readOnly', value: true, confirm: true });
    await using session = await logInTo(product, browser, product.token, { bypassCSP: true, reducedMotion: 'reduce' });
    const { page, complaints } = session;
    await openSettings(page);
    for (const part of ['Configuration', 'History']) {
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.getByRole('navigation', { name: 'Parts of the settings' }).getByRole('link', { name: part }).click();
      await page
        .getByRole('heading', { level: 2, name: 'Gateway' })
        .or(page.getByRole('list', { name: 'Versions of config.yaml' }))
        .waitFor();
      expect([part, await findingsInBothSchemes(page)]).toEqual([part, []]);
      await page.setViewportSize({ width: 390, height: 844 });
      expect([part, await page.evaluate(() => document.querySelector('main')?.scrollWidth)]).toEqual([part, 390]);
      expect([part, await seriousFindings(page)]).toEqual([part, []]);
    }
    expect(complaints).toEqual([]);
  });
});
