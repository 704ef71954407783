import { expect, test } from 'vitest';
import { InstallKey } from '../../../../kernel/install-key.ts';
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

test('changed characters at any place are refused', () => {
  const sealed = seal.close('NAME', 'value');
  for (let at = 0; at < sealed.length; at += 1) {
    // The last character of a part has bits that mean nothing.
    if (sealed[at + 1] === '.' || at === sealed.length - 1) continue;
    expect(seal.open('NAME', `${sealed.slice(0, at)}${sealed[at] === 'A' ? 'B' : 'A'}${sealed.slice(at + 1)}`)).toBeUndefined();
    expect(seal.open('NAME', sealed.slice(0, at))).toBeUndefined();
  }
});
