import type { ParamsInput, Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { type Io, printLine } from '../io.ts';
import { renderTable, renderTime } from '../render/table.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';
import { readPeriod } from './period.ts';

type Scope = ParamsInput<'tokens.create'>['scopes'][number];

interface CreateFlags {
  readonly id?: string;
  readonly scope?: string[];
  readonly agent?: string[];
  readonly fields?: 'strict' | 'extended';
  readonly tools?: 'agent' | 'none';
  readonly expiresIn?: string;
  readonly person?: string;
}

/** `gatehouse tokens list | create | revoke | rotate`. */
export function addTokensCommand(program: Command, io: Io): void {
  const tokens = program
    .command('tokens')
    .summary('list, create, revoke and rotate access tokens')
    .description('Manages access tokens; needs a token with scope admin.');

  addList(tokens, io);
  addCreate(tokens, io);
  addRevoke(tokens, io);
  addRotate(tokens, io);
}

function addList(tokens: Command, io: Io): void {
  withConnection(tokens.command('list'))
    .description('Lists the valid tokens. Secrets are never shown again.')
    .action(async (flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('tokens.list');
      print(io, flags, listed.tokens, () => tokenTable(listed.tokens));
    });
}

function addCreate(tokens: Command, io: Io): void {
  withConnection(tokens.command('create'))
    .description('Creates a token and shows its secret once.')
    .option('--id <id>', 'name of the token (default: random)')
    .option('--scope <scope...>', 'scopes: rpc, api, ws, admin, mcp-client or * (default: rpc)')
    .option('--agent <id...>', 'restrict the token to these agents')
    .option('--fields <set>', 'request fields that /v1/chat/completions accepts: strict or extended (default: gateway.compat.fields)')
    .option('--tools <whose>', 'whether its /v1 turns may use the agent’s tools: agent or none (default: gateway.compat.tools)')
    .option('--person <name>', 'the person that the token belongs to: tokens of one person share conversations and memories')
    .option('--expires-in <time>', 'lifetime, such as 90d, 12h or 30m (default: unlimited)')
    .action(async ({ id, scope, agent, fields, tools, expiresIn, person, ...flags }: CommonFlags & CreateFlags) => {
      const { client } = await connect(flags, io);
      const created = await client.call('tokens.create', {
        // An empty list would mean every scope, so the default is explicit. The server validates the names.
        scopes: (scope ?? ['rpc']) as Scope[],
        id,
        agents: agent,
        person,
        ...(fields === undefined && tools === undefined ? {} : { compat: { fields, tools } }),
        ...(expiresIn === undefined ? {} : { expiresAt: io.now() + readPeriod('--expires-in', expiresIn) }),
      });
      printSecret(created, flags, io);
    });
}

function addRevoke(tokens: Command, io: Io): void {
  withConnection(tokens.command('revoke <id>'))
    .description('Revokes a token immediately and closes its connections.')
    .action(async (id: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const revoked = await client.call('tokens.revoke', { id });
      print(io, flags, revoked, () => `Revoked ${revoked.id}.`);
    });
}

function addRotate(tokens: Command, io: Io): void {
  withConnection(tokens.command('rotate <id>'))
    .description('Replaces the secret of a token and shows the new one once.')
    .action(async (id: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      printSecret(await client.call('tokens.rotate', { id }), flags, io);
    });
}

function tokenTable(tokens: Result<'tokens.list'>['tokens']): string {
  return renderTable(
    ['Id', 'Person', 'Scopes', 'Agents', 'From', 'Created', 'Expires', 'Last used'],
    tokens.map((one) => [
      one.id,
      one.person ?? '-',
      one.scopes.join(' '),
      one.agents?.join(' ') ?? 'all',
      one.source,
      renderTime(one.createdAt),
      renderTime(one.expiresAt),
      renderTime(one.lastUsedAt),
    ]),
  );
}

/** Prints only the secret to standard output, so that it can be redirected to a file. */
function printSecret(created: Result<'tokens.create'>, flags: CommonFlags, io: Io): void {
  const { id, scopes, expiresAt, message, secret } = created;
  const expiry = expiresAt === undefined ? '' : `, expires ${renderTime(expiresAt)}`;
  if (flags.output !== 'json') printLine(io.stderr, `Token ${id}, scopes ${scopes.join(' ')}${expiry}. ${message}`);
  print(io, flags, created, () => secret);
}
