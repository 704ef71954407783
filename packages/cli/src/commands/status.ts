import type { Health, Result } from '@gatehouse/contract';
import { type Client, GatehouseError, PermissionError } from '@gatehouse/client';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import type { Io } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { renderBytes, renderColumns, renderDuration, renderTime } from '../render/table.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';

/** `gatehouse status`: shows health and, with an admin token, the state of the daemon. */
export function addStatusCommand(program: Command, io: Io): void {
  withConnection(program.command('status'))
    .summary('show the status of the daemon')
    .description('Shows the status of the daemon. Exits with 3 when none responds.')
    .action(async (flags: CommonFlags) => {
      const { client, url } = await connect(flags, io);
      const health = await client.health();
      // A standby answers nothing else.
      const found = health.status === 'standby' ? 'another node is active; ask that one' : await gatewayStatus(client);
      const [status, missing] = typeof found === 'string' ? [null, found] : [found, ''];
      print(io, flags, { url, health, status }, (shown) => statusText(shown, missing));
    });
}

interface Status {
  readonly url: string;
  readonly health: Health;
  readonly status: Result<'gateway.status'> | null;
}

function statusText({ url, health, status }: Status, missing: string): string {
  const place = status?.address === null ? 'its owner-only socket, without a listener' : url;
  const details = status === null ? [['details', missing]] : statusRows(status);
  return [
    `Gatehouse ${health.version} at ${place}: ${health.status}, up ${renderDuration(health.uptimeMs)}`,
    renderColumns([...checkRows(health), ...details]),
  ].join('\n');
}

/** Returns the state, or why there is none: health is known also of a daemon that is stopping or has no database. */
async function gatewayStatus(client: Client): Promise<Result<'gateway.status'> | string> {
  try {
    return await client.call('gateway.status');
  } catch (error) {
    if (error instanceof PermissionError) return 'need a token with scope admin';
    if (error instanceof GatehouseError && error.code === 'unavailable') return plainText(error.message);
    throw error;
  }
}

/** Returns the failed checks only. */
function checkRows({ checks }: Health): string[][] {
  return Object.entries(checks).flatMap(([name, { status, detail }]) =>
    status === 'ok' ? [] : [[name, detail === undefined ? status : `${status}: ${detail}`]],
  );
}

function statusRows({
  pid,
  nodeVersion,
  memoryUsage,
  connections,
  turns,
  storage,
  configPaths,
  nodes,
  restartNeeded,
  configFault,
  retention,
}: Result<'gateway.status'>): string[][] {
  return [
    ['process', `${pid}, Node ${nodeVersion}, ${renderBytes(memoryUsage)} of memory`],
    ['connections', `${connections.http} HTTP, ${connections.websocket} WebSocket`],
    ['turns', `${turns.running} running, ${turns.queued} waiting`],
    [
      'storage',
      `${storage.path}, ${renderBytes(storage.bytes)}${storage.state === 'ok' ? '' : `, READ ONLY${storage.reason === undefined ? '' : `: ${storage.reason}`}`}`,
    ],
    ...(storage.telemetryBytes === undefined ? [] : [['events and traces', renderBytes(storage.telemetryBytes)]]),
    ...(retention === undefined ? [] : [['old records', retentionText(retention)]]),
    ['configuration', configPaths.join(', ')],
    ...(configFault === undefined ? [] : [['not in force', plainText(configFault)]]),
    ...(restartNeeded.length === 0 ? [] : [['restart', `needed for ${plainText(restartNeeded.join(', '))}: gatehouse call gateway.restart`]]),
    ...(nodes ?? []).map(nodeRow),
  ];
}

function retentionText({ nextAtMs, kept }: NonNullable<Result<'gateway.status'>['retention']>): string {
  const each = kept.map(({ name, days, oldestAtMs }) => {
    const oldest = oldestAtMs === undefined ? 'none' : `oldest ${renderTime(oldestAtMs)}`;
    return `${spaced(name)} ${days} days (${oldest})`;
  });
  return `deleted next ${renderTime(nextAtMs)}: ${each.join(', ')}`;
}

/** `modelCalls` as `model calls`. */
const spaced = (name: string): string => name.replaceAll(/[A-Z]/gu, (letter) => ` ${letter.toLowerCase()}`);

function nodeRow({ self, role, state, version, address, leaseLeftMs }: NonNullable<Result<'gateway.status'>['nodes']>[number]): string[] {
  const lease = leaseLeftMs > 0 ? `lease ends in ${renderDuration(leaseLeftMs)}` : `lease ended ${renderDuration(-leaseLeftMs)} ago`;
  return [`${role} node`, `${address ?? 'no address'}${self === true ? ' (this one)' : ''}, version ${version}, ${state}, ${lease}`];
}
