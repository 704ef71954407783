import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openHome, openSharedFolders } from './home.ts';
import { InstallKey } from './install-key.ts';
import { systemKeyring } from './keyring.ts';
import { UnsafePathError } from './private-file.ts';

let above: string;
let dir: string;
beforeEach(() => {
  above = mkdtempSync(join(tmpdir(), 'gatehouse-home-'));
  dir = join(above, 'deep', 'home');
});
afterEach(() => rmSync(above, { recursive: true, force: true }));

const open = () => openHome(dir, { template: () => '# empty\n', keyring: systemKeyring({}) });
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof UnsafePathError) return error.message;
    throw error;
  }
  return 'not refused';
}

describe('the first start', () => {
  test('creates everything, closed to others, and leaves no drafts', () => {
    const home = open();
    home.ensureToken();
    expect(home).toMatchObject({ firstStart: true, warnings: [] });
    expect(Object.fromEntries(readdirSync(dir).map((name) => [name, modeOf(join(dir, name))]))).toEqual({
      backups: '700',
      'config.yaml': '600',
      data: '700',
      'install.key': '600',
      media: '700',
      token: '600',
      workspaces: '700',
    });
    expect([modeOf(dir), readFileSync(home.paths.configFile, 'utf8')]).toEqual(['700', '# empty\n']);
  });

  test('is not repeated: files, token and key stay', () => {
    const first = open();
    const [token, pepper] = [first.ensureToken(), first.installKey.derive('pepper')];
    writeFileSync(first.paths.configFile, '# mine\n');
    const second = open();
    expect(second.firstStart).toBe(false);
    expect([second.readToken(), second.ensureToken(), second.readConfig().text]).toEqual([token, token, '# mine\n']);
    expect(second.installKey.derive('pepper')).toEqual(pepper);
  });

  test('creates a token only when asked', () => {
    expect(open().readToken()).toBeUndefined();
    expect(open().ensureToken()).toMatch(/^gh_[\w-]{64}$/);
  });

  test('creates another token in another home', () => {
    const one = open().ensureToken();
    dir = join(above, 'other');
    expect(open().ensureToken()).not.toBe(one);
  });
});

describe('a path that others could read is refused, with the command that fixes it', () => {
  test.each([0o755, 0o750, 0o701])('a home of mode %o', (mode) => {
    mkdirSync(dir, { recursive: true });
    chmodSync(dir, mode);
    expect(refusal(open)).toMatch(
      `other users of this machine have access (mode 0${mode.toString(8)}), and it holds secrets; close it with: chmod 700 ${dir}`,
    );
    expect(readdirSync(dir)).toEqual([]);
  });

  test('a token or key file', () => {
    const home = open();
    home.ensureToken();
    chmodSync(home.paths.tokenFile, 0o644);
    expect(refusal(() => home.readToken())).toMatch(`chmod 600 ${home.paths.tokenFile}`);
    chmodSync(home.paths.keyFile, 0o640);
    expect(refusal(open)).toMatch(`chmod 600 ${home.paths.keyFile}`);
  });

  test('a configuration has its permissions fixed rather than being refused, because its folder is private', () => {
    const home = open();
    chmodSync(home.paths.configFile, 0o644);
    expect(home.readConfig().protect()).toMatch(/holds secrets and had mode 0644; it is 0600 now/);
    expect(modeOf(home.paths.configFile)).toBe('600');
    expect(home.readConfig().protect()).toBeUndefined();
  });

  test('a home of another user', () => {
    // Root can give a folder away; everyone else meets folders of root.
    if (process.getuid?.() === 0) {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      chownSync(dir, 12345, 12345);
    } else dir = '/usr';
    expect(refusal(open)).toMatch(/belongs to user \d+, and Gatehouse runs as user \d+; .*chown -R \d+ /);
  });
});

