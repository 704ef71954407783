import type { ParamsInput, Result } from '@gatehouse/contract';
import { type Command, InvalidArgumentError } from 'commander';
import { connect } from '../connection/target.ts';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { causeNote, withNotes, withRefusals } from '../render/notes.ts';
import { widthOf } from '../render/width.ts';
import { plainText, shorten } from '../render/plain.ts';
import { renderColumns, renderTable, renderTime } from '../render/table.ts';
import { addGroup } from './group.ts';
import { collect } from './job-flags.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';
import { readLocalText } from './read-skill.ts';

type State = NonNullable<ParamsInput<'webhooks.deliveries'>['state']>;
type DeliveryFlags = CommonFlags & { mapping?: string; state?: State; limit: number; before?: string };
type TestFlags = CommonFlags & { payload?: string; from?: string; header: string[]; run?: true };

const states: readonly State[] = ['accepted', 'running', 'done', 'failed', 'aborted', 'unknown', 'ignored'];
const signatures = { hmac: 'HMAC', standard: 'Standard Webhooks', none: 'none' } as const;
const messageLength = 60;
const maxPayloadBytes = 1024 * 1024;

/** `gatehouse webhooks list | deliveries | replay | test`. */
export function addWebhooksCommand(program: Command, io: Io): void {
  const webhooks = addGroup(program, 'webhooks')
    .summary('list webhooks and deliveries, replay and test')
    .description('Webhooks that start turns or wake agents, as set up in config.yaml. Needs a token with scope admin.');

  addList(webhooks, io);
  addDeliveries(webhooks, io);
  addReplay(webhooks, io);
  addTest(webhooks, io);
}

function addList(webhooks: Command, io: Io): void {
  withConnection(webhooks.command('list', { isDefault: true }))
    .description('Lists the mappings in order of evaluation.')
    .action(async (flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('webhooks.list');
      print(io, flags, listed, mappingTable);
    });
}

function addDeliveries(webhooks: Command, io: Io): void {
  withConnection(webhooks.command('deliveries'))
    .description('Lists the deliveries of the last seven days, newest first.')
    .option('--mapping <id>', 'only deliveries of this mapping')
    .option('--state <state>', states.join(', '), readState)
    .addOption(countOption('--limit <n>', 'how many, at most 200', 50))
    .option('--before <id>', 'older than this delivery: the next page')
    .action(async ({ mapping, state, limit, before, ...flags }: DeliveryFlags) => {
      const { client } = await connect(flags, io);
      const page = await client.call('webhooks.deliveries', {
        limit,
        mapping,
        state,
        before,
      });
      print(io, flags, page, () => deliveryTable(page, widthOf(io)));
    });
}

function addReplay(webhooks: Command, io: Io): void {
  withConnection(webhooks.command('replay <id>'))
    .description('Replays a delivery as a new one in the same conversation.')
    .action(async (deliveryId: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('webhooks.replay', { deliveryId });
      print(io, flags, done, () => `Replayed ${done.replayOf} as ${done.deliveryId}.`);
    });
}

function addTest(webhooks: Command, io: Io): void {
  withConnection(webhooks.command('test <mapping>'))
    .description('Previews what a mapping makes of a payload; runs nothing without --run.')
    .option('--payload <json>', 'the payload (default: {})')
    .option('--from <file>', 'file with the payload')
    .option('--header <name=value>', 'header, such as x-github-event=issues; repeatable', collect, [])
    .option('--run', 'process it as a real delivery')
    .action(async (mapping: string, { payload, from, header, run, ...flags }: TestFlags) => {
      if (payload !== undefined && from !== undefined) throw usageError('--payload and --from are mutually exclusive.');
      const text = from === undefined ? (payload ?? '{}') : await readLocalText(from, maxPayloadBytes, io);
      const params = { mapping, payload: parsePayload(text), headers: readHeaders(header), run: run === true };
      const { client } = await connect(flags, io);
      const done = await client.call('webhooks.test', params);
      print(io, flags, done, testText);
    });
}

function readState(text: string): State {
  const found = states.find((state) => state === text);
  if (found === undefined) throw new InvalidArgumentError(`Expected one of ${states.join(', ')}.`);
  return found;
}

function parsePayload(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(`The payload is not valid JSON: ${error instanceof Error ? plainText(error.message) : ''}`);
  }
}

function readHeaders(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((text) => {
      const at = text.indexOf('=');
      if (at < 1) throw usageError(`--header ${plainText(text)}: expected NAME=VALUE.`, 'Such as --header x-github-event=issues.');
      return [text.slice(0, at).toLowerCase(), text.slice(at + 1)];
    }),
  );
}

function mappingTable({ enabled, path, webhooks }: Result<'webhooks.list'>): string {
  const notes = enabled ? [] : ['Webhooks are disabled. See `webhooks` in config.yaml.'];
  if (webhooks.length === 0) return [...notes, 'No webhooks.'].join('\n');
  const table = renderTable(
    ['Mapping', 'Path', 'Does', 'Agent', 'Signature', 'Replay', 'From', 'Deliveries', 'Last'],
    webhooks.map((one) => [
      one.mapping,
      one.path === null ? `${path}/*` : `${path}/${one.path}`,
      one.action,
      one.agentId,
      signatures[one.signature],
      one.replay,
      one.preset ?? (one.builtIn ? 'built in' : 'config.yaml'),
      one.deliveries,
      one.lastDeliveryAt === null ? undefined : renderTime(one.lastDeliveryAt),
    ]),
  );
  return [...notes, table].join('\n');
}

function deliveryTable({ deliveries, hasMore }: Result<'webhooks.deliveries'>, width: number | undefined): string {
  if (deliveries.length === 0) return 'No deliveries.';
  const rows = renderTable(
    ['Received', 'Mapping', 'State', 'Ended', 'Error', 'Message', 'Conversation', 'Id'],
    deliveries.map((one) => [
      renderTime(one.receivedAt),
      one.mapping,
      withRefusals(one.state, one.effectsRefused),
      one.finishReason,
      one.errorKind,
      shorten(one.message, messageLength),
      one.conversationRef,
      one.deliveryId,
    ]),
  );
  const table = withNotes(rows, deliveries.map(causeNote), width);
  return hasMore ? `${table}\nOlder deliveries: --before ${deliveries.at(-1)?.deliveryId ?? ''}` : table;
}

function testText({ mapping, takenBy, sessionKey, senderId, message, deliveryId }: Result<'webhooks.test'>): string {
  const facts = renderColumns([
    ['mapping', mapping],
    ['matched by', takenBy === mapping ? 'itself' : (takenBy ?? 'none')],
    ['session key', sessionKey],
    ['sender id', senderId],
    ['delivery', deliveryId ?? 'none: --run processes it as a real delivery'],
  ]);
  return [facts, '', ...message.split('\n').map((line) => `  ${plainText(line)}`)].join('\n');
}
