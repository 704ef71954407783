import { mkdirSync, writeFileSync } from 'node:fs';
import { startTestServer, type TestServer } from '@gatehouse/testkit';
import * as z from 'zod';
import { openShop, type Shop } from './lib/shop.ts';

/** Proves that a scripted model does tasks in a shop through the tool `browser`, as a model would: it acts on what it reads in snapshots. */
export interface BrowserReport {
  readonly tasks: number;
  /** Tasks that did not reach their goal, each in one line. */
  readonly wrong: readonly string[];
}

/** Reads the last result of a tool and returns the next call; undefined ends the turn. */
type Step = (seen: string) => object;

interface Task {
  readonly name: string;
  readonly steps: readonly Step[];
  /** Returns what is wrong; undefined when the goal is reached. */
  readonly check: (shop: Shop, seen: string) => boolean;
  /** What a person does meanwhile. */
  readonly person?: (server: TestServer, isDone: () => boolean) => Promise<void>;
}

const Asked = z.looseObject({ messages: z.array(z.looseObject({ role: z.string(), content: z.string().nullish() })) });

const find = (seen: string, what: string): string => {
  const ref = new RegExp(`${what.replaceAll(/[.*+?^()[\]{}|\\$]/g, String.raw`\$&`)}[^\\n]*\\[ref=((?:f\\d+)?e\\d+)\\]`).exec(seen)?.[1];
  if (ref === undefined) throw new Error(`there is no ${what}`);
  return ref;
};
const visit =
  (shop: Shop, path: string): Step =>
  () => ({ action: 'navigate', url: shop.url(path), snapshot: true });
const click =
  (what: string): Step =>
  (seen) => ({ action: 'click', ref: find(seen, what), snapshot: true });
const type =
  (what: string, text: string, more: object = {}): Step =>
  (seen) => ({ action: 'type', ref: find(seen, what), text, snapshot: true, ...more });
const select =
  (what: string, value: string): Step =>
  (seen) => ({ action: 'select', ref: find(seen, what), values: [value], snapshot: true });
const plain =
  (args: object): Step =>
  () => ({ snapshot: true, ...args });

