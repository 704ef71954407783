import type { Result } from '@gatehouse/contract';
import { type Command, Option } from 'commander';
import { type Access, type ClientFile, compatOf, type ConnectedClient } from '../clients/client.ts';
import { findFormerToken, replaceToken } from '../clients/client-token.ts';
import { clients } from '../clients/clients.ts';
import { mergeFile } from '../clients/merge-file.ts';
import { ShapeError } from '../clients/merge-values.ts';
import { type Offer, readOffer } from '../clients/offered-models.ts';
import { prepareConfig, type PreparedFile, readConfig, type WrittenFile } from '../clients/write-file.ts';
import { connect } from '../connection/target.ts';
import { CliError, usageError } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { nearest } from '../nearest.ts';
import { renderTable, renderTime } from '../render/table.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';
import { readPeriod } from './period.ts';

interface ConnectFlags {
  readonly list?: true;
  readonly agent?: string;
  readonly model?: string;
  readonly name?: string;
  readonly expires?: string;
  readonly tools?: 'agent' | 'none';
  readonly mcp?: true;
  readonly write?: true;
  readonly dryRun?: true;
}

/** Placeholder for the secret when none is created. */
const placeholder = '<token>';

const clientRows = clients.map(({ id, title, route, files, takesMcp }) => ({ id, title, route, write: files !== undefined, mcp: takesMcp === true }));

/** `gatehouse connect CLIENT`: creates a token for a third-party client, and that client's configuration. */
export function addConnectCommand(program: Command, io: Io): void {
  withConnection(program.command('connect [client]'))
    .summary('connect a coding client or SDK: create its token and configuration')
    .description(
      `Creates a token for CLIENT and prints that client's configuration, or writes it. Running it again replaces the token. Needs a token with scope admin. Clients: ${clients.map(({ id }) => id).join(', ')}.`,
    )
    .option('--list', 'list the clients')
    .option('--model <name>', "model to use (default: the default agent's)")
    .option('--agent <id>', 'restrict the client to this agent, offered as the model agent/<id>')
    .option('--name <id>', 'id of the token (default: the name of the client)')
    .option('--expires <time>', 'lifetime of the token, such as 90d, 12h or 30m (default: unlimited)')
    .addOption(
      new Option('--tools <whose>', "whether the agent's tools are offered next to the client's (default: none for clients with tools)").choices([
        'agent',
        'none',
      ]),
    )
    .option('--mcp', "also configure the gateway's MCP server (scope mcp-client)")
    .option('--write', "write the client's configuration files, after a backup of each")
    .option('--dry-run', 'only show what would be configured')
    .action(async (name: string | undefined, flags: CommonFlags & ConnectFlags) => {
      if (flags.list === true || name === undefined) return print(io, flags, clientRows, clientTable);
      await connectClient(findClient(name), flags, io);
    });
}

async function connectClient(wanted: ConnectedClient, flags: CommonFlags & ConnectFlags, io: Io): Promise<void> {
  checkFlags(wanted, flags);
  const expiresAt = flags.expires === undefined ? undefined : io.now() + readPeriod('--expires', flags.expires);
  const { client, url, isReachable } = await reach(flags, io);
  if (!isReachable) throw new CliError('The gateway has no listener, so clients cannot reach it.', { hint: 'Set `gateway.port` in config.yaml.' });
  const id = flags.name ?? wanted.id;
  const [offer, former] = await Promise.all([readOffer(client, flags), findFormerToken(client, id)]);
  const access = (secret: string): Access => ({ url, secret, model: offer.model, models: offer.models, mcp: flags.mcp === true });
  // Detects files that can't be merged or written before a token is created or replaced.
  const merged = flags.write === true ? await mergeAll(wanted.files?.(access(placeholder), io) ?? []) : [];
  if (flags.dryRun === true) return printConfig(wanted, access(placeholder), { offer, former: former?.id, written: [] }, flags, io);
  const prepared = await prepareAll(merged, io.now());
  const making = replaceToken(client, former, {
    id,
    scopes: flags.mcp === true ? ['api', 'mcp-client'] : ['api'],
    compat: compatOf(wanted, flags.tools),
    ...(flags.agent !== undefined && { agents: [flags.agent] }),
    expiresAt,
  });
  const token = await making.catch(async (error: unknown) => {
    await Promise.all(prepared.map((file) => file.discard()));
    throw error;
  });
  const written: WrittenFile[] = [];
  if (flags.write === true) {
    const texts = await mergeAll(wanted.files?.(access(token.secret), io) ?? []);
    for (const [at, { text }] of texts.entries()) written.push(...((await prepared[at]?.commit(text).then((one) => [one])) ?? []));
  }
  await printConfig(wanted, access(token.secret), { offer, former: former?.id, token, written }, flags, io);
}

