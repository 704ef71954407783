import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type FakeMatrix,
  hasIrcServer,
  hasMailServer,
  joinIrc,
  startFakeDiscord,
  startFakeMatrix,
  startFakeSlack,
  startFakeTelegram,
  startIrcServer,
  startMailServer,
} from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { root } from '../proving/lib/daemon.ts';
import { shellOf } from './lib/guide.ts';
import { type Product, startProduct } from './lib/product.ts';

// Runs the commands of docs/guide/channels*.md, and takes their entries of config.yaml: only addresses, codes and tokens are those of the test.
let product: Product;
let env: NodeJS.ProcessEnv;
// At most five secrets are set in a minute.
const start = async () => {
  product = await startProduct({
    provider: { answer: ({ path }) => (path.endsWith('/chat/completions') ? { text: 'It is done.' } : undefined) },
    config: { agents: { default: { model: 'local/test-model' } } },
  });
  env = await shellOf(product.home, product);
  // The pages on channels call the command without npx.
  await writeFile(join(product.home, 'npx/gatehouse'), '#!/bin/sh\nexec npx gatehouse "$@"\n', { mode: 0o755 });
};
const stop = () => product?.[Symbol.asyncDispose]();

interface Page {
  /** Returns the command that contains a text. */
  command(part: string): string;
  /** Returns the entries of channels on the page. */
  entries(): Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Commands that were not asked for. */
  unused(): string[];
}

async function readPage(name: string): Promise<Page> {
  const text = await readFile(join(root, 'docs/guide', `${name}.md`), 'utf8');
  const blocks = [...text.matchAll(/^( *)```(\w+)\n([\s\S]*?)^ *```$/gm)];
  const of = (language: string) =>
    blocks.flatMap(([, indent = '', kind, body = '']) => (kind === language ? [body.replaceAll(new RegExp(`^${indent}`, 'gm'), '')] : []));
  const lines = of('sh').flatMap((block) => block.replaceAll('\\\n', ' ').trim().split('\n'));
  const used = new Set<string>();
  return {
    command(part) {
      const found = lines.filter((line) => line.includes(part));
      expect([part, found.length]).toEqual([part, 1]);
      for (const line of found) used.add(line);
      return found[0] ?? '';
    },
    entries: () => Object.assign({}, ...of('yaml').map((block) => (parse(block) as { channels?: object }).channels ?? {})) as never,
    unused: () => lines.filter((line) => !used.has(line)),
  };
}

/** Runs a line of a shell with a standard input; returns what it wrote. */
function sh(line: string, input = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile('bash', ['-ec', line], { cwd: root, env, timeout: 60_000 }, (error, stdout, stderr) =>
      error === null ? resolve(stdout) : reject(new Error(`${line}: ${stdout}${stderr}`)),
    );
    child.stdin?.end(input);
  });
}
const withCode = (line: string, texts: readonly string[]) => line.replace(/pair \w+/, `pair ${/\b[A-Z2-9]{8}\b/.exec(texts.at(-1) ?? '')?.[0]}`);

/** Sets an entry of a page, with a password instead of its references to secrets. */
const takeEntry = (name: string, entry: object) =>
  product.call('config.set', { path: `channels.${name}`, value: JSON.parse(JSON.stringify(entry).replaceAll(/\$\{\w+\}/g, 'pw')), confirm: true });
/** Waits until a channel is in a state. */
async function isIn(name: string, state: 'disabled' | 'healthy'): Promise<void> {
  const stateOf = async () => {
    const { channels } = (await product.call('channels.list')) as { channels: readonly { channelInstanceId: string; state: string }[] };
    return channels.find(({ channelInstanceId }) => channelInstanceId === name)?.state;
  };
  await expect.poll(stateOf, { timeout: 30_000 }).toBe(state);
}
/** Ends a channel before its platform. */
async function disable(id: string): Promise<void> {
  const { channels } = (await product.call('channels.list')) as { channels: readonly { channelInstanceId: string; channelType: string }[] };
  const type = channels.find(({ channelInstanceId }) => channelInstanceId === id)?.channelType;
  await product.call('channels.disable', { channel_type: type, channel_instance_id: id });
}

