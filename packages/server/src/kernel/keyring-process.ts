import { text } from 'node:stream/consumers';

/*
 * A separate process, because a locked keyring or one that does not respond blocks a thread that cannot be stopped, and so that the daemon
 * never loads native code. `read ACCOUNT`, or `write ACCOUNT` with the value as input; prints one answer of `keyring.ts`.
 */

const service = 'gatehouse';
const [action, account = ''] = process.argv.slice(2);

async function answer(): Promise<object> {
  let keyring: typeof import('@napi-rs/keyring');
  try {
    keyring = await import('@napi-rs/keyring');
  } catch {
    return { failed: 'package' };
  }
  try {
    // The library's other store of Linux is in memory and empty after a restart of the machine.
    const entry = new keyring.Entry(service, account, { linux: { store: 'secret-service' } });
    if (action !== 'write') return { value: entry.getPassword() };
    entry.setPassword(await text(process.stdin));
    return { value: null };
  } catch (error) {
    return { failed: 'keyring', message: error instanceof Error ? error.message : String(error) };
  }
}

process.stdout.write(JSON.stringify(await answer()));
