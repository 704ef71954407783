import { chmodSync, existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openHome } from '../kernel/home.ts';
import { InstallKey } from '../kernel/install-key.ts';
import { systemKeyring } from '../kernel/keyring.ts';
import { masterKeyOf } from './master-key.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gatehouse-key-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const root = Buffer.from(Array.from({ length: 32 }, (_, at) => at * 7 + 1));
const fingerprint = new InstallKey(root).fingerprint();

test('a key in hexadecimal digits, base64 or base64url is the same key', () => {
  expect(fingerprint).toMatch(/^[0-9a-f]{16}$/);
  const texts = [root.toString('hex'), root.toString('hex').toUpperCase(), root.toString('base64'), `${root.toString('base64url')}\n`];
  for (const text of texts) expect(masterKeyOf({ GATEHOUSE_MASTER_KEY: text })?.fingerprint()).toBe(fingerprint);
  expect(new InstallKey(Buffer.alloc(32, 7)).fingerprint()).not.toBe(fingerprint);
  expect(root.toString('hex')).not.toContain(fingerprint);
});

test('without either variable the home folder has the key', () => {
  expect(masterKeyOf({})).toBeUndefined();
  expect(masterKeyOf({ GATEHOUSE_MASTER_KEY: '', GATEHOUSE_MASTER_KEY_FILE: '' })).toBeUndefined();
});

test.each(['short', `${root.toString('hex')}00`, root.toString('base64').slice(4), 'x y'])('refuses %j without repeating it', (text) => {
  expect(() => masterKeyOf({ GATEHOUSE_MASTER_KEY: text })).toThrow(
    /^GATEHOUSE_MASTER_KEY: expected 32 bytes as 64 hexadecimal digits or in base64, such as "openssl rand -hex 32" prints$/,
  );
});

test('reads a file, linked too, that not everybody can read', () => {
  const [file, link] = [join(dir, 'key'), join(dir, 'link')];
  const read = () => masterKeyOf({ GATEHOUSE_MASTER_KEY_FILE: link })?.fingerprint();
  expect(read).toThrow(/does not exist, and GATEHOUSE_MASTER_KEY_FILE names it/);
  writeFileSync(file, `${root.toString('hex')}\n`, { mode: 0o440 });
  symlinkSync(file, link);
  expect(read()).toBe(fingerprint);
  chmodSync(file, 0o644);
  expect(read).toThrow(/everybody on this machine has access \(mode 0644\); close it with: chmod 640 /);
  chmodSync(file, 0o600);
  writeFileSync(file, 'no key');
  expect(read).toThrow(/link: expected 32 bytes/);
  expect(() => masterKeyOf({ GATEHOUSE_MASTER_KEY: root.toString('hex'), GATEHOUSE_MASTER_KEY_FILE: file })).toThrow(/set one of them/);
});

test('a home that is given a key makes none', () => {
  const home = openHome(join(dir, 'home'), { template: () => '', installKey: new InstallKey(root), keyring: systemKeyring({}) });
  expect(home.installKey.fingerprint()).toBe(fingerprint);
  expect(existsSync(home.paths.keyFile)).toBe(false);
});
