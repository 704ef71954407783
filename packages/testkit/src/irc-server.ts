import { spawn } from 'node:child_process';
import { chownSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findCommand } from '../../../tools/system-packages.mjs';
import { type Pair, writePair } from './certificates.ts';
import { freePort } from './free-port.ts';
import { unprivileged } from './unprivileged.ts';

export type IrcServerName = 'ngircd' | 'inspircd';

/** A server of IRC on 127.0.0.1, without accounts. */
export interface IrcServer extends AsyncDisposable {
  readonly port: number;
  /** Port on which `ngircd` speaks TLS, when it has a certificate. */
  readonly tlsPort: number;
  readonly name: IrcServerName;
  /** Ends it at once, as a crash does. */
  kill(): Promise<void>;
  /** Starts it again on the same port. */
  restart(): Promise<void>;
}

const startMs = 10_000;

/** Whether the program is installed. */
export const hasIrcServer = (name: IrcServerName): boolean => findCommand(name) !== undefined;

export interface IrcServerOptions {
  /** Password of the server. */
  readonly password?: string;
  /** Certificate of `ngircd`. */
  readonly tls?: Pair;
}

/** Starts `ngircd`, which knows the protocol of 1993, or `inspircd`, which confirms messages with ids. */
export async function startIrcServer(name: IrcServerName, { password, tls }: IrcServerOptions = {}): Promise<IrcServer> {
  const program = findCommand(name);
  if (program === undefined) throw new Error(`${name} is not installed (Debian package ${name})`);
  const identity = unprivileged('nobody');
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-irc-'));
  const [port, tlsPort] = [await freePort(), await freePort()];
  const file = join(folder, 'server.conf');
  writeFileSync(
    file,
    name === 'ngircd' ? ngircd(port, folder, password) + (tls === undefined ? '' : ngircdTls(tlsPort, folder)) : inspircd(port, folder, password),
  );
  if (tls !== undefined) await writePair(folder, 'server', tls);
  for (const path of [folder, ...readdirSync(folder).map((one) => join(folder, one))])
    if (identity.uid !== undefined && identity.gid !== undefined) chownSync(path, identity.uid, identity.gid);
  const args = name === 'ngircd' ? ['-n', '-f', file] : ['--nofork', '--nopid', '--config', file];
  const start = async () => {
    const child = spawn(program, args, { ...identity, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4_000)));
    for (const end = Date.now() + startMs; !(await accepts(port));) {
      if (child.exitCode !== null || Date.now() > end) {
        child.kill('SIGKILL');
        throw new Error(`${name} did not start: ${said}`);
      }
      await sleep(10);
    }
    return child;
  };
  let child = await start();
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  };
  return {
    port,
    tlsPort,
    name,
    kill,
    async restart() {
      await kill();
      child = await start();
    },
    async [Symbol.asyncDispose]() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: '127.0.0.1' });
    const end = (is: boolean) => {
      socket.destroy();
      resolve(is);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
  });
}

const ngircd = (port: number, folder: string, password: string | undefined): string => `
[Global]
  Name = irc.test
  Info = test
  Listen = 127.0.0.1
  Ports = ${port}
  PidFile = ${join(folder, 'pid')}
  MotdPhrase = test
  ${password === undefined ? '' : `Password = ${password}`}
[Limits]
  MaxConnectionsIP = 0
  MaxJoins = 0
  MaxPenaltyTime = 0
  PingTimeout = 120
  PongTimeout = 20
[Options]
  DNS = no
  Ident = no
  PAM = no
`;

const ngircdTls = (port: number, folder: string): string => `
[SSL]
  Ports = ${port}
  CertFile = ${join(folder, 'server.crt')}
  KeyFile = ${join(folder, 'server.key')}
`;

const modules =
  'cap ircv3 ircv3_accounttag ircv3_batch ircv3_capnotify ircv3_ctctags ircv3_echomessage ircv3_labeledresponse ircv3_msgid ircv3_servertime';
const inspircd = (port: number, folder: string, password: string | undefined): string => `
<server name="irc.test" description="test" network="test" id="1AA">
<admin name="test" email="test@irc.test" nick="test">
<bind address="127.0.0.1" port="${port}" type="clients">
<connect name="all" allow="*" ${password === undefined ? '' : `password="${password}"`} timeout="30" fakelag="no" threshold="1000" commandrate="100000" recvq="65536" softsendq="262144" hardsendq="1048576" localmax="1000" globalmax="1000" maxchans="100" resolvehostnames="no" useident="no">
<performance nouserdns="yes" quietbursts="yes">
<options defaultmodes="o">
<path configdir="${folder}" datadir="${folder}" logdir="${folder}" runtimedir="${folder}">
<log method="file" type="* -USERINPUT -USEROUTPUT" level="default" target="${join(folder, 'log')}">
${modules
  .split(' ')
  .map((one) => `<module name="${one}">`)
  .join('\n')}
`;
