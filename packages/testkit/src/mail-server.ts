import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SMTPServer, type SMTPServerDataStream, type SMTPServerOptions, type SMTPServerSession } from 'smtp-server';
import { findCommand } from '../../../tools/system-packages.mjs';
import { type Pair, writePair } from './certificates.ts';
import { freePort } from './free-port.ts';
import { unprivileged } from './unprivileged.ts';

/**
 * What happens to a mail that is sent over SMTP: refused with a code and a text (at RCPT, or after the final dot), the connection cut before the
 * server asks for the text (354), cut after the final dot without or with the mail delivered, or no answer any more after the final dot, without
 * or with it delivered.
 */
export type MailFault =
  | { readonly at: 'recipient' | 'end'; readonly code: number; readonly text: string }
  | 'cut before 354'
  | 'cut after the dot'
  | 'deliver and cut'
  | 'hang after the dot'
  | 'deliver and hang';

/** A real IMAP server (Dovecot) and an SMTP server that delivers into it, on 127.0.0.1. Every name is a mailbox, with the password `pw`. */
export interface MailServer extends AsyncDisposable {
  readonly imapPort: number;
  readonly smtpPort: number;
  /** The same with TLS from the first byte, when it has a certificate; `smtpPort` offers STARTTLS then. */
  readonly imapsPort: number;
  readonly smtpsPort: number;
  /** Folder with a maildir for each mailbox. */
  readonly boxes: string;
  /** Applies to every mail over SMTP until it is changed. */
  fault: MailFault | undefined;
  /** Password for SMTP. */
  password: string;
  /** Number of mails whose text came over SMTP, also of those that met a fault afterwards. */
  readonly received: () => number;
  /** Puts a mail into a mailbox as a mail server does: it adds the return path, a trace, and its authentication results. */
  deliver(user: string, mail: string, options?: { readonly authentication?: string; readonly returnPath?: string }): Promise<void>;
  /** Returns the mails of a folder in the order of their arrival, with their flags (`S` for seen, `F` for flagged). */
  mails(user: string, folder?: string): Promise<{ readonly raw: string; readonly flags: string }[]>;
  /** Makes a folder next to the inbox. */
  makeFolder(user: string, folder: string): Promise<void>;
  /** Makes the mailbox again with the same mails: another UIDVALIDITY, other UIDs. Ends the connections to it. */
  renumber(user: string): Promise<void>;
  /** Ends the IMAP server at once, as a crash does; `restart` starts it again on the same port. */
  kill(): Promise<void>;
  restart(): Promise<void>;
}

const startMs = 10_000;
const password = 'pw';
const host = 'mx.test';

/** Whether the program is installed. */
export const hasMailServer = (): boolean => findCommand('dovecot') !== undefined;

