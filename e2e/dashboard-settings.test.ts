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
    expect(complaints.filter((complaint) => !complaint.includes('400'))).toEqual([]);
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
    // Another one, in the moment before the click: refused with the changes of both, or already part of what the dialog shows.
    await product.call('config.set', { path: 'logging.modules.turns', value: 'debug' });
    await dialog.getByRole('button', { name: 'Save' }).click();
    const saved = page.getByText(/^Saved as version \d+\.$/);
    await saved.or(dialog.getByText('nothing was saved')).first().waitFor();
    if (!(await saved.isVisible())) {
      await dialog.getByRole('rowheader', { name: 'logging.modules.turns' }).waitFor();
      await dialog.getByRole('button', { name: 'Save' }).click();
      await saved.waitFor();
    }
    const { config } = await read();
    expect(config.agents['scout']).toMatchObject({ name: 'Explorer', maxSteps: 33 });
    expect(config.logging.modules).toEqual({ turns: 'debug' });
    expect(complaints.filter((complaint) => !complaint.includes('409'))).toEqual([]);
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

  test('has no accessibility findings, and nothing wider than a phone', async () => {
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
