import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { startBrowser } from '../e2e/lib/browser.ts';
import { follow, replaceTexts, showPage } from '../e2e/lib/dashboard.ts';
import { askToWrite, startFilledProduct } from '../e2e/lib/filled-product.ts';
import type { Product } from '../e2e/lib/product.ts';

/** Takes the pictures of docs/pictures from the built daemon, in a real browser: `node tools/screenshots.ts [folder]`. */
const folder = process.argv[2] ?? join(import.meta.dirname, '..', 'docs', 'pictures');

async function take(page: Page, name: string): Promise<void> {
  const path = join(folder, `${name}.png`);
  await page.screenshot({ path });
  console.log(path);
}

async function open(page: Page, section: string): Promise<void> {
  await page.locator('main h1').waitFor({ state: 'attached' });
  await follow(page, section);
}

async function openChat(page: Page): Promise<void> {
  await open(page, 'Chat');
  const show = page.getByRole('button', { name: 'Show conversations' });
  if (await show.isVisible()) await show.click();
  await page.getByRole('link', { name: 'What does a gateway do?' }).click();
  await page.getByText('as the answer is written').waitFor();
}

/** Has an agent open a Python on a terminal, and types into it. */
async function openTerminal({ call, provider }: Product): Promise<void> {
  await call('agents.create', { agentId: 'builder', config: { model: 'local/test-model', tools: { profile: 'coding' } } });
  const args = { action: 'open', argv: ['python3', '-q'], pattern: '>>> $' };
  provider.queue({ toolCalls: [{ id: 'terminal', name: 'terminal', arguments: JSON.stringify(args) }] }, { text: 'It is open.' });
  await call('agent.execute', { agentId: 'builder', message: 'Start Python', sessionKey: 'ada:python' });
  const { items } = (await call('background.list', {})) as { items: readonly { id: string; kind: string }[] };
  await call('background.type', { id: items.find(({ kind }) => kind === 'terminal')?.id, text: '2 ** 100', keys: ['enter'] });
}

await mkdir(folder, { recursive: true });
const filled = await startFilledProduct();
await using product = filled.product;
await using browser = await startBrowser();
const link = `${product.url}/#token=${product.token}`;

/** The pages of the overviews, by their addresses. */
const overview = [
  '/chat',
  '/waiting',
  '/inbox',
  '/conversations',
  '/files',
  '/knowledge',
  '/memory',
  '/runs',
  '/executions',
  '/graphs',
  '/schedule',
  '/webhooks',
  '/channels',
  '/traces',
  '/events',
  '/evals',
  '/spend',
  '/system',
  '/logs',
  '/audit',
  '/agents',
  '/agents/scout',
  '/tokens',
  '/settings',
  '/explorer',
  '/help',
];

/** Takes small pictures of every page, and puts them together into one. */
async function takeOverview(page: Page, name: string, columns: number): Promise<void> {
  const shots: string[] = [];
  for (const path of overview) {
    await showPage(page, path);
    await replaceTexts(page, [
      [filled.folder, '/srv/handbook'],
      [product.home, '~/.gatehouse'],
    ]);
    shots.push((await page.screenshot({ type: 'jpeg', quality: 80 })).toString('base64'));
  }
  const sheet = await (await browser.context({ viewport: { width: 1600, height: 800 } })).newPage();
  await sheet.setContent(
    `<body style="margin:8px;display:grid;grid-template-columns:repeat(${columns},1fr);gap:8px;background:#889">${shots
      .map((data) => `<img style="width:100%" src="data:image/jpeg;base64,${data}">`)
      .join('')}</body>`,
  );
  await sheet.waitForFunction('[...document.images].every((image) => image.complete && image.naturalWidth > 0)');
  const path = join(folder, `${name}.jpg`);
  await sheet.screenshot({ path, type: 'jpeg', quality: 60, fullPage: true });
  console.log(path);
  await sheet.context().close();
}

