import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chromiumPath, startBrowser } from './lib/browser.ts';
import { logInTo } from './lib/dashboard.ts';
import { type Product, startProduct } from './lib/product.ts';

/** Edits config.yaml as a person would. */
async function edit({ home }: Product, more: object): Promise<void> {
  const file = join(home, 'config.yaml');
  const config: Record<string, object> = JSON.parse(await readFile(file, 'utf8'));
  for (const [section, values] of Object.entries(more)) config[section] = { ...config[section], ...values };
  await writeFile(file, JSON.stringify(config, null, 2));
}

test('a daemon notices edits of its file: live keys apply, and a mistake is reported and changes nothing', async () => {
  await using product = await startProduct();
  const name = async () => product.call('agents.get', { agentId: 'default' });
  await edit(product, { agents: { default: { name: 'Edited' } } });
  await expect.poll(name, { timeout: 10_000 }).toMatchObject({ config: { name: 'Edited' } });
  await edit(product, { agents: { default: { nmae: 'Typo' } } });
  const fault = expect.stringMatching(/config\.yaml:\d+:\d+: agents\.default\.nmae: .*"name"/);
  await expect.poll(() => product.call('gateway.status'), { timeout: 10_000 }).toMatchObject({ configFault: fault });
  expect(await name()).toMatchObject({ config: { name: 'Edited' } });
});

describe.skipIf(chromiumPath === undefined)('the status dialog in Chromium', () => {
  test('names changed keys that need a restart, and restarts', async () => {
    await using product = await startProduct();
    await using browser = await startBrowser();
    await edit(product, { gateway: { wsMaxMessageBytes: 2048 } });
    const needed = async () => (await product.call('gateway.status')) as { readonly restartNeeded: readonly string[] };
    await expect.poll(needed, { timeout: 10_000 }).toMatchObject({ restartNeeded: ['gateway.wsMaxMessageBytes'] });
    await using session = await logInTo(product, browser, product.token);
    const { page } = session;
    await page.locator('.status-button').click();
    const dialog = page.getByRole('dialog', { name: 'Gateway status' });
    await dialog.getByText('gateway.wsMaxMessageBytes').waitFor();
    await dialog.getByRole('button', { name: 'Restart now' }).click();
    await dialog.getByText('The gateway restarts.').waitFor();
    await expect
      .poll(
        () =>
          needed().then(
            ({ restartNeeded }) => restartNeeded.length,
            () => 'away',
          ),
        { timeout: 20_000 },
      )
      .toBe(0);
  });
});
