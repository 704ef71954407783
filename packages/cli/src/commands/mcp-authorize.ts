import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { type Io, printLine } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { untilInterrupted } from './interrupt.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';

type AuthorizeFlags = CommonFlags & { open: boolean };
type Status = Result<'mcp.status'>;

/** Each poll is one of the hundred calls that a token has per minute. */
const pollMs = 1500;
/** Timeout for connecting after the authorization. */
const connectMs = 30_000;
const patienceMs = 60_000;

/** `gatehouse mcp authorize | deauthorize`. */
export function addAuthorizationCommands(mcp: Command, io: Io, setExit: SetExit): void {
  withConnection(mcp.command('authorize <name>'))
    .description(
      'Authorizes a server that asks for it (OAuth): prints an address, opens it in a browser on a terminal, and waits until a person has agreed there.',
    )
    .option('--no-open', 'only print the address')
    .action((name: string, { open, ...flags }: AuthorizeFlags) =>
      untilInterrupted(io, setExit, async (signal) => {
        const { client } = await connect(flags, io);
        const before = (await client.call('mcp.status', { name })).authorization?.authorizedAt;
        const begun = await client.call('mcp.authorize', { name }, { timeoutMs: patienceMs });
        if (flags.output === 'json') return print(io, flags, begun, () => '');
        printLine(io.stdout, `Open this address in a browser and agree there:\n\n  ${plainText(begun.authorizationUrl)}\n`);
        if (open && io.stdout.isTTY === true) io.openBrowser?.(begun.authorizationUrl);
        printLine(io.stdout, 'Waiting for the browser; Ctrl-C stops waiting, and the address still works for ten minutes.');
        const { isDone, text } = await waitForAuthorization(client, io, { name, before, signal });
        printLine(io.stdout, text);
        if (!isDone) setExit(exitCode.failed);
      }),
    );

  withConnection(mcp.command('deauthorize <name>'))
    .description('Deletes the authorization at a server and revokes it there where that is possible.')
    .action(async (name: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('mcp.deauthorize', { name }, { timeoutMs: patienceMs });
      print(io, flags, done, () =>
        done.revoked
          ? `Deleted the authorization at ${name}, and revoked it there.`
          : `Deleted the authorization at ${name}. The authorization server did not confirm that it is revoked there.`,
      );
    });
}

interface Wait {
  readonly name: string;
  /** When the server was authorized before. */
  readonly before: number | undefined;
  readonly signal: AbortSignal;
}

async function waitForAuthorization(
  client: Client,
  io: Io,
  { name, before, signal }: Wait,
): Promise<{ readonly isDone: boolean; readonly text: string }> {
  const call = () => client.call('mcp.status', { name }, { signal });
  const startedAt = io.now();
  for (;;) {
    let status = await call();
    const { authorization } = status;
    if (authorization?.authorizedAt !== undefined && authorization.authorizedAt !== before) {
      for (let waited = 0; isConnecting(status) && waited < connectMs; waited += pollMs) {
        await pause(pollMs, undefined, { signal });
        status = await call();
      }
      return { isDone: true, text: doneText(status) };
    }
    if (authorization?.failure !== undefined) return { isDone: false, text: `${name} was not authorized: ${plainText(authorization.failure)}.` };
    if (authorization?.state === 'needed' || io.now() - startedAt > 600_000)
      return { isDone: false, text: `Nobody agreed in time. Begin again with \`gatehouse mcp authorize ${name}\`.` };
    await pause(pollMs, undefined, { signal });
  }
}

function isConnecting({ status }: Status): boolean {
  return status === 'connecting' || status === 'disconnected';
}

function doneText({ name, status, toolCount, error }: Status): string {
  return status === 'connected'
    ? `${name} is authorized and connected: ${toolCount} tools.`
    : `${name} is authorized. It is ${status}${error === undefined ? '' : `: ${plainText(error)}`}.`;
}
