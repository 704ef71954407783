import { createInterface } from 'node:readline/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import {
  type ChannelSetup,
  channelSetups,
  setupConflict,
  setupEntry,
  type SetupField,
  setupSecretName,
  type SetupValues,
} from '@gatehouse/contract/channel-setup';
import { type Command, Option } from 'commander';
import { connect } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { addGroup } from './group.ts';
import { collect } from './job-flags.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';
import { readSecrets } from './secret-value.ts';

type Health = Result<'channels.health'>['channels'][number];
type AddFlags = CommonFlags & { agent?: string; owner: string[]; person?: string } & Record<string, unknown>;

/** How long `add` waits for the first connection. */
const connectMs = 20_000;
const pollMs = 250;

/** `gatehouse channels add <type> <name>`: a command for each platform, from its set-up. */
export function addAddCommands(channels: Command, io: Io, setExit: SetExit): void {
  const add = addGroup(channels, 'add')
    .summary('connect a chat platform')
    .description('Adds a channel to config.yaml and waits until it is connected.');
  for (const [type, setup] of Object.entries<ChannelSetup>(channelSetups)) {
    const command = withConnection(add.command(`${type} <name>`)).description(describe(setup));
    for (const field of setup.fields) if (field.option !== undefined) command.addOption(optionOf(field, field.option));
    command
      .option('--agent <id>', 'agent that answers; the default agent otherwise')
      .option('--owner <id>', 'sender whose words are yours; repeatable', collect, [])
      .option('--person <name>', 'with a terminal: your name as a person, when you are approved')
      .action((name: string, flags: AddFlags) => addChannel({ type, name, setup, flags }, io, setExit));
  }
}

function describe({ title, steps, fields }: ChannelSetup): string {
  const secrets = fields.filter(({ kind }) => kind === 'secret').map(({ label }) => label.toLowerCase());
  return [
    `Adds a channel of ${title} to config.yaml and waits until it is connected. Exits with 1 when it does not connect.`,
    ...steps,
    `Asks for what is missing. The ${secrets.join(' and the ')} is read from standard input, one line each, or from a hidden prompt; it goes to the secret store.`,
  ].join('\n');
}

function optionOf({ kind, label, hint }: SetupField, flags: string): Option {
  const text = `${label}: ${hint}`;
  if (kind === 'number') return countOption(flags, text);
  return kind === 'list' ? new Option(flags, `${text}; repeatable`).argParser(collect).default([]) : new Option(flags, text);
}

interface Wanted {
  readonly type: string;
  readonly name: string;
  readonly setup: ChannelSetup;
  readonly flags: AddFlags;
}

async function addChannel({ type, name, setup, flags }: Wanted, io: Io, setExit: SetExit): Promise<void> {
  const { client } = await connect(flags, io);
  const conflict = setupConflict(type, name, (await client.call('channels.list', {})).channels);
  if (conflict !== undefined) throw usageError(`${conflict}.`);
  const values = await valuesOf(setup.fields, flags, io);
  const secrets = setup.fields.filter(({ kind, onlyWith }) => kind === 'secret' && (onlyWith === undefined || values[onlyWith] !== undefined));
  const command = `gatehouse channels add ${type} ${name} …`;
  const given = await readSecrets(
    secrets.map(({ label }) => `${setup.title}: ${label}`),
    command,
    io,
  );
  for (const [index, field] of secrets.entries()) {
    await client.call('env.set', { key: setupSecretName(name, field), value: given[index] ?? '' });
    values[field.paths[0]] = given[index];
  }
  const { agent, owner } = flags;
  const entry = {
    ...setupEntry(type, name, setup.fields, values),
    ...(agent !== undefined && { agent }),
    ...(owner.length > 0 && { owners: owner }),
  };
  await client.call('config.set', { path: `channels.${name}`, value: entry, confirm: true });
  const health = await firstState(client, name);
  if (health?.state !== 'healthy') setExit(exitCode.failed);
  print(io, flags, { channel: health ?? null }, () => addedText(name, health));
  if (health?.state === 'healthy' && io.stdin.isTTY === true && flags.output === 'human') await approveOwner(client, flags, io);
}

/** Returns the values of the options; asks for required ones that are missing. */
async function valuesOf(fields: readonly SetupField[], flags: AddFlags, io: Io): Promise<Record<string, SetupValues[string]>> {
  const values: Record<string, SetupValues[string]> = {};
  for (const field of fields) {
    if (field.option === undefined) continue;
    const given = flags[new Option(field.option).attributeName()];
    // A switch is on unless its option turns it off.
    if (field.kind === 'off') values[field.paths[0]] = given === false ? false : undefined;
    else values[field.paths[0]] = (given as SetupValues[string]) ?? (field.isRequired === true ? await ask(field, io) : undefined);
  }
  return values;
}

async function ask({ label, hint, option = '' }: SetupField, io: Io): Promise<string> {
  if (io.stdin.isTTY !== true) throw usageError(`No ${label.toLowerCase()}: pass ${option}.`);
  const answer = await question(`${label} (${hint}): `, io);
  if (answer === '') throw usageError(`No ${label.toLowerCase()} was entered.`);
  return answer;
}

async function question(text: string, io: Io): Promise<string> {
  const terminal = createInterface({ input: io.stdin, output: io.stderr });
  try {
    return (await terminal.question(text)).trim();
  } finally {
    terminal.close();
  }
}

/** Approves the person at the terminal by the code that the agent answers. */
async function approveOwner(client: Client, { person }: AddFlags, io: Io): Promise<void> {
  const code = await question('Write to the agent there. Code that it answers (empty: later): ', io);
  if (code === '') return;
  const paired = await client.call('channels.pair', { code, person });
  io.stdout.write(`Approved ${plainText(paired.senderId)}.\n`);
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
  if (health?.state === 'healthy') {
    const account = health.account === null ? '' : ` as ${plainText(health.account)}`;
    return `Connected ${name}${account}. Write to the agent there, then approve yourself: \`gatehouse channels pair CODE\` with the code that it answers.`;
  }
  const why = health?.error ?? 'no connection yet';
  return `Added ${name}, which is not connected: ${plainText(why)}\nIt tries again; \`gatehouse channels\` shows its state, \`gatehouse config edit\` changes it.`;
}
