import { expect, test } from 'vitest';
import { InstallKey } from '../../../kernel/install-key.ts';
import { createSecretSeal } from './seal.ts';

const seal = createSecretSeal(new InstallKey(Buffer.alloc(32, 1)).derive('secrets'));

test('a value is read under its key and its name alone, and each time sealed differently', () => {
  for (const value of ['x', 'a key of €5', `-----BEGIN KEY-----\n${'y'.repeat(8_000)}\n`]) {
    const sealed = seal.close('NAME', value);
    expect(seal.open('NAME', sealed)).toBe(value);
    expect(seal.close('NAME', value).slice(0, 60)).not.toBe(sealed.slice(0, 60));
    expect(seal.open('OTHER', sealed)).toBeUndefined();
    expect(createSecretSeal(new InstallKey(Buffer.alloc(32, 2)).derive('secrets')).open('NAME', sealed)).toBeUndefined();
  }
});

test('changed bytes at any place are refused', () => {
  const bytes = Buffer.from(seal.close('NAME', 'value'), 'base64url');
  for (let at = 0; at < bytes.length; at += 1) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(seal.open('NAME', changed.toString('base64url'))).toBeUndefined();
    expect(seal.open('NAME', bytes.subarray(0, at).toString('base64url'))).toBeUndefined();
  }
});
