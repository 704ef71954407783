import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@gatehouse/client';
import type { ParamsInput, Result } from '@gatehouse/contract';
import { type Command, InvalidArgumentError } from 'commander';
import { connect } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { plainText, shorten } from '../render/plain.ts';
import { renderTable, renderTime } from '../render/table.ts';
import { addGroup } from './group.ts';
import { collect } from './job-flags.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';
import { readSecret } from './secret-value.ts';

type Health = Result<'channels.health'>['channels'][number];
type DeliveryState = NonNullable<ParamsInput<'delivery.list'>['state']>;
type AddFlags = CommonFlags & {
  host: string;
  port?: number;
  tls: boolean;
  nick: string;
  join: string[];
  saslUser?: string;
  agent?: string;
  owner: string[];
};

const states: readonly DeliveryState[] = ['pending', 'sending', 'accepted', 'rejected', 'unknown', 'held', 'expired'];
const textLength = 60;
/** How long `add` waits for the first connection. */
const connectMs = 20_000;
const pollMs = 250;

/** `gatehouse channels list | add | enable | disable | restart | pairings | pair | unpair | messages | deliveries | resend | settle`. */
export function addChannelsCommand(program: Command, io: Io, setExit: SetExit): void {
  const channels = addGroup(program, 'channels')
    .summary('connect chat platforms, approve people, see messages')
    .description(
      'Chat platforms over which people write to agents. Needs a token with scope admin; `add` needs scope *, or the socket of the home folder.',
    );

  withConnection(channels.command('list', { isDefault: true }))
    .description('Lists the channels with their state and last traffic.')
    .action(async (flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      print(io, flags, await client.call('channels.health', {}), channelTable);
    });
  addAdd(channels, io, setExit);
  addSwitches(channels, io);
  addPairing(channels, io);
  addMessages(channels, io);
  addDeliveries(channels, io);
}

function addAdd(channels: Command, io: Io, setExit: SetExit): void {
  withConnection(channels.command('add <type> <name>'))
    .description(
      'Adds a channel to config.yaml and waits until it is connected. TYPE is irc. With --sasl-user the password is read from standard input, else a hidden prompt asks for it; it goes to the secret store. Exits with 1 when it does not connect.',
    )
    .requiredOption('--host <name>', 'server of the network')
    .addOption(countOption('--port <n>', 'port of the server (default: 6697)'))
    .option('--no-tls', 'connect without encryption')
    .requiredOption('--nick <nick>', 'name of the agent there')
    .option('--join <channel>', 'channel to join, such as #gatehouse; repeatable', collect, [])
    .option('--sasl-user <user>', 'account of the network to log in with')
    .option('--agent <id>', 'agent that answers; the default agent otherwise')
    .option('--owner <id>', 'sender whose words are yours, such as account:ada; repeatable', collect, [])
    .action(async (type: string, name: string, flags: AddFlags) => {
      if (type !== 'irc') throw usageError(`Unknown channel type: ${plainText(type)}.`, 'Expected irc.');
      const password =
        flags.saslUser === undefined ? undefined : await readSecret(`the password of ${flags.saslUser}`, `gatehouse channels add irc ${name} …`, io);
      const { client } = await connect(flags, io);
      await client.call('config.set', { path: `channels.${name}`, value: await entryOf(client, name, flags, password), confirm: true });
      const health = await firstState(client, name);
      if (health?.state !== 'healthy') setExit(exitCode.failed);
      print(io, flags, { channel: health ?? null }, () => addedText(name, health));
    });
}

