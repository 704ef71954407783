import { spawn } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findCommand } from '../../../tools/system-packages.mjs';
import { type Pair, writePair } from './certificates.ts';
import { freePort } from './free-port.ts';
import { unprivileged } from './unprivileged.ts';

/**
 * A real SMTP server (Exim) that delivers into the mailboxes of `MailServer`, for any domain. It accepts mails after a login over TLS, from the
 * address whose name before the `@` logged in. A name without a mailbox is refused with 550; one that begins with `grey` is greylisted: the first
 * try of each sender is refused with 451. The usual test of spam filters (GTUBE) is refused after its text.
 */
export interface SmtpServer extends AsyncDisposable {
  /** Speaks TLS from the first byte, on 127.0.0.1. */
  readonly tlsPort: number;
  /** Port of 127.0.0.1 that begins without TLS. */
  readonly port: number;
  /** Another address of the loopback interface, where port 587 begins without TLS: clients know by this number to use STARTTLS. */
  readonly submissionHost: string;
  /** Largest mail that it accepts. */
  readonly maxBytes: number;
}

interface SmtpServerOptions {
  /** Folder with a maildir for each mailbox. */
  readonly boxes: string;
  /** Returns a certificate for an address, next to 127.0.0.1. */
  readonly makeTls: (host: string) => Promise<Pair>;
}

const startMs = 10_000;
const maxBytes = 300_000;

/** Returns why no SMTP server can be started, or undefined. */
export function whyNoSmtpServer(): string | undefined {
  if (findCommand('exim4') === undefined) return 'exim4 is not installed (Debian package exim4-daemon-light)';
  return process.getuid?.() === 0 ? undefined : 'exim4 reads only a configuration that root owns';
}

export async function startSmtpServer({ boxes, makeTls }: SmtpServerOptions): Promise<SmtpServer> {
  const [program, reason] = [findCommand('exim4'), whyNoSmtpServer()];
  if (program === undefined || reason !== undefined) throw new Error(reason);
  const { uid = 0, gid = 0 } = unprivileged('nobody');
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-smtp-'));
  const [port, tlsPort] = [await freePort(), await freePort()];
  // No other process is given this port, hence none uses this address.
  const submissionHost = `127.${port >> 8}.${port & 255}.1`;
  await writePair(folder, 'server', await makeTls(submissionHost));
  for (const path of [folder, join(folder, 'server.key'), join(folder, 'server.crt')]) chownSync(path, uid, gid);
  const file = join(folder, 'exim.conf');
  writeFileSync(file, exim({ folder, boxes, ids: { uid, gid }, port, tlsPort, submissionHost }), { mode: 0o644 });

  // A separate process group: deliveries are processes that outlive the daemon.
  const child = spawn(program, ['-bdf', '-C', file], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4_000)));
  const gone = new Promise((resolve) => child.once('exit', resolve));
  const end = async () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
    await gone;
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  };
  for (const latest = Date.now() + startMs; !(await greets(port));) {
    if (child.exitCode !== null || Date.now() > latest) {
      await end();
      throw new Error(`exim4 did not start: ${said}`);
    }
    await sleep(10);
  }
  return { tlsPort, port, submissionHost, maxBytes, [Symbol.asyncDispose]: end };
}

/** Whether a server of SMTP answers on the port. */
function greets(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: '127.0.0.1' });
    const settle = (is: boolean) => {
      socket.end('QUIT\r\n');
      resolve(is);
    };
    socket.once('data', () => settle(true));
    socket.once('error', () => settle(false));
    socket.once('close', () => settle(false));
  });
}

interface EximOptions {
  readonly folder: string;
  readonly boxes: string;
  readonly ids: { readonly uid: number; readonly gid: number };
  readonly port: number;
  readonly tlsPort: number;
  readonly submissionHost: string;
}

const exim = ({ folder, boxes, ids: { uid, gid }, port, tlsPort, submissionHost }: EximOptions): string => `
exim_user = ${uid}
exim_group = ${gid}
never_users =
keep_environment =
spool_directory = ${join(folder, 'spool')}
log_file_path = ${join(folder, '%slog')}
pid_file_path = ${join(folder, 'pid')}
primary_hostname = mx.test
local_interfaces = <; 127.0.0.1.${port} ; 127.0.0.1.${tlsPort} ; ${submissionHost}.587
tls_on_connect_ports = ${tlsPort}
tls_certificate = ${join(folder, 'server.crt')}
tls_privatekey = ${join(folder, 'server.key')}
tls_advertise_hosts = *
auth_advertise_hosts = \${if def:tls_in_cipher {*}{}}
disable_ipv6 = true
host_lookup =
helo_lookup_domains =
rfc1413_hosts =
message_size_limit = ${maxBytes}
smtp_accept_max = 100
acl_smtp_mail = check_sender
acl_smtp_rcpt = check_recipient
acl_smtp_data = check_text

begin acl

check_sender:
  require message = Authentication required
          authenticated = *
  require message = 5.7.1 Not an address of $authenticated_id
          condition = \${if eq {$sender_address_local_part}{$authenticated_id}}
  accept

check_recipient:
  require verify = recipient
  defer message = 4.7.1 Greylisted, please try again later
        condition = \${if match {$local_part}{^grey}}
        !ratelimit = 1.5 / 1d / per_cmd / strict / $sender_address/$local_part
  accept

check_text:
  deny message = Looks like spam
       condition = \${if match {$message_body}{GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL}}
  accept

begin routers

mailbox:
  driver = accept
  local_parts = dsearch,filter=dir;${boxes}
  transport = mailbox
  cannot_route_message = No such user here

begin transports

mailbox:
  driver = appendfile
  maildir_format
  directory = ${boxes}/$local_part_data
  user = ${uid}
  group = ${gid}
  return_path_add
  envelope_to_add
  delivery_date_add

begin authenticators

plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = \${if eq {$auth3}{pw}}
  server_set_id = $auth2
`;