function tasksOf(shop: Shop): readonly Task[] {
  const start = visit(shop, '/');
  const shows = (text: string | RegExp) => (_: Shop, seen: string) => (typeof text === 'string' ? seen.includes(text) : text.test(seen));
  const buy = (name: string, count: string): readonly Step[] => [
    start,
    click(`link "${name}"`),
    type('spinbutton "Quantity"', count),
    click('button "Add to cart"'),
    click('link "Check out"'),
  ];
  const order = (name: string, count: string, how: { readonly country: string; readonly shipping: string; readonly gift: boolean }): Task => ({
    name: `orders ${count} of ${name} by ${how.shipping}`,
    steps: [
      ...buy(name, count),
      (seen) => ({
        action: 'fill',
        fields: [
          { ref: find(seen, 'textbox "Name"'), value: 'Robin' },
          { ref: find(seen, 'textbox "Street"'), value: '1 Long Road' },
          { ref: find(seen, 'combobox "Country"'), type: 'select', value: how.country },
          { ref: find(seen, `radio "${how.shipping}"`), type: 'radio', value: true },
          { ref: find(seen, 'checkbox "Gift"'), type: 'checkbox', value: how.gift },
          { ref: find(seen, 'textbox "Card number"'), value: '4242' },
        ],
        snapshot: true,
      }),
      click('button "Order now"'),
      plain({ action: 'wait', text: 'Thank you' }),
    ],
    check: ({ orders }) => {
      const last = orders.at(-1);
      return (
        last?.['items'] === `${count} ${name}` &&
        last['country'] === how.country &&
        last['shipping'] === how.shipping.toLowerCase() &&
        (last['gift'] === 'yes') === how.gift &&
        last['card'] === '4242' &&
        last['street'] === '1 Long Road'
      );
    },
  });
  const search = (name: string, price: string): Task => ({
    name: `finds the price of ${name}`,
    steps: [start, type('textbox "Search"', name.toLowerCase().slice(0, 3), { submit: true }), click(`link "${name}"`)],
    check: shows(`${price} euros`),
  });
  const first = (kind: string, sort: string, name: string): Task => ({
    name: `opens the ${sort} of the ${kind} ones`,
    steps: [
      start,
      select('combobox "Kind"', kind),
      select('combobox "Sort"', sort),
      click('button "Find"'),
      (seen) => ({ action: 'click', ref: find(seen.slice(seen.indexOf('list')), 'link'), snapshot: true }),
    ],
    check: shows(`heading "${name}"`),
  });
  const subscribe = (mail: string): Task => ({
    name: `subscribes ${mail} in a shadow root`,
    steps: [start, type('textbox "Mail"', mail), click('button "Subscribe"'), plain({ action: 'wait', text: 'Subscribed' })],
    check: ({ letters }) => letters.at(-1) === mail,
  });
  const remove = (accept: boolean): Task => ({
    name: `${accept ? 'removes' : 'keeps'} an item when a dialog asks`,
    steps: [
      start,
      click('link "Vase"'),
      click('button "Add to cart"'),
      click('button "Remove Vase"'),
      plain({ action: 'dialog', accept }),
      plain({ action: 'wait', timeMs: 200 }),
    ],
    check: (_, seen) => seen.includes('× Vase') !== accept,
  });
  const upload = (file: string, content: string): Task => ({
    name: `uploads ${file}`,
    steps: [
      visit(shop, '/support'),
      (seen) => ({ action: 'upload', ref: find(seen, 'button "Photo"'), paths: [file] }),
      plain({ action: 'wait', text: 'Received' }),
    ],
    check: ({ uploads }) => uploads.at(-1) === content,
    person: approveAll,
  });
  return [
    ...[
      ['Lamp', '10'],
      ['Chair', '17'],
      ['Desk', '24'],
      ['Mirror', '59'],
    ].map(([name = '', price = '']) => search(name, price)),
    first('light', 'cheapest', 'Lamp'),
    first('light', 'dearest', 'Vase'),
    first('heavy', 'cheapest', 'Chair'),
    first('heavy', 'dearest', 'Mirror'),
    order('Lamp', '2', { country: 'de', shipping: 'Post', gift: true }),
    order('Rug', '1', { country: 'fr', shipping: 'Courier', gift: false }),
    order('Clock', '12', { country: 'de', shipping: 'Courier', gift: true }),
    order('Shelf', '3', { country: 'fr', shipping: 'Post', gift: false }),
    order('Mirror', '1', { country: 'de', shipping: 'Post', gift: false }),
    subscribe('a@shop.example'),
    subscribe('b@shop.example'),
    remove(true),
    remove(false),
    upload('photo.txt', 'a lamp that broke'),
    upload('other.txt', 'a torn rug'),
    {
      name: 'reads the terms in a further tab and closes it',
      steps: [
        start,
        click('link "Terms"'),
        plain({ action: 'snapshot' }),
        plain({ action: 'close', snapshot: false }),
        plain({ action: 'snapshot' }),
      ],
      check: (_, seen) => seen.includes('heading "Shop"'),
    },
    {
      name: 'reads the terms while the shop stays open',
      steps: [start, plain({ action: 'open', url: shop.url('/terms') }), plain({ action: 'snapshot' })],
      check: shows('Returns within 30 days'),
    },
    {
      name: 'downloads an invoice into the workspace',
      steps: [start, click('link "Lamp"'), click('button "Add to cart"'), (seen) => ({ action: 'click', ref: find(seen, 'link "Invoice"') })],
      check: shows(/Downloaded: downloads\/invoice[-\d]*\.txt \(15 bytes\)/),
    },
    {
      name: 'waits for what appears late',
      steps: [visit(shop, '/late'), plain({ action: 'wait', text: 'In stock' })],
      check: shows('In stock: 7'),
    },
    {
      name: 'scrolls an endless list to its prize',
      steps: [
        visit(shop, '/endless'),
        ...[1, 2, 3].map(() => plain({ action: 'scroll', dy: 4000 })),
        plain({ action: 'wait', timeMs: 200 }),
        click('button "Prize"'),
        plain({ action: 'tabs', snapshot: false }),
      ],
      check: shows('"found"'),
    },
    {
      name: 'goes back and forward',
      steps: [start, click('link "Desk"'), plain({ action: 'back' }), plain({ action: 'forward' })],
      check: shows('heading "Desk"'),
    },
    {
      name: 'uses the keyboard',
      steps: [start, type('textbox "Search"', 'chair'), plain({ action: 'press', key: 'Enter' }), plain({ action: 'wait', url: 'q=chair' })],
      check: (_, seen) => seen.includes('link "Chair"') && !seen.includes('link "Desk"'),
    },
    {
      name: 'takes a picture of the cart',
      steps: [visit(shop, '/cart'), plain({ action: 'screenshot', snapshot: false })],
      check: shows(/media\/images\/\S+\.png/),
    },
    {
      name: 'prints the terms',
      steps: [visit(shop, '/terms'), plain({ action: 'pdf', snapshot: false })],
      check: shows(/media\/documents\/\S+\.pdf/),
    },
    {
      name: 'recovers from a reference that is gone',
      steps: [
        start,
        click('link "Lamp"'),
        plain({ action: 'click', ref: 'e9999', snapshot: false }),
        plain({ action: 'snapshot' }),
        click('button "Add to cart"'),
      ],
      check: shows('1 × Lamp'),
    },
    {
      name: 'logs in with a secret, and a person enters the code',
      steps: [
        visit(shop, '/login'),
        type('textbox "User"', 'robin'),
        (seen) => ({ action: 'type', ref: find(seen, 'textbox "Password"'), secret: 'SHOP_PASSWORD', snapshot: true }),
        click('button "Next"'),
        plain({ action: 'wait', text: 'Welcome back', snapshot: true }),
      ],
      check: ({ logins }, seen) => logins.length === 1 && seen.includes('Welcome back'),
      person: enterCode,
    },
  ];
}

