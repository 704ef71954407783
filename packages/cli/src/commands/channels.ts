import type { Client } from '@gatehouse/client';
import type { ParamsInput, Result } from '@gatehouse/contract';
import { type Command, InvalidArgumentError } from 'commander';
import { connect } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { plainText, shorten } from '../render/plain.ts';
import { renderTable, renderTime } from '../render/table.ts';
import { addAddCommands } from './add-channel.ts';
import { addGroup } from './group.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';

type DeliveryState = NonNullable<ParamsInput<'delivery.list'>['state']>;
const states: readonly DeliveryState[] = ['pending', 'sending', 'accepted', 'rejected', 'unknown', 'held', 'expired'];
const textLength = 60;

/** `gatehouse channels list | add | enable | disable | restart | send | pairings | pair | unpair | messages | retry | deliveries | resend | settle`. */
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
  addAddCommands(channels, io, setExit);
  addSwitches(channels, io);
  addSend(channels, io, setExit);
  addPairing(channels, io);
  addMessages(channels, io);
  addRetry(channels, io);
  addDeliveries(channels, io);
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

function addSend(channels: Command, io: Io, setExit: SetExit): void {
  withConnection(channels.command('send <channel> <conversation> <text>'))
    .description(
      'Sends a message into a conversation that people have with an agent, as `gatehouse channels messages` shows it. Exits with 1 when the platform did not accept it.',
    )
    .action(async (instance: string, conversationId: string, text: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const sent = await client.call('message.send', { endpoint: await endpointOf(client, instance, conversationId), text });
      if (!['accepted', 'pending'].includes(sent.deliveryStatus)) setExit(exitCode.failed);
      print(io, flags, sent, ({ deliveryId, deliveryStatus, error }) =>
        deliveryStatus === 'accepted'
          ? `Sent as ${deliveryId}.`
          : `${deliveryId} is ${deliveryStatus}${error === undefined ? '' : `: ${plainText(error)}`}. \`gatehouse channels deliveries\` shows it.`,
      );
    });
}

/** Returns the endpoint of the newest message of a conversation. */
async function endpointOf(client: Client, instance: string, conversationId: string) {
  const { messages } = await client.call('channels.messages', { channel_instance_id: instance, limit: 200 });
  const { deliveries } = await client.call('delivery.list', { channel_instance_id: instance, limit: 200 });
  const found = [...messages, ...deliveries].find(({ endpoint }) => endpoint.conversationId === conversationId);
  if (found === undefined)
    throw usageError(
      `Conversation not found: ${plainText(conversationId)} on ${plainText(instance)}.`,
      '`gatehouse channels messages` lists who wrote; nobody is written to before.',
    );
  return found.endpoint;
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

function addRetry(channels: Command, io: Io): void {
  withConnection(channels.command('retry <id>'))
    .description('Starts the turn of a message that started none, as its agent was suspended or too many waited.')
    .action(async (messageId: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      print(io, flags, await client.call('channels.retry', { messageId }), () => `${messageId} is answered.`);
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
    ['Channel', 'Type', 'State', 'Alive', 'Message in', 'Message out', 'Next try', 'Error'],
    channels.map((one) => [
      one.channelInstanceId,
      one.channelType,
      one.state,
      timeOf(one.lastCheckedAt),
      timeOf(one.lastMessageAt),
      timeOf(one.lastSentAt),
      timeOf(one.retryAt),
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
    ['Received', 'Channel', 'Where', 'Sender', 'Verdict', 'Turn', 'Message', 'Id'],
    messages.map((one) => [
      renderTime(one.receivedAt),
      one.endpoint.channelInstanceId,
      plainText(one.endpoint.conversationId),
      plainText(one.senderId),
      one.verdict,
      one.state ?? undefined,
      shorten(one.text, textLength),
      one.messageId,
    ]),
  );
}

function deliveryTable({ deliveries }: Result<'delivery.list'>): string {
  if (deliveries.length === 0) return 'No messages.';
  return renderTable(
    ['Created', 'Channel', 'To', 'State', 'Tries', 'Next try', 'Error', 'Message', 'Id'],
    deliveries.map((one) => [
      renderTime(one.createdAt),
      one.endpoint.channelInstanceId,
      plainText(one.endpoint.conversationId),
      one.state,
      one.attempts,
      one.state === 'pending' && one.attempts > 0 ? timeOf(one.notBefore) : undefined,
      one.error === null ? undefined : plainText(one.error),
      shorten(one.text, textLength),
      one.deliveryId,
    ]),
  );
}