export async function startMailServer({ tls }: { readonly tls?: Pair } = {}): Promise<MailServer> {
  const program = findCommand('dovecot');
  if (program === undefined) throw new Error('dovecot is not installed (Debian package dovecot-imapd)');
  const identity = unprivileged('nobody');
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-mail-'));
  const own = (path: string) => {
    if (identity.uid !== undefined && identity.gid !== undefined) chownSync(path, identity.uid, identity.gid);
  };
  const makeDirectory = (path: string) => {
    if (existsSync(path)) return;
    mkdirSync(path);
    own(path);
  };
  const [imapPort, imapsPort] = [await freePort(), await freePort()];
  const boxes = join(folder, 'boxes');
  own(folder);
  makeDirectory(boxes);
  if (tls !== undefined) await writePair(folder, 'server', tls);
  const file = join(folder, 'dovecot.conf');
  writeFileSync(file, dovecot({ folder, boxes, imapPort, imapsPort, hasTls: tls !== undefined }));
  for (const name of tls === undefined ? [] : ['server.key', 'server.crt']) own(join(folder, name));

  const start = async (): Promise<ChildProcess> => {
    const child = spawn(program, ['-F', '-c', file], { ...identity, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4_000)));
    for (const end = Date.now() + startMs; !(await greets(imapPort));) {
      if (child.exitCode !== null || Date.now() > end) {
        child.kill('SIGKILL');
        const log = join(folder, 'log');
        throw new Error(`dovecot did not start: ${said}${existsSync(log) ? readFileSync(log, 'utf8').slice(-4_000) : ''}`);
      }
      await sleep(10);
    }
    return child;
  };
  let child = await start();
  // Its other processes end when they lose the first one.
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
    while (await greets(imapPort)) await sleep(5);
  };

  const makeBox = (box: string) => {
    for (const path of [box, ...['tmp', 'new', 'cur'].map((name) => join(box, name))]) makeDirectory(path);
  };
  let arrivals = 0;
  const deliver: MailServer['deliver'] = async (user, mail, { authentication, returnPath = 'sender@test' } = {}) => {
    const box = boxOf(boxes, user);
    makeBox(box);
    const trace = [
      `Return-Path: <${returnPath}>`,
      ...(authentication === undefined ? [] : [`Authentication-Results: ${host}; ${authentication}`]),
      `Received: from sender.test by ${host}; ${new Date().toUTCString()}`,
    ];
    const name = `${Math.floor(Date.now() / 1_000)}.${String((arrivals += 1)).padStart(8, '0')}.${host}`;
    await writeFile(join(box, 'tmp', name), `${trace.join('\r\n')}\r\n${mail.replaceAll(/\r?\n/g, '\r\n')}`);
    own(join(box, 'tmp', name));
    await rename(join(box, 'tmp', name), join(box, 'new', name));
  };

  let received = 0;
  const sockets = new Map<number, net.Socket>();
  const cut = ({ remotePort }: SMTPServerSession) => sockets.get(remotePort)?.destroy();
  const options: SMTPServerOptions = {
    ...(tls === undefined ? { disabledCommands: ['STARTTLS'] } : { key: tls.key, cert: tls.cert }),
    authOptional: true,
    allowInsecureAuth: true,
    logger: false,
    disableReverseLookup: true,
    onAuth: ({ username, password: given }, _session, answer) =>
      given === server.password ? answer(null, { user: username }) : answer(replyOf(535, '5.7.8 Authentication failed')),
    onRcptTo({ address }, session, answer) {
      const { fault } = server;
      if (fault === 'cut before 354') return void cut(session);
      answer(typeof fault === 'object' && fault.at === 'recipient' ? replyOf(fault.code, `${fault.text} <${address}>`) : null);
    },
    onData(stream, session, answer) {
      const { fault } = server;
      void readAll(stream).then(async (mail) => {
        received += 1;
        if (fault === 'hang after the dot') return;
        if (fault === 'cut after the dot') return void cut(session);
        if (typeof fault === 'object') {
          answer(replyOf(fault.code, fault.text));
          return;
        }
        const from = session.envelope.mailFrom;
        for (const { address } of session.envelope.rcptTo)
          await deliver(address.split('@')[0] ?? '', mail, { returnPath: from === false ? '' : from.address });
        if (fault === 'deliver and cut') cut(session);
        else if (fault !== 'deliver and hang') answer(null, `2.0.0 queued as ${received}`);
      });
    },
  };
  const servers = [new SMTPServer(options), new SMTPServer({ ...options, secure: true })];
  const ports: number[] = [];
  for (const smtp of tls === undefined ? servers.slice(0, 1) : servers) {
    smtp.on('error', () => {});
    smtp.server.on('connection', (socket: net.Socket) => {
      const port = socket.remotePort ?? 0;
      sockets.set(port, socket);
      socket.once('close', () => sockets.delete(port));
    });
    ports.push(await listen(smtp));
  }

  const server: MailServer = {
    imapPort,
    imapsPort,
    smtpPort: ports[0] ?? 0,
    smtpsPort: ports[1] ?? 0,
    boxes,
    fault: undefined,
    password,
    received: () => received,
    deliver,
    async mails(user, name) {
      const box = name === undefined ? boxOf(boxes, user) : join(boxOf(boxes, user), `.${name}`);
      const found: { readonly name: string; readonly path: string }[] = [];
      for (const part of ['cur', 'new']) {
        const path = join(box, part);
        if (existsSync(path)) for (const one of await readdir(path)) found.push({ name: one, path: join(path, one) });
      }
      const inOrder = found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
      return Promise.all(
        inOrder.map(async ({ name: one, path }) => ({ raw: await readFile(path, 'utf8'), flags: /:2,(\w*)$/.exec(one)?.[1] ?? '' })),
      );
    },
    async makeFolder(user, name) {
      makeBox(boxOf(boxes, user));
      makeBox(join(boxOf(boxes, user), `.${name}`));
    },
    async renumber(user) {
      await kill();
      const box = boxOf(boxes, user);
      // The next one differs also within the same second.
      for (const name of await readdir(box)) if (/^dovecot[.-]/.test(name)) await rm(join(box, name), { recursive: true, force: true });
      const list = join(box, 'dovecot-uidlist');
      await writeFile(list, `3 V${Math.floor(Date.now() / 1_000) + (arrivals += 1)} N1 G${randomBytes(16).toString('hex')}\n`);
      own(list);
      child = await start();
    },
    kill,
    async restart() {
      await kill();
      child = await start();
    },
    async [Symbol.asyncDispose]() {
      await kill();
      for (const socket of sockets.values()) socket.destroy();
      for (const smtp of servers.slice(0, ports.length)) await new Promise<void>((resolve) => smtp.close(() => resolve()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return server;
}

function boxOf(boxes: string, user: string): string {
  if (!/^[a-z0-9.-]{1,64}$/.test(user) || user.startsWith('.')) throw new Error(`Not a name of a mailbox: ${user}`);
  return join(boxes, user);
}

const replyOf = (code: number, text: string): Error => Object.assign(new Error(text), { responseCode: code });

async function readAll(stream: SMTPServerDataStream): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks).toString('utf8');
}

function listen(smtp: SMTPServer): Promise<number> {
  return new Promise((resolve) => {
    const listener = smtp.listen(0, '127.0.0.1', () => {
      const address = listener.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
}

/** Whether an IMAP server answers on the port. */
function greets(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: '127.0.0.1' });
    const end = (is: boolean) => {
      socket.destroy();
      resolve(is);
    };
    socket.once('data', () => end(true));
    socket.once('error', () => end(false));
    socket.once('close', () => end(false));
  });
}

interface DovecotOptions {
  readonly folder: string;
  readonly boxes: string;
  readonly imapPort: number;
  readonly imapsPort: number;
  readonly hasTls: boolean;
}

function dovecot({ folder, boxes, imapPort, imapsPort, hasTls }: DovecotOptions): string {
  const { uid = process.getuid?.() ?? 0, gid = process.getgid?.() ?? 0 } = unprivileged('nobody');
  const user = process.getuid?.() === 0 ? 'nobody' : userInfo().username;
  const group = readFileSync('/etc/group', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find(([, , id]) => Number(id) === gid)?.[0];
  return `
base_dir = ${join(folder, 'run')}
state_dir = ${join(folder, 'state')}
log_path = ${join(folder, 'log')}
default_internal_user = ${user}
default_internal_group = ${group ?? 'nogroup'}
default_login_user = ${user}
protocols = imap
listen = 127.0.0.1
disable_plaintext_auth = no
auth_failure_delay = 0
mail_max_userip_connections = 100
shutdown_clients = yes
${hasTls ? `ssl = yes\nssl_cert = <${join(folder, 'server.crt')}\nssl_key = <${join(folder, 'server.key')}` : 'ssl = no'}
mail_location = maildir:${boxes}/%u
first_valid_uid = 1
passdb {
  driver = static
  args = password=${password}
}
userdb {
  driver = static
  args = uid=${uid} gid=${gid} home=${boxes}/%u
}
service anvil {
  chroot =
  unix_listener anvil-auth-penalty {
    mode = 0
  }
}
service stats {
  chroot =
}
service imap-login {
  chroot =
  inet_listener imap {
    port = ${imapPort}
  }
  inet_listener imaps {
    port = ${hasTls ? imapsPort : 0}
    ssl = ${hasTls ? 'yes' : 'no'}
  }
}
`;
}