async function approveAll(server: TestServer, isDone: () => boolean): Promise<void> {
  while (!isDone()) {
    const { requests } = await server.client.call('admin.approval.pending', {});
    for (const { requestId } of requests) await server.client.call('admin.approval.resolve', { requestId, approved: true }).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Takes over when the shop asks for the code. */
async function enterCode(server: TestServer, isDone: () => boolean): Promise<void> {
  while (!isDone()) {
    const { tabs } = await server.client.call('browser.tabs', {});
    if (tabs.some(({ title }) => title === 'Second step')) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await server.client.call('browser.take_over', { held: true });
  const { refs } = await server.client.call('browser.snapshot', {});
  if (!Object.values(refs).some(({ name }) => name === 'Code')) throw new Error('there is no field for the code');
  await server.client.call('browser.input', {
    events: [
      { type: 'text', text: '123456' },
      { type: 'key', key: 'Enter' },
    ],
  });
  await server.client.call('browser.take_over', { held: false });
}

export interface BrowserTasksOptions {
  /** Names of tasks contain this; all by default. */
  readonly only?: RegExp;
  /** Lets the model act on the snapshot before the last one, which a model must not do: a harness that notices nothing is worthless. */
  readonly stale?: boolean;
  readonly progress?: (line: string) => void;
}

export async function proveBrowserTasks({ only, stale = false, progress }: BrowserTasksOptions = {}): Promise<BrowserReport> {
  await using shop = await openShop();
  const agent = { model: 'mock/mock-fast', tools: { profile: 'none' as const, allow: ['browser'] } };
  await using server = await startTestServer({
    egress: shop.dial,
    env: { SHOP_PASSWORD: 'secret-of-the-shop-4711' },
    config: {
      agents: { default: agent },
      approvals: { rules: [{ tools: ['browser'], action: 'auto', tainted: true }] },
      browser: { secrets: { SHOP_PASSWORD: { origins: [new URL(shop.url('/')).origin] } } },
    },
  });
  const workspace = `${server.homeDir}/workspaces/default`;
  mkdirSync(workspace, { recursive: true });
  writeFileSync(`${workspace}/photo.txt`, 'a lamp that broke');
  writeFileSync(`${workspace}/other.txt`, 'a torn rug');
  const wrong: string[] = [];
  const tasks = tasksOf(shop).filter(({ name }) => only?.test(name) ?? true);
  for (const task of tasks) {
    const failure = await run(server, shop, task, stale).catch((error: unknown) => String(error));
    if (failure !== undefined) wrong.push(`${task.name}: ${failure}`);
    progress?.(`browser: ${task.name}${failure === undefined ? '' : `: ${failure}`}`);
  }
  return { tasks: tasks.length, wrong };
}

async function run(server: TestServer, shop: Shop, task: Task, stale: boolean): Promise<string | undefined> {
  let at = 0;
  let seen = '';
  let failure: string | undefined;
  server.provider.setAnswer((request) => {
    const results = Asked.parse(request.body).messages.filter(({ role }) => role === 'tool');
    seen = results.at(-1)?.content ?? '';
    const step = task.steps[at];
    at += 1;
    if (step === undefined || failure !== undefined) return { text: 'Done.' };
    try {
      const args = step(stale ? (results.at(-2)?.content ?? '') : seen);
      return { toolCalls: [{ id: `call_${crypto.randomUUID()}`, name: 'browser', arguments: JSON.stringify(args) }] };
    } catch (error) {
      failure = `step ${at}: ${String(error)} in ${seen.slice(0, 2000)}`;
      return { text: 'Failed.' };
    }
  });
  let isDone = false;
  const person = task.person?.(server, () => isDone);
  try {
    const message = 'Do the task in the shop';
    await server.client.call('agent.execute', { message, sessionKey: `tasks:${crypto.randomUUID()}` }, { timeoutMs: 120_000 });
  } finally {
    isDone = true;
    await person;
  }
  if (failure !== undefined) return failure;
  return task.check(shop, seen) ? undefined : `the goal was not reached: ${seen.slice(0, 2000)}`;
}
