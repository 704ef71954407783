import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '@gatehouse/testkit/free-port';
import { findCommand } from '../../tools/system-packages.mjs';

import { eventually } from './product.ts';
import type { Pair } from '../../packages/testkit/src/certificates.ts';

export type ProxyName = 'nginx' | 'caddy';

export interface RunningProxy extends AsyncDisposable {
  readonly port: number;
}

const guide = join(import.meta.dirname, '../../docs/guide/proxies.md');
export const guideHost = 'gate.example.org';

/** Returns the configuration from the guide, verbatim. */
async function linesOfGuide(language: string): Promise<string> {
  const found = new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(await readFile(guide, 'utf8'))?.[1];
  if (found === undefined) throw new Error(`docs/guide/proxies.md has no block for ${language}`);
  return found;
}

/** Replaces a value of the guide, which must exist, with one of this run. */
function replaced(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`docs/guide/proxies.md does not hold "${from}"`);
  return text.replaceAll(from, to);
}

/** Starts the proxy with the configuration of the guide; only addresses and files are replaced. */
export async function startProxy(name: ProxyName, upstreamPort: number, pair: Pair): Promise<RunningProxy> {
  const command = findCommand(name);
  if (command === undefined) throw new Error(`${name} is not installed`);
  const dir = await mkdtemp(join(tmpdir(), `gatehouse-${name}-`));
  const port = await freePort();
  const cert = join(dir, 'cert.pem');
  const key = join(dir, 'key.pem');
  await writeFile(cert, pair.cert);
  await writeFile(key, pair.key);
  const args = name === 'nginx' ? await nginxArgs(dir, port, upstreamPort, cert, key) : await caddyArgs(dir, port, upstreamPort, cert, key);
  const child = spawn(command, args, { cwd: dir, env: { PATH: process.env['PATH'] ?? '', HOME: dir, XDG_DATA_HOME: dir, XDG_CONFIG_HOME: dir } });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => (said += piece.toString()));
  const stop = async (): Promise<void> => {
    await ended(child);
    await rm(dir, { recursive: true, force: true });
  };
  if (!(await eventually(async () => child.exitCode !== null || (await answers(port)), 10_000)) || child.exitCode !== null) {
    await stop();
    throw new Error(`${name} did not start:\n${said}`);
  }
  return { port, [Symbol.asyncDispose]: stop };
}

async function nginxArgs(dir: string, port: number, upstreamPort: number, cert: string, key: string): Promise<string[]> {
  let lines = replaced(await linesOfGuide('nginx'), 'listen 443 ssl', `listen 127.0.0.1:${port} ssl`);
  lines = replaced(lines, '127.0.0.1:4766', `127.0.0.1:${upstreamPort}`);
  lines = replaced(lines, '/etc/ssl/gate.example.org/fullchain.pem', cert);
  lines = replaced(lines, '/etc/ssl/gate.example.org/key.pem', key);
  // Runs one process in the foreground that writes below its own folder.
  const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((part) => `${part}_temp_path ${dir}/${part};`).join('\n');
  const text = `daemon off;\nmaster_process off;\npid ${dir}/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n${folders}\n${lines}\n}\n`;
  await writeFile(join(dir, 'nginx.conf'), text);
  return ['-e', 'stderr', '-p', dir, '-c', join(dir, 'nginx.conf')];
}

async function caddyArgs(dir: string, port: number, upstreamPort: number, cert: string, key: string): Promise<string[]> {
  let lines = replaced(await linesOfGuide('caddyfile'), `${guideHost} {`, `https://${guideHost}:${port} {\n  bind 127.0.0.1\n  tls ${cert} ${key}`);
  lines = replaced(lines, '127.0.0.1:4766', `127.0.0.1:${upstreamPort}`);
  await mkdir(join(dir, 'caddy'), { recursive: true });
  // Without these it would contact a certificate authority and open its admin port.
  await writeFile(join(dir, 'Caddyfile'), `{\n  admin off\n  auto_https off\n}\n${lines}`);
  return ['run', '--adapter', 'caddyfile', '--config', join(dir, 'Caddyfile')];
}

async function answers(port: number): Promise<boolean> {
  const { connect } = await import('node:net');
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    }).on('error', () => resolve(false));
  });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await gone;
}