async function entryOf(
  client: Client,
  name: string,
  { host, port, tls, nick, join, saslUser, agent, owner }: AddFlags,
  password: string | undefined,
) {
  const secret = `CHANNEL_${name.toUpperCase().replaceAll('-', '_')}_PASSWORD`;
  if (password !== undefined) await client.call('env.set', { key: secret, value: password });
  return {
    type: 'irc',
    host,
    ...(port !== undefined && { port }),
    ...(!tls && { tls }),
    nick,
    ...(saslUser !== undefined && { sasl: { user: saslUser, password: `\${${secret}}` } }),
    ...(join.length > 0 && { channels: join }),
    ...(agent !== undefined && { agent }),
    ...(owner.length > 0 && { owners: owner }),
  };
}

/** Returns how a new channel is once it is connected, or has failed to. */
async function firstState(client: Client, name: string): Promise<Health | undefined> {
  for (let waitedMs = 0; ; waitedMs += pollMs) {
    const { channels } = await client.call('channels.health', {});
    const found = channels.find(({ channelInstanceId }) => channelInstanceId === name);
    if (waitedMs >= connectMs || (found !== undefined && found.state !== 'startup-grace')) return found;
    await sleep(pollMs);
  }
}

function addedText(name: string, health: Health | undefined): string {
  if (health?.state === 'healthy')
    return `Connected ${name}. Write to the agent there, then approve yourself: \`gatehouse channels pair CODE\` with the code that it answers.`;
  const why = health?.error ?? 'no connection yet';
  return `Added ${name}, which is not connected: ${plainText(why)}\nIt tries again; \`gatehouse channels\` shows its state, \`gatehouse config edit\` changes it.`;
}

function addSwitches(channels: Command, io: Io): void {
  const texts = {
    enable: 'Enables a channel in config.yaml and connects it.',
    disable: 'Disables a channel in config.yaml and disconnects it.',
    restart: 'Connects a channel again, also one that gave up.',
  } as const;
  for (const name of ['enable', 'disable', 'restart'] as const)
    withConnection(channels.command(`${name} <channel>`))
      .description(texts[name])
      .action(async (instance: string, flags: CommonFlags) => {
        const { client } = await connect(flags, io);
        const { channels: all } = await client.call('channels.list', {});
        const found = all.find(({ channelInstanceId }) => channelInstanceId === instance);
        if (found === undefined) throw usageError(`Channel not found: ${plainText(instance)}.`, '`gatehouse channels` lists them.');
        const done = await client.call(`channels.${name}`, { channel_type: found.channelType, channel_instance_id: instance });
        print(io, flags, done, ({ message }) => `${message}.`);
      });
}

function addPairing(channels: Command, io: Io): void {
  withConnection(channels.command('pairings'))
    .description('Lists people who may write to agents, and pending requests.')
    .action(async (flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      print(io, flags, await client.call('channels.pairings', {}), pairingTable);
    });
  withConnection(channels.command('pair <code>'))
    .description('Approves the sender who was shown this code.')
    .option('--person <name>', 'the person that it is: shares conversations and memories with the tokens of that person')
    .action(async (code: string, { person, ...flags }: CommonFlags & { person?: string }) => {
      const { client } = await connect(flags, io);
      const paired = await client.call('channels.pair', { code, person });
      print(
        io,
        flags,
        paired,
        (one) => `Approved ${plainText(one.senderId)} on ${one.channelInstanceId}${one.person === null ? '' : ` as ${one.person}`}.`,
      );
    });
  withConnection(channels.command('unpair <id>'))
    .description('Ends a pairing, or refuses a request.')
    .action(async (pairingId: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      print(io, flags, await client.call('channels.unpair', { pairingId }), () => `Removed ${pairingId}.`);
    });
}

function addMessages(channels: Command, io: Io): void {
  withConnection(channels.command('messages [channel]'))
    .description('Lists messages that came in, newest first, with the reason of those that started no turn.')
    .addOption(countOption('--limit <n>', 'how many, at most 200', 50))
    .action(async (instance: string | undefined, { limit, ...flags }: CommonFlags & { limit: number }) => {
      const { client } = await connect(flags, io);
      print(io, flags, await client.call('channels.messages', { channel_instance_id: instance, limit }), messageTable);
    });
}

