import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findCommand } from '../../../../../tools/system-packages.mjs';
import { KeyringError, systemKeyring } from '../keyring.ts';

/** The names of missing programs; without them the tests of a real keyring skip: apt-get install gnome-keyring brings both. */
export const missingForKeyring = ['dbus-daemon', 'gnome-keyring-daemon'].filter((name) => findCommand(name) === undefined);

const attempts = 100;

/** A Secret Service (gnome-keyring) on a private bus, in a temporary folder with a throw-away password. */
export class SecretService implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'gatehouse-keyring-'));
  /** Environment of a session that has this service. */
  readonly env: Readonly<Record<string, string>> = {
    HOME: join(this.#folder, 'home'),
    PATH: process.env['PATH'] ?? '',
    XDG_RUNTIME_DIR: join(this.#folder, 'run'),
    DBUS_SESSION_BUS_ADDRESS: `unix:path=${join(this.#folder, 'bus')}`,
  };
  readonly #bus: ChildProcess;
  #daemon: ChildProcess | undefined;

  private constructor() {
    for (const name of ['home', 'run']) mkdirSync(join(this.#folder, name), { mode: 0o700 });
    const config = join(this.#folder, 'bus.conf');
    // No folder of services: the bus must start no other keyring, and no prompt.
    writeFileSync(
      config,
      `<busconfig><type>session</type><listen>${this.env['DBUS_SESSION_BUS_ADDRESS']}</listen><policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>`,
    );
    this.#bus = spawn('dbus-daemon', ['--nofork', '--print-address=1', `--config-file=${config}`], {
      env: this.env,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  }

  static async start(): Promise<SecretService> {
    const service = new SecretService();
    const { stdout } = service.#bus;
    if (stdout !== null) await once(stdout, 'data');
    await service.unlock();
    return service;
  }

  /** Starts the service as a login with the right password does. */
  async unlock(): Promise<void> {
    await this.#restart(['--unlock'], 'throw-away');
    const keyring = systemKeyring(this.env, 2000);
    this.#untilReady(() => keyring.write('ready', 'yes'));
  }

  /** Starts it as after a login without password: what it keeps is locked. */
  async lock(): Promise<void> {
    await this.#restart([], '');
    const keyring = systemKeyring(this.env, 2000);
    this.#untilReady(() => {
      try {
        keyring.read('ready');
      } catch (error) {
        if (error instanceof KeyringError && /no such|not provided|ServiceUnknown/i.test(error.message)) throw error;
      }
    });
  }

  async #restart(flags: readonly string[], input: string): Promise<void> {
    await end(this.#daemon);
    this.#daemon = spawn('gnome-keyring-daemon', ['--foreground', '--components=secrets', ...flags], {
      env: this.env,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    const { stdin } = this.#daemon;
    if (stdin === null) return;
    // It reads the password up to its end, and the attempts block this thread.
    const closed = once(stdin, 'close');
    stdin.end(input);
    await closed;
  }

  /** Each attempt takes the time of a process start. */
  #untilReady(attempt: () => void): void {
    for (let left = attempts; ; left -= 1) {
      try {
        attempt();
        return;
      } catch (error) {
        if (!(error instanceof KeyringError) || left === 0) throw error;
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await end(this.#daemon);
    await end(this.#bus);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}
