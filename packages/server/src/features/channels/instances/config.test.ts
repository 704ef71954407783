import { channelSetups, setupEntry, setupSecretName } from '@gatehouse/contract/channel-setup';
import { expect, test } from 'vitest';
import { ChannelsConfig } from './config.ts';

const given = { text: 'https://chat.example.org', number: 1234, list: ['#lab'], off: false, secret: 'x' } as const;

test.each(Object.entries(channelSetups))('the set-up of %s asks for what the configuration needs, and each value has its key', (type, { fields }) => {
  const values = Object.fromEntries(fields.map(({ paths, kind }) => [paths[0], given[kind]]));
  const address = type === 'email' ? { address: 'agent@example.org' } : {};
  const nick = type === 'irc' ? { nick: 'gate', 'sasl.user': 'gate' } : {};
  const whole = setupEntry(type, 'chat', fields, { ...values, ...address, ...nick });
  expect(ChannelsConfig().parse({ chat: whole })).toMatchObject({ chat: whole });
  const isNeeded = (field: (typeof fields)[number]) => 'isRequired' in field && field.isRequired && !('onlyWith' in field);
  const least = Object.fromEntries(fields.flatMap((field) => (isNeeded(field) ? [[field.paths[0], given[field.kind]] as const] : [])));
  const { success } = ChannelsConfig().safeParse({
    chat: setupEntry(type, 'chat', fields, { ...least, ...address, ...(type === 'irc' && { nick: 'gate' }) }),
  });
  expect(success).toBe(true);
});

test('a secret is named after its channel and its key', () => {
  expect(setupSecretName('my-bot', channelSetups.slack.fields[0])).toBe('CHANNEL_MY_BOT_BOT_TOKEN');
});