function addDeliveries(channels: Command, io: Io): void {
  withConnection(channels.command('deliveries [channel]'))
    .description('Lists messages to platforms, newest first, with their state.')
    .option('--state <state>', states.join(', '), readState)
    .addOption(countOption('--limit <n>', 'how many, at most 200', 50))
    .action(async (instance: string | undefined, { state, limit, ...flags }: CommonFlags & { state?: DeliveryState; limit: number }) => {
      const { client } = await connect(flags, io);
      print(io, flags, await client.call('delivery.list', { channel_instance_id: instance, state, limit }), deliveryTable);
    });
  withConnection(channels.command('resend <id>'))
    .description('Sends a message again that was refused, expired, or may have been sent.')
    .action(async (deliveryId: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      print(io, flags, await client.call('delivery.resend', { deliveryId }), () => `${deliveryId} is sent again.`);
    });
  withConnection(channels.command('settle <id>'))
    .description('Decides about a message that may have been sent.')
    .option('--rejected', 'it was not sent and is given up; it was sent otherwise')
    .action(async (deliveryId: string, { rejected, ...flags }: CommonFlags & { rejected?: true }) => {
      const { client } = await connect(flags, io);
      const as = rejected === true ? 'rejected' : 'accepted';
      print(io, flags, await client.call('delivery.settle', { deliveryId, as }), () => `${deliveryId} is ${as}.`);
    });
}

function readState(text: string): DeliveryState {
  const found = states.find((state) => state === text);
  if (found === undefined) throw new InvalidArgumentError(`Expected one of ${states.join(', ')}.`);
  return found;
}

const timeOf = (atMs: number | null): string | undefined => (atMs === null ? undefined : renderTime(atMs));

function channelTable({ channels }: Result<'channels.health'>): string {
  return renderTable(
    ['Channel', 'Type', 'State', 'Alive', 'Message in', 'Message out', 'Error'],
    channels.map((one) => [
      one.channelInstanceId,
      one.channelType,
      one.state,
      timeOf(one.lastCheckedAt),
      timeOf(one.lastMessageAt),
      timeOf(one.lastSentAt),
      one.error === null ? undefined : plainText(one.error),
    ]),
  );
}

function pairingTable({ pairings }: Result<'channels.pairings'>): string {
  if (pairings.length === 0) return 'No pairings.';
  return renderTable(
    ['State', 'Channel', 'Sender', 'Name', 'Person', 'Requested', 'Id'],
    pairings.map((one) => [
      one.state,
      one.channelInstanceId,
      plainText(one.senderId),
      plainText(one.senderName),
      one.person ?? undefined,
      renderTime(one.requestedAt),
      one.pairingId,
    ]),
  );
}

function messageTable({ messages }: Result<'channels.messages'>): string {
  if (messages.length === 0) return 'No messages.';
  return renderTable(
    ['Received', 'Channel', 'Where', 'Sender', 'Verdict', 'Turn', 'Message'],
    messages.map((one) => [
      renderTime(one.receivedAt),
      one.endpoint.channelInstanceId,
      plainText(one.endpoint.conversationId),
      plainText(one.senderId),
      one.verdict,
      one.state ?? undefined,
      shorten(one.text, textLength),
    ]),
  );
}

function deliveryTable({ deliveries }: Result<'delivery.list'>): string {
  if (deliveries.length === 0) return 'No messages.';
  return renderTable(
    ['Created', 'Channel', 'To', 'State', 'Tries', 'Error', 'Message', 'Id'],
    deliveries.map((one) => [
      renderTime(one.createdAt),
      one.endpoint.channelInstanceId,
      plainText(one.endpoint.conversationId),
      one.state,
      one.attempts,
      one.error === null ? undefined : plainText(one.error),
      shorten(one.text, textLength),
      one.deliveryId,
    ]),
  );
}