describe('what is not a home folder is refused', () => {
  test('a file with its name, or above it', () => {
    mkdirSync(join(above, 'deep'));
    writeFileSync(dir, '');
    expect(refusal(open)).toMatch(/expected a folder, found a file/);
    dir = join(dir, 'below');
    expect(refusal(open)).toMatch(/expected a folder, found a file/);
  });

  test('links instead of secrets', () => {
    const home = open();
    const outside = join(above, 'outside');
    writeFileSync(outside, 'x'.repeat(64), { mode: 0o600 });
    symlinkSync(outside, home.paths.tokenFile);
    expect(refusal(() => home.ensureToken())).toMatch(/is a symbolic link; expected a file/);
    expect(readFileSync(outside, 'utf8')).toBe('x'.repeat(64));
    rmSync(home.paths.keyFile);
    symlinkSync(outside, home.paths.keyFile);
    expect(refusal(open)).toMatch(/is a symbolic link; expected a file/);
  });

  test('a configuration may be a link, but not to nothing', () => {
    const home = open();
    const outside = join(above, 'config.yaml');
    linkSync(home.paths.configFile, outside);
    rmSync(home.paths.configFile);
    symlinkSync(outside, home.paths.configFile);
    expect(home.readConfig().text).toBe('# empty\n');
    rmSync(outside);
    expect(refusal(() => home.readConfig())).toMatch(/link to a file that does not exist/);
  });

  test.each([
    ['short', /at least 32 characters/],
    [`${'a'.repeat(40)} ${'b'.repeat(40)}`, /one token/],
    ['x'.repeat(5000), /at most 1024 bytes/],
  ])('a token file that holds %j', (content, expected) => {
    const home = open();
    writeFileSync(home.paths.tokenFile, content, { mode: 0o600 });
    expect(refusal(() => home.readToken())).toMatch(expected);
  });

  test('an empty token file is a revoked token: there is none, and no new one is made until the file is deleted', () => {
    const home = open();
    writeFileSync(home.paths.tokenFile, '', { mode: 0o600 });
    expect([home.readToken(), home.ensureToken()]).toEqual([undefined, undefined]);
    rmSync(home.paths.tokenFile);
    expect(home.ensureToken()).toMatch(/^gh_/);
  });

  test('a key file without a key, without repeating its content', () => {
    const home = open();
    writeFileSync(home.paths.keyFile, 'not a key at all\n');
    const text = refusal(open);
    expect(text).toMatch(/expected 64 hexadecimal digits/);
    expect(text).not.toContain('not a key');
  });
});

describe('a folder that installations share', () => {
  test('holds workspaces, media and skills, closed to others', () => {
    const { paths } = open();
    const shared = join(above, 'shared');
    mkdirSync(shared, { mode: 0o755 });
    expect(openSharedFolders(paths, '../../shared')).toEqual({
      ...paths,
      sharedDir: shared,
      workspacesDir: join(shared, 'workspaces'),
      mediaDir: join(shared, 'media'),
      skillsDir: join(shared, 'skills'),
    });
    expect(Object.fromEntries(readdirSync(shared).map((name) => [name, modeOf(join(shared, name))]))).toEqual({
      media: '700',
      skills: '700',
      workspaces: '700',
    });
    chmodSync(join(shared, 'media'), 0o755);
    expect(refusal(() => openSharedFolders(paths, shared))).toMatch(/chmod 700/);
  });

  test('is not created: its disk may not be mounted', () => {
    const { paths } = open();
    expect(refusal(() => openSharedFolders(paths, join(above, 'absent')))).toMatch(/absent: does not exist, and storage.sharedPath names it/);
    expect(readdirSync(above)).toEqual(['deep']);
  });
});

test('a key that is lost while the database exists is reported', () => {
  const home = open();
  writeFileSync(join(home.paths.dataDir, 'gatehouse.db'), '');
  rmSync(home.paths.keyFile);
  expect(open().warnings).toEqual([expect.stringContaining('tokens made by tokens.create are void')]);
});

describe('the install key', () => {
  const key = new InstallKey(Buffer.alloc(32, 7));

  test('derives separate bytes for each purpose, the same each time', () => {
    expect(key.derive('pepper')).toHaveLength(32);
    expect(key.derive('pepper')).toEqual(new InstallKey(Buffer.alloc(32, 7)).derive('pepper'));
    expect(key.derive('pepper')).not.toEqual(key.derive('fence'));
    expect(key.derive('pepper')).not.toEqual(new InstallKey(Buffer.alloc(32, 8)).derive('pepper'));
  });

  test('is never shown', () => {
    for (const shown of [String(key), JSON.stringify({ key }), inspect(key, { showHidden: true }), `${key}`]) expect(shown).toContain('[REDACTED]');
    expect(inspect({ key }, { depth: 9, showHidden: true })).not.toContain('07 07');
  });
});