describe('the commands of the guide on channels', { timeout: 120_000 }, () => {
  beforeAll(start, 60_000);
  afterAll(stop);

  test('Telegram', async () => {
    await using telegram = await startFakeTelegram();
    const page = await readPage('channels-telegram');
    const ada = { id: 1001, first_name: 'Ada' };
    expect(await sh(`${page.command('channels add telegram')} --api-url ${telegram.url}`, `${telegram.token}\n`)).toContain('Connected my-bot');
    telegram.chats.say(ada, 'hello');
    const said = () => telegram.chats.said(ada.id).map(({ text }) => text);
    await expect.poll(() => said().length).toBe(1);
    expect(await sh(page.command('channels pairings'))).toMatch(/pending +my-bot +1001/);
    expect(await sh(withCode(page.command('channels pair '), said()))).toBe('Approved 1001 on my-bot as ada.\n');
    telegram.chats.say(ada, 'is it done?');
    await expect.poll(() => said().at(-1)).toBe('It is done.');
    expect(page.unused()).toEqual([]);
    const { 'my-bot': entry } = page.entries();
    await takeEntry('by-hand', { ...entry, enabled: false });
    await disable('my-bot');
  });

  test('Discord', async () => {
    await using discord = await startFakeDiscord();
    const page = await readPage('channels-discord');
    const [ada, add] = [discord.person('ada'), page.command('channels add discord').replace('< token.txt', '')];
    const direct = discord.directChannel(ada);
    expect(await sh(`${add} --api-url ${discord.apiUrl}`, `${discord.token}\n`)).toContain('Connected lab');
    discord.write(ada, direct, 'hello');
    const shown = () => discord.shown(direct).map(({ content }) => content);
    await expect.poll(() => shown().length).toBe(2);
    expect(await sh(withCode(page.command('channels pair '), shown()))).toContain('on lab as ada');
    discord.write(ada, direct, 'is it done?');
    await expect.poll(() => shown().at(-1)).toBe('It is done.');
    expect(page.unused()).toEqual([]);
    const { lab } = page.entries();
    await takeEntry('lab', { ...lab, enabled: false });
    await isIn('lab', 'disabled');
  });

  test('Slack', async () => {
    await using slack = await startFakeSlack();
    const page = await readPage('channels-slack');
    const set = page.command('SLACK_BOT_TOKEN').concat('\n', page.command('SLACK_APP_TOKEN'));
    await sh(`BOT_TOKEN=${slack.botToken} APP_TOKEN=${slack.appToken}\n${set}`);
    const { work } = page.entries();
    await product.call('config.set', { path: 'channels.work', value: { ...work, apiUrl: slack.apiUrl }, confirm: true });
    await isIn('work', 'healthy');
    expect(await sh('gatehouse channels')).toMatch(/^work .*healthy/m);
    expect(page.unused()).toEqual([]);
    await disable('work');
  });
});

