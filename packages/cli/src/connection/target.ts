import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Client, createClient, type Fetch } from '@gatehouse/client';
import { exitCode } from '../exit-codes.ts';
import { CliError, usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { askControlInfo, socketFetch } from './control-socket.ts';
import { readListenAddress, toUrl } from './listen-address.ts';
import { withShortIds } from './short-ids.ts';

/** Options of every command that calls a daemon. */
export interface ConnectionFlags {
  readonly url?: string | undefined;
  readonly tokenFile?: string | undefined;
  readonly home?: string | undefined;
}

/** The daemon to call, and the credentials. */
export interface Target {
  readonly url: string;
  readonly token: string | undefined;
  readonly fetch: Fetch | undefined;
}

export function homeDir(flags: ConnectionFlags, io: Io): string {
  return resolve(io.workingDir, flags.home ?? (io.env['GATEHOUSE_HOME'] || join(io.userHome, '.gatehouse')));
}

export function controlSocketFile(home: string): string {
  return join(home, 'gatehouse.sock');
}

/**
 * Finds the daemon: from flags, then the environment (unless `--home` is set), then the daemon of the home folder
 * over its owner-only socket, then `config.yaml`, then the default address. Without a listener, without any
 * token, and instead of TLS, calls go over that socket.
 */
export async function findTarget(flags: ConnectionFlags, io: Io): Promise<Target> {
  const explicit = flags.url ?? (flags.home === undefined ? io.env['GATEHOUSE_URL'] || portUrl(io.env['GATEHOUSE_PORT']) : undefined);
  if (explicit !== undefined) {
    const url = parseUrl(explicit);
    return { url: url.href.replace(/\/$/, ''), token: await needToken(flags, io, isLoopback(url)), fetch: undefined };
  }
  const home = homeDir(flags, io);
  const socketFile = controlSocketFile(home);
  const info = await askControlInfo(socketFile);
  if (info?.address === null) return { url: 'http://localhost', token: undefined, fetch: socketFetch(socketFile) };
  const url = info?.address ?? toUrl(readListenAddress((await readText(join(home, 'config.yaml'))) ?? '', io.env));
  // When config.yaml lists tokens, the daemon creates no token file, and its owner needs none.
  const token = info === undefined ? await needToken(flags, io, true) : await findToken(flags, io, true);
  // The certificate may not match this machine's name, and the server may require a client certificate.
  const bySocket = token === undefined || (info !== undefined && url.startsWith('https:'));
  return { url, token, fetch: bySocket ? socketFetch(socketFile) : undefined };
}

export async function connect(flags: ConnectionFlags, io: Io): Promise<{ client: Client; url: string; hasToken: boolean }> {
  const target = await findTarget(flags, io);
  // No retries for an interactive command: failures are reported at once.
  return { client: withShortIds(createClient({ ...target, retry: { retries: 0 } })), url: target.url, hasToken: target.token !== undefined };
}

/** Returns the token; the one in the home folder belongs to this machine's daemon and is never sent to another host. */
async function findToken(flags: ConnectionFlags, io: Io, mayUseHome: boolean): Promise<string | undefined> {
  if (flags.tokenFile !== undefined) {
    const text = await readText(resolve(io.workingDir, flags.tokenFile));
    if (text === undefined) throw usageError(`File not found: ${flags.tokenFile}.`);
    return oneLine(text, flags.tokenFile);
  }
  const given = io.env['GATEHOUSE_TOKEN'];
  if (given !== undefined && given !== '') return oneLine(given, 'GATEHOUSE_TOKEN');
  const file = join(homeDir(flags, io), 'token');
  const text = mayUseHome ? await readText(file) : undefined;
  // Its token was revoked when it is empty.
  return text === undefined || text.trim() === '' ? undefined : oneLine(text, file);
}

async function needToken(flags: ConnectionFlags, io: Io, mayUseHome: boolean): Promise<string> {
  const token = await findToken(flags, io, mayUseHome);
  if (token !== undefined) return token;
  const looked = mayUseHome
    ? `No token: ${join(homeDir(flags, io), 'token')} does not exist and GATEHOUSE_TOKEN is not set.`
    : 'No token for this host: the token in the home folder is never sent to other hosts.';
  throw new CliError(looked, {
    exitCode: exitCode.refused,
    hint: 'Pass one with --token-file FILE or GATEHOUSE_TOKEN: a token from `config.yaml`, or the one that the daemon wrote to that file at its first start.',
  });
}

function oneLine(text: string, where: string): string {
  const token = text.trim();
  if (token === '' || /\s/.test(token)) throw usageError(`${where} does not contain a token: expected one word.`);
  return token;
}

function portUrl(port: string | undefined): string | undefined {
  return port === undefined || port === '' ? undefined : `http://127.0.0.1:${port}`;
}

function parseUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) throw usageError(`${text} is not an address: expected http://HOST:PORT.`);
  if (url.username !== '' || url.password !== '') throw usageError('An address must not contain a password.', 'Use --token-file or GATEHOUSE_TOKEN.');
  return url;
}

function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

async function readText(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw new CliError(`Cannot read ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