for (const look of [
  { suffix: '', options: { viewport: { width: 1280, height: 800 } }, pages: 'all', columns: 4 },
  { suffix: '-dark', options: { viewport: { width: 1280, height: 800 }, colorScheme: 'dark' }, pages: 'chat', columns: 4 },
  { suffix: '-phone', options: { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true }, pages: 'chat', columns: 7 },
] as const) {
  const context = await browser.context(look.options);
  const page = await context.newPage();
  if (look.pages === 'all') {
    await page.goto(product.url);
    await page.getByLabel('Access token').waitFor();
    await take(page, 'login');
  }
  await page.goto(link);
  await openChat(page);
  await take(page, `chat${look.suffix}`);
  if (look.pages === 'all') {
    await open(page, 'Conversations');
    await page.getByRole('link', { name: 'Which agents were busy yesterday?' }).waitFor();
    await take(page, 'conversations');
    await page.goto(`${product.url}/conversations/${filled.longRef}`);
    await page.getByRole('treeitem').first().click();
    await take(page, 'conversation');
    await open(page, 'Memory');
    await page.getByRole('searchbox', { name: 'Search memories' }).fill('backup of the build machine');
    await page.locator('.reasons').first().waitFor();
    await page.getByRole('heading', { name: 'By type' }).waitFor();
    await take(page, 'memory');
    await open(page, 'Spend');
    await page.getByRole('meter').first().waitFor();
    await page.getByText('By agent').waitFor();
    await take(page, 'spend');
    await open(page, 'Events');
    await product.call('agent.execute', { message: 'Summarise the release notes of this week', sessionKey: 'ada:desk-1' });
    await product.call('agents.resume', { agentId: 'night-shift' });
    await product.call('agents.suspend', { agentId: 'night-shift' });
    await page.getByText('observability:token_usage').first().click();
    await take(page, 'events');
    await open(page, 'Agents & models');
    await page.getByRole('heading', { name: 'Scout' }).waitFor();
    await take(page, 'agents');
    await page.getByRole('link', { name: 'Scout', exact: true }).click();
    await page.getByRole('link', { name: 'Workspace' }).click();
    const files = page.getByRole('navigation', { name: 'Files' });
    await files.getByRole('button', { name: 'documents', exact: true }).click();
    await files.getByRole('button', { name: 'move.md', exact: true }).click();
    await page.getByLabel('Content of documents/move.md').waitFor();
    await page.getByText(`${product.home}/`).evaluate((shown) => (shown.textContent = '~/.gatehouse/workspaces/scout'));
    await take(page, 'workspace');
    await page.getByRole('link', { name: 'Tools' }).click();
    await page.getByText('Allowed').first().waitFor();
    await take(page, 'agent-tools');
    await page.getByRole('link', { name: 'Skills' }).click();
    await page.getByText('release-notes').first().waitFor();
    await take(page, 'skills');
    await page.getByRole('button', { name: 'Browser' }).click();
    await page.getByRole('button', { name: 'Take over' }).click();
    await page.getByText('Taken over').waitFor();
    await page.getByRole('dialog').getByRole('img').waitFor();
    await take(page, 'browser');
    await page.getByRole('button', { name: 'Return to agent' }).click();
    await page.getByRole('button', { name: 'Recordings' }).click();
    await page.getByRole('dialog').getByRole('table').getByRole('button').first().click();
    await page.getByRole('dialog').getByRole('img').waitFor();
    await take(page, 'browser-recording');
    await page.keyboard.press('Escape');
    await open(page, 'Knowledge');
    await page.getByRole('searchbox').fill('when does the backup run');
    await page.keyboard.press('Enter');
    await page.getByText('four in the morning').first().waitFor();
    await page.getByText(filled.folder).evaluate((shown) => (shown.textContent = '/srv/handbook'));
    await take(page, 'knowledge');
    await open(page, 'Files');
    await page.getByRole('button', { name: 'plan.md', exact: true }).waitFor();
    await take(page, 'files');
    askToWrite(product, 'ada:plan');
    await open(page, 'Waiting for you');
    await page.getByRole('button', { name: 'Allow once' }).waitFor();
    await take(page, 'approvals');
    await page.getByRole('button', { name: 'Deny' }).click();
    await open(page, 'Runs');
    await page.getByRole('button', { name: /^Steer/ }).waitFor();
    await take(page, 'runs');
    await page.goto(`${product.url}/graphs/runs/${filled.graphId}`);
    await page
      .getByRole('navigation', { name: 'Nodes' })
      .getByRole('button', { name: /waiting for you/ })
      .waitFor();
    await page
      .getByRole('navigation', { name: 'Nodes' })
      .getByRole('button', { name: /^debate/ })
      .click();
    await page.getByRole('region', { name: 'Output of debate' }).waitFor();
    await take(page, 'graph');
    await open(page, 'Graphs');
    await page.getByRole('link', { name: 'Research with a vote' }).click();
    await page.getByText('Ready to run: 6 nodes').waitFor();
    await page
      .getByRole('navigation', { name: 'Graph sections' })
      .getByRole('button', { name: /^debate/ })
      .click();
    await take(page, 'graph-editor');
    await open(page, 'Schedule');
    await page.getByText('As a list').waitFor();
    await take(page, 'schedule');
    await open(page, 'Webhooks');
    await page.locator('.feed summary').first().click();
    await take(page, 'webhooks');
    await open(page, 'Inbox');
    await page.getByRole('link', { name: 'Tea time' }).click();
    await page.getByRole('article').waitFor();
    await take(page, 'inbox');
    await open(page, 'Audit');
    await page.locator('.audit-entry').first().click();
    await take(page, 'audit');
    await open(page, 'Tokens');
    await page.getByText('editor-plugin').waitFor();
    await take(page, 'tokens');
    await open(page, 'API explorer');
    await page.locator('a[href="/explorer/session.history"]').click();
    await page.getByLabel('limit').fill('2');
    await page.getByLabel('sessionKey').fill('ada:desk-0');
    await page.getByLabel('agentId').fill('scout');
    await page.getByRole('button', { name: 'Call', exact: true }).click();
    await page.getByRole('heading', { name: 'Result' }).waitFor();
    await take(page, 'explorer');
    await openTerminal(product);
    await open(page, 'Runs');
    await page.getByRole('button', { name: 'Watch python3 -q' }).click();
    await page.getByRole('dialog').getByText('1267650600228229401496703205376').waitFor();
    await take(page, 'terminal');
  }
  await takeOverview(page, `pages${look.suffix}`, look.columns);
  await context.close();
}
await rm(filled.folder, { recursive: true });
