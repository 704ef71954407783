import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Client, createClient, type Fetch } from '@gatehouse/client';
import { exitCode } from '../exit-codes.ts';
import { CliError, usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { askControlInfo, socketFetch } from './control-socket.ts';
import { readListenAddress, toUrl } from './listen-address.ts';

/** Options that every command which talks to a daemon takes. */
export interface ConnectionFlags {
  readonly url?: string | undefined;
  readonly tokenFile?: string | undefined;
  readonly home?: string | undefined;
}

/** Which daemon, and with what authority. */
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
 * Finds the daemon: flags, then environment (unless `--home` names another), then what the daemon of the home folder
 * says over its owner-only socket, then `config.yaml`, then the default address.
 */
export async function findTarget(flags: ConnectionFlags, io: Io): Promise<Target> {
  const explicit = flags.url ?? (flags.home === undefined ? io.env['GATEHOUSE_URL'] || portUrl(io.env['GATEHOUSE_PORT']) : undefined);
  if (explicit !== undefined) {
    const url = parseUrl(explicit);
    return { url: url.href.replace(/\/$/, ''), token: await findToken(flags, io, isLoopback(url)), fetch: undefined };
  }
  const home = homeDir(flags, io);
  const info = await askControlInfo(controlSocketFile(home));
  if (info !== undefined && info.address === null) return { url: 'http://localhost', token: undefined, fetch: socketFetch(controlSocketFile(home)) };
  const url = info?.address ?? toUrl(readListenAddress((await readText(join(home, 'config.yaml'))) ?? '', io.env));
  return { url, token: await findToken(flags, io, true), fetch: undefined };
}

export async function connect(flags: ConnectionFlags, io: Io): Promise<{ client: Client; url: string }> {
  const target = await findTarget(flags, io);
  // A person waits at the terminal: what failed is said at once, the hint says what to do.
  return { client: createClient({ ...target, retry: { retries: 0 } }), url: target.url };
}

/** The token of the home folder is for the daemon of this machine: it never goes to another host. */
async function findToken(flags: ConnectionFlags, io: Io, mayUseHome: boolean): Promise<string> {
  if (flags.tokenFile !== undefined) {
    const text = await readText(resolve(io.workingDir, flags.tokenFile));
    if (text === undefined) throw usageError(`There is no file ${flags.tokenFile}.`);
    return oneLine(text, flags.tokenFile);
  }
  const given = io.env['GATEHOUSE_TOKEN'];
  if (given !== undefined && given !== '') return oneLine(given, 'GATEHOUSE_TOKEN');
  const file = join(homeDir(flags, io), 'token');
  const text = mayUseHome ? await readText(file) : undefined;
  if (text !== undefined) return oneLine(text, file);
  const looked = mayUseHome
    ? `There is no token: ${file} does not exist and GATEHOUSE_TOKEN is not set.`
    : 'There is no token for this host: the one of the home folder stays on this machine.';
  throw new CliError(looked, {
    exitCode: exitCode.refused,
    hint: 'Give one with --token-file FILE or GATEHOUSE_TOKEN; the daemon makes the first one when it starts.',
  });
}

function oneLine(text: string, where: string): string {
  const token = text.trim();
  if (token === '' || /\s/.test(token)) throw usageError(`${where} does not hold a token: expected one word.`);
  return token;
}

function portUrl(port: string | undefined): string | undefined {
  return port === undefined || port === '' ? undefined : `http://127.0.0.1:${port}`;
}

function parseUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) throw usageError(`${text} is not an address: expected http://HOST:PORT.`);
  if (url.username !== '' || url.password !== '') throw usageError('An address must not hold a password.', 'Use --token-file or GATEHOUSE_TOKEN.');
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
