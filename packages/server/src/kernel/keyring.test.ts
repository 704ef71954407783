import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { moveInstallKey, openInstallKey } from './install-key.ts';
import { type Keyring, KeyringError, systemKeyring } from './keyring.ts';

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gatehouse-key-'));
  file = join(dir, 'install.key');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A keyring that works, as a map. */
function memoryKeyring(entries = new Map<string, string>()): Keyring {
  return { read: (account) => entries.get(account), write: (account, value) => void entries.set(account, value) };
}

describe('the move of the install key', () => {
  test('goes there and back with the same key, and repeats without effect', () => {
    const entries = new Map<string, string>();
    const keyring = memoryKeyring(entries);
    expect(moveInstallKey(file, 'keyring', keyring)).toBeUndefined();
    const { key } = openInstallKey(file, keyring);
    const before = readFileSync(file, 'utf8');
    expect(moveInstallKey(file, 'file', keyring)).toMatchObject({ place: 'file', moved: false });
    expect(moveInstallKey(file, 'keyring', keyring)).toMatchObject({ place: 'keyring', moved: true });
    expect(readFileSync(file, 'utf8')).toBe(`keyring ${key.fingerprint()}\n`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect([...entries]).toEqual([[key.fingerprint(), before.trim()]]);
    expect(moveInstallKey(file, 'keyring', keyring)).toMatchObject({ place: 'keyring', moved: false });
    const again = openInstallKey(file, keyring);
    expect([again.created, again.place, again.key.fingerprint()]).toEqual([false, 'keyring', key.fingerprint()]);
    expect(moveInstallKey(file, 'file', keyring)).toMatchObject({ place: 'file', moved: true });
    expect(readFileSync(file, 'utf8')).toBe(before);
    // A copy of the home with the same key still reads it there.
    writeFileSync(join(dir, 'copy'), `keyring ${key.fingerprint()}\n`, { mode: 0o600 });
    expect(openInstallKey(join(dir, 'copy'), keyring).key.fingerprint()).toBe(key.fingerprint());
    expect(readdirSync(dir).toSorted()).toEqual(['copy', 'install.key']);
  });

  test.each([
    ['forgets what was written', { read: () => undefined, write() {} }, /did not return the key that was written/],
    ['returns another value', { read: () => 'ab'.repeat(32), write() {} }, /did not return the key that was written/],
    [
      'refuses the write',
      {
        read: () => undefined,
        write() {
          throw new KeyringError('is locked');
        },
      },
      /keeps the install key, because the system's keyring is locked/,
    ],
  ])('leaves the file as it is when the keyring %s', (_what, keyring, message) => {
    openInstallKey(file, keyring);
    const before = readFileSync(file, 'utf8');
    expect(() => moveInstallKey(file, 'keyring', keyring)).toThrow(message);
    expect(readFileSync(file, 'utf8')).toBe(before);
    expect(readdirSync(dir)).toEqual(['install.key']);
  });

  test.each([
    ['no entry', undefined, /has no entry 0123456789abcdef of the service gatehouse.*No new key was made/],
    ['the key of another home', 'cd'.repeat(32), /has another value in the entry 0123456789abcdef/],
    ['something else', 'a password', /has another value in the entry 0123456789abcdef/],
  ])('is refused, and no key is made, when the keyring has %s', (_what, value, message) => {
    const reference = 'keyring 0123456789abcdef\n';
    writeFileSync(file, reference, { mode: 0o600 });
    const keyring = memoryKeyring(new Map(value === undefined ? [] : [['0123456789abcdef', value]]));
    expect(() => openInstallKey(file, keyring)).toThrow(message);
    expect(() => moveInstallKey(file, 'file', keyring)).toThrow(message);
    expect(readFileSync(file, 'utf8')).toBe(reference);
  });

  test.each(['keyring', 'keyring 0123', 'keyring 0123456789abcdef 1', 'Keyring 0123456789abcdef'])(
    'a file with %j does not refer to the keyring',
    (text) => {
      writeFileSync(file, text, { mode: 0o600 });
      expect(() => openInstallKey(file, memoryKeyring())).toThrow(/expected 64 hexadecimal digits/);
    },
  );
});

describe('a keyring that cannot be used is reported', () => {
  const nowhere = { HOME: '/nonexistent', XDG_RUNTIME_DIR: '/nonexistent' };

  test.skipIf(process.platform !== 'linux')('without a bus', () => {
    expect(() => systemKeyring(nowhere).read('a')).toThrow(/^is missing, locked or refuses access \(.*DBUS_SESSION_BUS_ADDRESS/);
    const absent = { ...nowhere, DBUS_SESSION_BUS_ADDRESS: `unix:path=${join(dir, 'bus')}` };
    expect(() => systemKeyring(absent).write('a', 'b')).toThrow(/^is missing, locked or refuses access \(.*Failed to connect/);
  });

  test.skipIf(process.platform !== 'linux')('that does not respond', async () => {
    const path = join(dir, 'bus');
    // The connection is accepted by the system, and nobody reads from it: the call blocks this thread.
    const bus = createServer();
    await new Promise<void>((resolve) => void bus.listen(path, resolve));
    try {
      const env = { ...nowhere, DBUS_SESSION_BUS_ADDRESS: `unix:path=${path}` };
      expect(() => systemKeyring(env, 400).read('a')).toThrow(/^did not respond within 0\.4 s: it may be locked/);
    } finally {
      await new Promise((resolve) => void bus.close(resolve));
    }
  });

  test('without its package, and with a process that ends early', () => {
    const preload = (code: string) => ({ NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` });
    const absent = preload(
      `import { registerHooks } from 'node:module'; registerHooks({ resolve(name, context, next) { if (name === '@napi-rs/keyring') throw new Error('absent'); return next(name, context); } });`,
    );
    expect(() => systemKeyring({ ...nowhere, ...absent }).read('a')).toThrow(/needs the optional package @napi-rs\/keyring.*run "npm install"/);
    expect(() => systemKeyring({ ...nowhere, ...preload('process.exit(3)') }).read('a')).toThrow(/ended without an answer/);
  });
});
