import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import type { Environment } from './config/references.ts';
import { parseJson } from './json.ts';

/** The keyring of the user's session: Secret Service on Linux, Keychain on macOS, Credential Manager on Windows. */
export interface Keyring {
  /** Returns the value of an entry, undefined when there is none. @throws KeyringError */
  read(account: string): string | undefined;
  /** @throws KeyringError */
  write(account: string, value: string): void;
}

/** The keyring cannot be used; `message` completes "The keyring …". */
export class KeyringError extends Error {
  override readonly name = 'KeyringError';
}

/** A function, because most daemons never need it. */
const createAnswerSchema = () =>
  z.union([
    z.strictObject({ value: z.string().nullable() }),
    z.strictObject({ failed: z.literal('package') }),
    z.strictObject({ failed: z.literal('keyring'), message: z.string() }),
  ]);

/** Long enough to type the password of a keyring that asks for it. */
const answerMs = 15_000;

/** Returns the system's keyring; nothing is loaded or started before it is used. A call blocks for at most `timeoutMs`. */
export function systemKeyring(env: Environment, timeoutMs = answerMs): Keyring {
  function run(action: 'read' | 'write', account: string, input = ''): string | undefined {
    const { stdout, error, signal } = spawnSync(process.execPath, [fileURLToPath(processUrl()), action, account], {
      input,
      // It finds the keyring of the session through several variables, which differ by system.
      env,
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'ignore'],
      maxBuffer: 65_536,
    });
    if (error !== undefined && 'code' in error && error.code === 'ETIMEDOUT')
      throw new KeyringError(`did not respond within ${timeoutMs / 1000} s: it may be locked and waiting for its password`);
    if (error !== undefined) throw new KeyringError(`could not be opened (${error.message})`, { cause: error });
    const answer = createAnswerSchema().safeParse(parseOr(stdout));
    if (!answer.success) throw new KeyringError(`could not be opened: its process ended without an answer${signal === null ? '' : ` (${signal})`}`);
    if ('value' in answer.data) return answer.data.value ?? undefined;
    if (answer.data.failed === 'package')
      throw new KeyringError('needs the optional package @napi-rs/keyring, which is not installed for this system: run "npm install"');
    throw new KeyringError(`is missing, locked or refuses access (${answer.data.message})`);
  }

  return {
    read: (account) => run('read', account),
    write: (account, value) => void run('write', account, value),
  };
}

function parseOr(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Returns the address of the program; in the bundle it is next to the server. */
function processUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './keyring-process.ts' : './keyring-process.js', import.meta.url);
}
