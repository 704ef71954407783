import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { InstallKey } from '../../../../kernel/install-key.ts';
import { createRedactor } from '../../../../kernel/redact.ts';
import { SecretVault } from './vault.ts';

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gatehouse-vault-'));
  file = join(dir, 'secrets.sealed');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const key = new InstallKey(Buffer.alloc(32, 1));
const otherKey = new InstallKey(Buffer.alloc(32, 2));
const redactor = createRedactor();
const open = (root = key) => new SecretVault({ file, key: root, redactor });

function filled(names: Readonly<Record<string, string>>): SecretVault {
  const vault = open();
  vault.adopt(Object.entries(names).map(([name, value]) => vault.seal(name, value)));
  vault.save();
  return vault;
}

test('the copy has the values sealed and for the owner alone, and the next start has them', () => {
  filled({ SECOND: 'the second value', FIRST: 'the first value' });
  const text = readFileSync(file, 'utf8');
  expect(text).not.toContain('value');
  expect(text.indexOf('FIRST')).toBeLessThan(text.indexOf('SECOND'));
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(dir)).toEqual(['secrets.sealed']);
  const next = open();
  expect([next.get('FIRST'), next.get('SECOND'), next.get('THIRD'), next.fault()]).toEqual([
    'the first value',
    'the second value',
    undefined,
    undefined,
  ]);
  expect(redactor.redact('it is the first value')).toBe('it is [REDACTED]');
});

test('a home without secrets has no copy, and one whose last secret was removed an empty one', () => {
  const vault = open();
  vault.save();
  expect(existsSync(file)).toBe(false);
  vault.put(vault.seal('ONE', 'a value'));
  vault.save();
  vault.drop('ONE');
  vault.save();
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ version: 1, key: key.fingerprint(), secrets: {} });
});

test('rows replace what the copy has, and the changed names are returned', () => {
  const vault = filled({ SAME: 'one', CHANGED: 'two', GONE: 'three' });
  const kept = vault.readable().filter(({ name }) => name === 'SAME');
  expect(vault.adopt([...kept, vault.seal('CHANGED', 'four'), vault.seal('NEW', 'five')]).toSorted()).toEqual(['CHANGED', 'GONE', 'NEW']);
  expect(['SAME', 'CHANGED', 'GONE', 'NEW'].map((name) => vault.get(name))).toEqual(['one', 'four', undefined, 'five']);
  // Sealed again, as a rotation to the same value is: nothing that is resolved changes.
  expect(vault.adopt([...kept, vault.seal('CHANGED', 'four'), vault.seal('NEW', 'five')])).toEqual([]);
});

test('values of another install key are named, and set again are read', () => {
  filled({ ONE: 'a value', TWO: 'another value' });
  const vault = open(otherKey);
  expect([vault.get('ONE'), vault.isUnreadable('ONE'), vault.isUnreadable('THREE')]).toEqual([undefined, true, false]);
  expect(vault.fault()).toMatch(
    `The secrets ONE, TWO cannot be read: sealed with another install key than that of this installation (fingerprint ${otherKey.fingerprint()}). Use the install key`,
  );
  vault.put(vault.seal('ONE', 'a new value'));
  expect([vault.get('ONE'), vault.fault()]).toEqual(['a new value', expect.stringContaining('The secret TWO cannot be read')]);
});

test('a candidate counts only while it is tried', () => {
  const vault = filled({ ONE: 'before' });
  expect(vault.withCandidate('ONE', 'tried', () => vault.get('ONE'))).toBe('tried');
  expect(() => vault.withCandidate('TWO', 'tried', () => JSON.parse('{'))).toThrow();
  expect([vault.get('ONE'), vault.get('TWO')]).toEqual(['before', undefined]);
});

test('a copy that others can read stops the start; one that is damaged is written again', () => {
  const before = filled({ ONE: 'a value' });
  chmodSync(file, 0o644);
  expect(() => open()).toThrow(/secrets\.sealed: other users of this machine have access \(mode 0644\).*chmod 600/);
  chmodSync(file, 0o600);
  writeFileSync(file, '{"version":1,');
  const vault = open();
  expect(vault.get('ONE')).toBeUndefined();
  vault.adopt(before.readable());
  vault.save();
  expect(open().get('ONE')).toBe('a value');
});