describe('the commands of the guide on open platforms', { timeout: 120_000 }, () => {
  beforeAll(start, 60_000);
  afterAll(stop);

  test('Matrix', async () => {
    await using home: FakeMatrix = await startFakeMatrix();
    const [gate, you] = [home.account('gate', 'Gate'), home.account('you', 'You')];
    const page = await readPage('channels-matrix');
    const add = page.command('channels add matrix').replace('https://matrix.example.org', home.url).replace('@you:example.org', '@boss:example.org');
    expect(await sh(add, `${gate.token}\n`)).toContain('Connected home');
    const room = you.createRoom({ invite: [gate.userId], isDirect: true });
    await expect.poll(() => home.members(room)[gate.userId]).toBe('join');
    you.say(room, 'hello');
    const shown = () => home.shown(room).flatMap(({ sender, body }) => (sender === gate.userId ? [body] : []));
    await expect.poll(() => shown().length).toBe(1);
    expect(await sh(withCode(page.command('channels pair '), shown()))).toContain('on home as you');
    await sh(page.command('config set'));
    await isIn('home', 'healthy');
    you.say(room, 'is it done?');
    await expect.poll(() => shown().at(-1)).toBe('It is done.');
    // The log-in is the homeserver's.
    expect(page.unused()).toEqual([expect.stringContaining('curl https://matrix.example.org')]);
    const { home: entry } = page.entries();
    await takeEntry('home', { ...entry, enabled: false });
  });

  test.skipIf(!hasIrcServer('ngircd'))('IRC', async () => {
    await using ircd = await startIrcServer('ngircd');
    using ada = await joinIrc(ircd.port, 'ada', { channels: ['#my-room'] });
    const page = await readPage('channels-irc');
    const add = page.command('channels add irc').replace('irc.libera.chat', `127.0.0.1 --port ${ircd.port} --no-tls`);
    expect(await sh(add)).toContain('Connected libera as my-agent');
    ada.say('PRIVMSG my-agent :hello');
    await expect.poll(() => ada.messages.length).toBe(1);
    expect(await sh(page.command('channels pairings'))).toMatch(/pending +libera +ada!/);
    expect(await sh(withCode(page.command('channels pair '), ada.messages))).toContain('on libera as ada');
    // The longer command of the overview: its server has no accounts, which is said.
    await sh('gatehouse channels send libera ada "The build is green."');
    await expect.poll(() => ada.messages.at(-1)).toBe('my-agent ada The build is green.');
    expect(page.unused()).toEqual([]);
    const overview = await readPage('channels');
    for (const part of ['channels send libera', 'call message.send']) await sh(overview.command(part));
    const failed = sh(
      overview.command('channels add irc').replace('irc.libera.chat', `127.0.0.1 --port ${ircd.port} --no-tls`).replace('libera', 'other'),
      'pw\n',
    );
    await expect(failed).rejects.toThrow('The server offers no login (SASL)');
    expect(await sh(overview.command('channels pairings'))).toContain('libera');
    const { pairings } = (await product.call('channels.pairings', {})) as {
      readonly pairings: readonly { readonly pairingId: string; readonly channelInstanceId: string }[];
    };
    await sh(`gatehouse channels unpair ${pairings.find(({ channelInstanceId }) => channelInstanceId === 'libera')?.pairingId}`);
    await expect(sh(overview.command('channels pair '))).rejects.toThrow('No request has this code');
    expect(overview.unused()).toEqual([]);
    const { libera } = page.entries();
    await takeEntry('libera', { ...libera, enabled: false });
  });

  test.skipIf(!hasMailServer())('mail', async () => {
    await using mail = await startMailServer();
    const page = await readPage('channels-email');
    // The server of the test has no certificate that the system knows, and no switch turns TLS off for mail: the command says so.
    const add = page.command('channels add email').replaceAll('mail.example.org', '127.0.0.1');
    await expect(sh(`${add} --imap-port ${mail.imapPort} --smtp-port ${mail.smtpPort}`, 'pw\n')).rejects.toThrow('not connected');
    const { post } = page.entries() as { readonly post: { readonly imap: object; readonly smtp: object } };
    const to = { host: '127.0.0.1', tls: false, user: 'agent' };
    const entry = { ...post, imap: { ...post.imap, ...to, port: mail.imapPort }, smtp: { ...post.smtp, ...to, port: mail.smtpPort } };
    await takeEntry('post', entry);
    await isIn('post', 'healthy');
    const head = 'From: Ada <ada@example.org>\nTo: agent@example.org\nSubject: Plans\nMessage-ID: <1@example.org>\n';
    await mail.deliver('agent', `${head}\nhello\n`, { authentication: 'dmarc=pass header.from=example.org' });
    await expect.poll(async () => ((await product.call('channels.messages', { channel_instance_id: 'post' })) as { total: number }).total).toBe(1);
    expect(await sh(page.command('channels messages'))).toContain('hello');
    expect(page.unused()).toEqual([]);
    await disable('post');
  });
});
