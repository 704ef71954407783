import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { startFakeDiscord, startFakeTelegram } from '@gatehouse/testkit';
import { startBrowser } from '../e2e/lib/browser.ts';
import { follow } from '../e2e/lib/dashboard.ts';
import { startProduct } from '../e2e/lib/product.ts';
import { until } from '../proving/lib/channels.ts';

/** Takes the pictures of the pages of channels, as `tools/screenshots.ts` does of the others: `node tools/channel-screenshots.ts [folder]`. */
const folder = process.argv[2] ?? join(import.meta.dirname, '..', 'docs', 'pictures');
await mkdir(folder, { recursive: true });

const ada = { id: 1001, first_name: 'Ada' };
const eve = { id: 1002, first_name: 'Eve' };
const group = -100_200_300_400;
await using telegram = await startFakeTelegram();
await using discord = await startFakeDiscord();
telegram.chats.addGroup({ id: group, title: 'Workshop', members: [ada, eve], bot: 'member' });
const answers = ['The printer is free after ten. Shall I reserve it?', 'Three parcels arrived, one of them for you.', 'The build is green again.'];
const channels = {
  home: { type: 'telegram', token: telegram.token, apiUrl: telegram.url, owners: ['1001'], dm: { policy: 'pairing', allowFrom: ['1001'] } },
  lab: { type: 'discord', token: discord.token, apiUrl: discord.apiUrl },
  archive: { type: 'telegram', token: telegram.token, apiUrl: telegram.url, enabled: false },
};
await using product = await startProduct({
  provider: { answer: ({ path }) => (path.endsWith('/chat/completions') ? { text: answers.shift() ?? 'Done.' } : undefined) },
  config: { agents: { default: { model: 'local/test-model', name: 'Scout' } }, channels },
});
const said = (chat: number) => telegram.chats.said(chat).length;
await until(async () => telegram.isPolled(), 'not polled');
telegram.chats.say(ada, 'When is the printer free?');
await until(async () => said(ada.id) === 1, 'not answered');
telegram.chats.say(ada, `@${telegram.bot.username} what arrived today?`, { chat: group });
await until(async () => said(group) === 1, 'not answered in the group');
telegram.fail('sendMessage', 'cutAfter');
telegram.chats.say(ada, 'Does the build pass?');
await until(async () => said(ada.id) === 2, 'not answered again');
telegram.chats.say(eve, 'Hello, may I ask something?');
await until(async () => said(eve.id) === 1, 'no code');

await using browser = await startBrowser();
const context = await browser.context({ viewport: { width: 1280, height: 1000 } });
const page = await context.newPage();
const take = async (name: string, fullPage = false): Promise<void> => {
  const path = join(folder, `${name}.png`);
  await page.screenshot({ path, fullPage });
  console.log(path);
};
await page.goto(`${product.url}/#token=${product.token}`);
await page.locator('main h1').waitFor({ state: 'attached' });
await follow(page, 'Channels');
await page.getByRole('list', { name: 'Messages out' }).getByText('may have been sent', { exact: true }).first().waitFor();
await take('channels', true);
await page.getByRole('button', { name: 'Settings of home' }).click();
await page.getByRole('region', { name: 'People' }).getByLabel('Policy', { exact: true }).waitFor();
await take('channel-settings');
await page.getByRole('button', { name: 'Back to channels' }).click();
await page.getByRole('button', { name: 'Add a channel' }).click();
const dialog = page.getByRole('dialog', { name: 'Add a channel' });
await dialog.getByLabel('Platform').selectOption('Slack');
await dialog.getByLabel('Name of the channel').fill('work');
await take('channel-add');
await context.close();