async function reach(flags: CommonFlags, io: Io) {
  const { client, url } = await connect(flags, io);
  // Placeholder address for the control socket when the daemon has no listener.
  return { client, url, isReachable: url !== 'http://localhost' };
}

function findClient(name: string): ConnectedClient {
  const found = clients.find(({ id }) => id === name);
  if (found !== undefined) return found;
  const known = clients.map(({ id }) => id);
  const meant = nearest(name, known);
  throw usageError(`Unknown client ${JSON.stringify(name)}: expected ${known.join(', ')}.`, meant && `Did you mean \`${meant}\`?`);
}

function checkFlags(client: ConnectedClient, flags: ConnectFlags): void {
  if (flags.agent !== undefined && flags.model !== undefined)
    throw usageError('--agent and --model are mutually exclusive: an agent has its own model.');
  if (flags.write === true && client.files === undefined)
    throw usageError(`${client.title} has no configuration file: it is configured by the environment.`, 'Omit --write.');
  if (flags.mcp === true && client.takesMcp !== true)
    throw usageError(
      `--mcp is not available for ${client.title}.`,
      `Supported clients: ${clients.flatMap(({ id, takesMcp }) => (takesMcp === true ? id : [])).join(' and ')}; for others see docs/guide/mcp.md.`,
    );
}

async function mergeAll(files: readonly ClientFile[]): Promise<{ file: string; text: string }[]> {
  return Promise.all(
    files.map(async (one) => {
      try {
        return { file: one.file, text: await mergeFile(await readConfig(one.file), one) };
      } catch (error) {
        if (!(error instanceof ShapeError)) throw error;
        throw usageError(`${one.file} cannot be merged: ${error.message}.`, 'Run the command without --write and add the lines by hand.');
      }
    }),
  );
}

async function prepareAll(files: readonly { readonly file: string; readonly text: string }[], nowMs: number): Promise<PreparedFile[]> {
  const prepared: PreparedFile[] = [];
  try {
    for (const { file, text } of files) prepared.push(await prepareConfig(file, text, nowMs));
    return prepared;
  } catch (error) {
    await Promise.all(prepared.map((one) => one.discard()));
    throw error;
  }
}

interface Done {
  readonly offer: Offer;
  readonly former: string | undefined;
  readonly token?: Result<'tokens.create'>;
  readonly written: readonly WrittenFile[];
}

/** Prints the configuration to standard output, and messages about it to standard error. */
async function printConfig(client: ConnectedClient, access: Access, done: Done, flags: CommonFlags & ConnectFlags, io: Io): Promise<void> {
  const env = client.env?.(access) ?? {};
  const files = await Promise.all((client.files?.(access, io) ?? []).map(async (one) => ({ file: one.file, text: await mergeFile('', one) })));
  if (flags.output === 'json') {
    const { token, former, written, offer } = done;
    const config = { client: client.id, url: access.url, route: client.route, model: access.model, models: offer.models.map(({ id }) => id), env };
    return printLine(
      io.stdout,
      JSON.stringify({ ...config, token: token ?? null, replaced: former !== undefined, files: written.length > 0 ? [] : files, written }),
    );
  }
  say(client, done, io);
  if (done.written.length > 0) return;
  const variables = Object.entries(env).map(([name, value]) => `export ${name}='${value.replaceAll("'", String.raw`'\''`)}'`);
  const blocks = [
    ...(variables.length > 0 ? [`# Environment of ${client.title}\n${variables.join('\n')}`] : []),
    ...(variables.length > 0 ? [] : files.map(({ file, text }) => `# ${file}\n${text.trimEnd()}`)),
  ];
  printLine(io.stdout, blocks.join('\n\n'));
}

function say(client: ConnectedClient, { token, former, offer, written }: Done, io: Io): void {
  const lines = [
    token === undefined
      ? `Nothing was created. ${former === undefined ? 'A token would be created' : `The token ${former} would be replaced`}.`
      : `Token ${token.id}, scopes ${token.scopes.join(' ')}${token.expiresAt === undefined ? '' : `, expires ${renderTime(token.expiresAt)}`}${former === undefined ? '' : '; its former secret no longer works'}. The secret is not shown again.`,
    ...written.map(({ file, backup }) => `Wrote ${file}${backup === undefined ? '' : `; backup in ${backup}`}.`),
    ...(offer.leftOut > 0 ? [`${offer.leftOut} more models are not listed: \`gatehouse models list\` shows them.`] : []),
    `Start: ${client.start}`,
  ];
  printLine(io.stderr, lines.join('\n'));
}

function clientTable(rows: typeof clientRows): string {
  return renderTable(
    ['Client', 'Name', 'Route', '--write', '--mcp'],
    rows.map((row) => [row.id, row.title, row.route, row.write ? 'yes' : 'no', row.mcp ? 'yes' : 'no']),
  );
}
