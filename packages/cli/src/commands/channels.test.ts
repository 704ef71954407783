import { hasIrcServer, joinIrc, startIrcServer, startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { createUser } from '../testing/test-io.ts';

test.skipIf(!hasIrcServer('ngircd'))('channels: one is added, people are approved, messages are listed and sent again', async () => {
  await using ircd = await startIrcServer('ngircd');
  await using server = await startTestServer();
  await using user = await createUser();
  const env = { GATEHOUSE_URL: server.url, GATEHOUSE_TOKEN: server.token };
  const run = (...args: string[]) => user.run({ args, env });
  expect((await run('channels')).out).toMatch(/^CHANNEL .*\ngateway +gateway +healthy/);
  const add = ['channels', 'add', 'irc', 'net', '--host', '127.0.0.1', '--no-tls', '--nick', 'gate'];
  expect(await run(...add, '--port', String(ircd.port))).toMatchObject({ code: 0, out: expect.stringContaining('Connected net as gate.') });
  using ada = await joinIrc(ircd.port, 'ada');
  ada.say('PRIVMSG gate :hello');
  await expect.poll(() => ada.messages.length).toBe(1);
  expect((await run('channels', 'pairings')).out).toMatch(/pending +net +ada!~ada@127\.0\.0\.1 +ada/);
  const code = ada.messages[0]?.slice(-8) ?? '';
  expect((await run('channels', 'pair', code, '--person', 'ada')).out).toBe('Approved ada!~ada@127.0.0.1 on net as ada.\n');
  server.provider.setAnswer(() => ({ text: 'It is done.' }));
  ada.say('PRIVMSG gate :is it done?');
  await expect.poll(() => ada.messages.at(-1)).toBe('gate ada It is done.');
  await expect.poll(async () => (await run('channels', 'messages', 'net')).out).toMatch(/turn +done +is it done\?/);
  expect((await run('channels', 'messages', 'net')).out).toMatch(/pairing +- +hello/);
  expect((await run('channels', 'deliveries', '--state', 'accepted')).out).toMatch(/net +ada +accepted +1 +- +- +It is done\. +ob_/);
  expect(await run('channels', 'send', 'net', 'ada', 'Good night.')).toMatchObject({ code: 0, out: expect.stringMatching(/^Sent as ob_.*\.\n$/) });
  await expect.poll(() => ada.messages.at(-1)).toBe('gate ada Good night.');
  expect((await run('channels', 'send', 'net', 'eve', 'Psst.')).err).toContain('Conversation not found: eve on net');
  expect(await run('channels', 'resend', 'ob_nothing')).toMatchObject({ code: 1, err: expect.stringContaining('not found') });
  expect((await run('channels', 'disable', 'net')).out).toBe('net is disabled.\n');
  expect((await run('channels', 'enable', 'nothing')).err).toContain('Channel not found: nothing');
  const { pairings } = await server.client.call('channels.pairings', {});
  expect((await run('channels', 'unpair', pairings[0]?.pairingId ?? '')).out).toMatch(/^Removed pr_/);
  expect(await run('channels', 'add', 'irc', 'far', '--host', '127.0.0.1', '--port', '9', '--no-tls', '--nick', 'gate')).toMatchObject({
    code: 1,
    out: expect.stringContaining('not connected: 127.0.0.1:9: ECONNREFUSED'),
  });
  const again = await run(...add, '--port', '9');
  expect([again.code, again.err]).toEqual([2, expect.stringContaining('net exists: choose another name.')]);
  for (const name of ['net.dm', '__proto__', 'gateway'])
    expect((await run('channels', 'add', 'irc', name, '--host', 'h', '--nick', 'n')).err).toContain('is not a name for a channel');
  await server.client.call('config.set', {
    path: 'channels.a_b',
    value: { type: 'telegram', token: '1:x', apiUrl: 'http://127.0.0.1:9', enabled: false },
    confirm: true,
  });
  const like = await user.run({ args: ['channels', 'add', 'telegram', 'a-b'], env, input: 'other\n' });
  expect(like.err).toContain('a-b is too like a_b: choose another name.');
  expect((await run('channels', 'add', 'telegraph', 'x', '--host', 'h', '--nick', 'n')).err).toContain('Did you mean telegram?');
});
