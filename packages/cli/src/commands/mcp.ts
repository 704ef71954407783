import type { Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { plainText, shorten } from '../render/plain.ts';
import { renderColumns, renderTable, renderTime } from '../render/table.ts';
import { addGroup } from './group.ts';
import { addAuthorizationCommands } from './mcp-authorize.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';

type ConnectFlags = CommonFlags & { sse?: true; header: string[]; agent: string[] };
type Connected = Result<'mcp.connect'>;

/** Timeout for connecting, which may have to start a program first. */
const patienceMs = 120_000;
const descriptionLength = 80;

/** `gatehouse mcp list | status | connect | disconnect | reconnect | test | authorize | deauthorize`. */
export function addMcpCommand(program: Command, io: Io, setExit: SetExit): void {
  const mcp = addGroup(program, 'mcp')
    .summary('list, connect, authorize and test MCP servers')
    .description('MCP servers whose tools agents may use; needs a token with scope admin. Local programs (stdio) can only be set up in config.yaml.');

  addList(mcp, io);
  addStatus(mcp, io);
  addConnect(mcp, io);
  addReconnect(mcp, io);
  addDisconnect(mcp, io);
  addTest(mcp, io, setExit);
  addAuthorizationCommands(mcp, io, setExit);
}

function addList(mcp: Command, io: Io): void {
  withConnection(mcp.command('list', { isDefault: true }))
    .description('Lists the servers with the state of their connections.')
    .action(async (flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('mcp.list');
      print(io, flags, listed, serverTable);
    });
}

function addStatus(mcp: Command, io: Io): void {
  withConnection(mcp.command('status <name>'))
    .description('Shows the state of a server and its tools.')
    .action(async (name: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const status = await client.call('mcp.status', { name });
      print(io, flags, status, statusText);
    });
}

function addConnect(mcp: Command, io: Io): void {
  withConnection(mcp.command('connect <name> [address]'))
    .description('Connects a known server, or a remote one at ADDRESS, which is then stored.')
    .option('--sse', 'use the older SSE transport instead of streamable HTTP')
    .option('--header <name=VARIABLE>', 'send this header with the value of an environment variable; repeatable', collect, [])
    .option('--agent <id>', 'limit its tools to this agent; repeatable', collect, [])
    .action(async (name: string, address: string | undefined, { sse, header, agent, ...flags }: ConnectFlags) => {
      if (address === undefined && (sse === true || header.length > 0 || agent.length > 0))
        throw usageError('--sse, --header and --agent need an ADDRESS.');
      const headers = readHeaders(header, io);
      const { client } = await connect(flags, io);
      const remote =
        address === undefined
          ? {}
          : {
              transport: sse === true ? ('sse' as const) : ('http' as const),
              url: address,
              ...(header.length === 0 ? {} : { headers }),
              ...(agent.length === 0 ? {} : { agents: agent }),
            };
      const done = await client.call('mcp.connect', { name, ...remote }, { timeoutMs: patienceMs });
      print(io, flags, done, connectedText);
    });
}

function addReconnect(mcp: Command, io: Io): void {
  withConnection(mcp.command('reconnect <name>'))
    .description('Closes the connection to a server, if any, and connects again.')
    .action(async (name: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('mcp.reconnect', { name }, { timeoutMs: patienceMs });
      print(io, flags, done, connectedText);
    });
}

function addDisconnect(mcp: Command, io: Io): void {
  withConnection(mcp.command('disconnect <name>'))
    .description('Disconnects a server; it stays disconnected until you connect it again.')
    .option('--forget', 'also remove the stored server and its headers')
    .action(async (name: string, { forget, ...flags }: CommonFlags & { forget?: true }) => {
      const { client } = await connect(flags, io);
      const done = await client.call('mcp.disconnect', { name, forget: forget === true });
      print(io, flags, done, () => `Disconnected ${done.name}${done.forgotten ? ' and removed it' : ''}.`);
    });
}

function addTest(mcp: Command, io: Io, setExit: SetExit): void {
  withConnection(mcp.command('test <name>'))
    .description('Opens a separate connection and measures a round trip; exits with 1 on failure.')
    .action(async (name: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const found = await client.call('mcp.test', { name }, { timeoutMs: patienceMs });
      if (!found.success) setExit(exitCode.failed);
      print(io, flags, found, () =>
        found.success
          ? `${plainText(name)} responded in ${found.latencyMs.toFixed(1)} ms: ${found.toolCount} tools.`
          : `${plainText(name)} failed: ${plainText(found.error)}`,
      );
    });
}

/** Reads header values from the environment, because other users can read a command line. */
function readHeaders(given: readonly string[], io: Io): Record<string, string> {
  return Object.fromEntries(
    given.map((text) => {
      const [, name, variable] = /^([^=]+)=([A-Za-z_][A-Za-z0-9_]*)$/.exec(text) ?? [];
      if (name === undefined || variable === undefined)
        throw usageError(`--header ${plainText(text)}: expected NAME=VARIABLE.`, 'Such as --header authorization=SEARCH_TOKEN.');
      const value = io.env[variable];
      if (value === undefined || value === '') throw usageError(`The environment variable ${variable} is not set.`);
      return [name, value];
    }),
  );
}

function collect(value: string, before: readonly string[]): string[] {
  return [...before, value];
}

function serverTable({ servers }: Result<'mcp.list'>): string {
  if (servers.length === 0) return 'No MCP servers.';
  return renderTable(
    ['Name', 'Transport', 'From', 'State', 'Tools', 'Last response', 'Next try', 'Error'],
    servers.map(({ name, transport, source, status, toolCount, lastHealthCheck, retryAt, error }) => [
      name,
      transport,
      source === 'config' ? 'config.yaml' : 'stored',
      status.replaceAll('_', ' '),
      toolCount,
      lastHealthCheck === null ? undefined : renderTime(lastHealthCheck),
      retryAt === undefined ? undefined : renderTime(retryAt),
      error,
    ]),
  );
}

function statusText(server: Result<'mcp.status'>): string {
  const { name, transport, status, address, serverVersion, error, retryAt, reconnectAttempt, maxReconnectAttempts, tools, droppedTools, agents } =
    server;
  const facts = renderColumns([
    ['server', name],
    ['state', status.replaceAll('_', ' ')],
    ['authorized', authorizationText(server)],
    ['transport', transport],
    ['at', address],
    ['server', serverVersion === undefined ? undefined : `${serverVersion.name} ${serverVersion.version}`],
    ['agents', agents === undefined ? 'all' : agents.join(', ')],
    ['attempts', `${reconnectAttempt} of ${maxReconnectAttempts}`],
    ['error', error],
    ['next try', retryAt === undefined ? undefined : renderTime(retryAt)],
  ]);
  const rows = tools.map((tool) => [
    tool.callableName,
    tool.risk,
    tool.description === undefined ? undefined : shorten(tool.description, descriptionLength),
  ]);
  return [
    facts,
    '',
    tools.length === 0 ? 'No tools.' : renderTable(['Tool', 'Risk', 'Description'], rows),
    ...(droppedTools > 0 ? [`${droppedTools} tools were skipped.`] : []),
  ].join('\n');
}

function authorizationText({ authorization }: Result<'mcp.status'>): string | undefined {
  if (authorization === undefined) return undefined;
  const { state, authorizedAt, scopes = [], missingScopes = [], failure } = authorization;
  return [
    state === 'authorized' && authorizedAt !== undefined ? `since ${renderTime(authorizedAt)}` : state === 'pending' ? 'waiting for a browser' : 'no',
    ...(scopes.length > 0 ? [`for ${scopes.join(', ')}`] : []),
    ...(missingScopes.length > 0 ? [`lacking ${missingScopes.join(', ')}`] : []),
    ...(failure === undefined ? [] : [`last attempt failed: ${failure}`]),
  ].join('; ');
}

function connectedText({ name, status, tools }: Connected): string {
  if (status === 'needs_authorization') return `${name} needs authorization: run \`gatehouse mcp authorize ${name}\`.`;
  return `${name} is ${status} and offers ${tools.length} tools${tools.length === 0 ? '' : `: ${plainText(tools.join(', '))}`}.`;
}
