import fc from 'fast-check';
import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { auditMigrations } from '../../../kernel/db/audit.ts';
import type { AuditRow } from '../../../kernel/db/audit.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import { silentLog } from '../../../kernel/log.ts';
import { createSeal } from '../../../kernel/seal.ts';
import { configVersionMigrations } from './migrations.ts';
import { configVersionOperations, findConfigVersion, listConfigVersions } from './store.ts';
import { ConfigVersions, digestOf, type VersionNote } from './versions.ts';

class Died extends Error {}

const note: VersionNote = { principalId: 'token:root', origin: 'rpc', summary: 'changed', section: null, key: null, traceId: null };
let audits = 0;
const audit = () => {
  const row = (): AuditRow => ({
    id: `au_${audits++}`,
    atMs: 0,
    principalId: 'p',
    action: 'a',
    classification: 'mutate',
    outcome: 'success',
    traceId: '',
  });
  return { row: row(), failed: row() };
};
const seal = createSeal(Buffer.alloc(32, 1));
const clock = createStepClock();

const open = () => openInlineDb({ operations: configVersionOperations, migrations: [...configVersionMigrations, ...auditMigrations] });

/** A home with its file, whose processes may die before or after each step that leaves something behind. */
function createHome(db: Db, text: string, { homeId = 'home', isShared = false } = {}) {
  const home = {
    text,
    kept: [] as string[],
    logged: [] as string[],
    /** Steps left until the process dies. */
    left: Number.POSITIVE_INFINITY,
    /** Called before the file is read for the second time by a change. */
    beforeWrite: () => {},
    start() {
      const step = () => {
        if (home.left-- <= 0) throw new Died();
      };
      return new ConfigVersions({
        db: {
          ...db,
          async write(operation, input) {
            step();
            const output = await db.write(operation, input);
            step();
            return output;
          },
        },
        clock,
        log: { ...silentLog, warn: (_, text) => void home.logged.push(text), error: (_, text) => void home.logged.push(text) },
        homeId,
        seal,
        isShared,
        readText: () => home.text,
        writeText(next) {
          step();
          home.text = next;
          step();
        },
        keepText(lost) {
          home.kept.push(lost);
          return 'kept';
        },
        check(given) {
          if (given.includes('broken')) throw new Error('broken');
        },
      });
    },
    async change(next: string): Promise<void> {
      const versions = home.start();
      const base = await versions.settle();
      home.beforeWrite();
      await versions.replace(base, next, note, audit());
    },
  };
  return home;
}

/** The texts of all versions, oldest first; fails unless they are numbered without a gap. */
async function history(db: Db): Promise<string[]> {
  const listed = (await db.read(listConfigVersions, { limit: 1000 })).toReversed();
  expect(listed.map(({ number }) => number)).toEqual(listed.map((_, index) => index + 1));
  const texts: string[] = [];
  for (const { digest } of listed) {
    const found = await db.read(findConfigVersion, { prefix: digest });
    texts.push(found === undefined || found === 'ambiguous' ? '' : (seal.open('config', found.sealedText) ?? ''));
  }
  return texts;
}

test('a change that is cut off anywhere is completed or did not happen', async () => {
  const outcomes: string[] = [];
  for (let steps = 0; ; steps++) {
    await using db = await open();
    const home = createHome(db, 'a: 1');
    await home.start().settle();
    home.left = steps;
    const isDone = await home.change('a: 2').then(
      () => true,
      (error: unknown) => {
        expect(error).toBeInstanceOf(Error);
        return false;
      },
    );
    home.left = Number.POSITIVE_INFINITY;
    await home.start().settle();
    const texts = await history(db);
    expect(texts).toEqual(home.text === 'a: 1' ? ['a: 1'] : ['a: 1', 'a: 2']);
    if (isDone) expect(home.text).toBe('a: 2');
    outcomes.push(home.text);
    // Nothing is left to do.
    expect(await home.start().settle()).toMatchObject({ isWritten: false, text: home.text, number: texts.length });
    if (isDone) break;
  }
  // Before the commit of its version nothing has happened; what follows it is completed.
  expect(outcomes).toEqual(['a: 1', 'a: 2', 'a: 2', 'a: 2', 'a: 2']);
});

test('a first start that dies while it stores its version starts again', async () => {
  for (const steps of [0, 1]) {
    await using db = await open();
    const home = createHome(db, 'a: 1');
    home.left = steps;
    await expect(home.start().settle()).rejects.toThrow(Died);
    home.left = Number.POSITIVE_INFINITY;
    expect(await home.start().settle()).toMatchObject({ number: 1, text: 'a: 1' });
    expect(await history(db)).toEqual(['a: 1']);
  }
});

test('an edit by hand becomes a version, and is never overwritten', async () => {
  await using db = await open();
  const home = createHome(db, 'a: 1');
  await home.start().settle();
  home.text = 'a: by hand';
  await home.change('a: 2');
  expect(await history(db)).toEqual(['a: 1', 'a: by hand', 'a: 2']);
  home.beforeWrite = () => (home.text = 'a: in between');
  await expect(home.change('a: 3')).rejects.toMatchObject({ code: 'conflict' });
  expect(home.text).toBe('a: in between');
  await home.start().settle();
  expect(await history(db)).toEqual(['a: 1', 'a: by hand', 'a: 2', 'a: in between']);
});

test('an edit by hand that cannot be used is not stored, unless something replaces it', async () => {
  await using db = await open();
  const home = createHome(db, 'a: 1');
  await home.start().settle();
  home.text = 'broken';
  await expect(home.start().settle()).rejects.toThrow('broken');
  expect(await history(db)).toEqual(['a: 1']);
  const versions = home.start();
  const base = await versions.settle({ keepInvalid: true });
  await versions.replace(base, 'a: 1', note, audit());
  expect(home.text).toBe('a: 1');
  expect((await db.read(listConfigVersions, { limit: 9 })).map(({ digest, origin }) => [digest, origin])).toEqual([
    [digestOf('a: 1'), 'rpc'],
    [digestOf('broken'), 'file'],
    [digestOf('a: 1'), 'file'],
  ]);
});

test('a failing write of the file leaves nothing behind', async () => {
  await using db = await open();
  const home = createHome(db, 'a: 1');
  await home.start().settle();
  const versions = new ConfigVersions({
    db,
    clock,
    log: silentLog,
    homeId: 'home',
    seal,
    isShared: false,
    readText: () => home.text,
    writeText() {
      throw new Error('EBUSY: resource busy');
    },
    keepText: () => '',
    check: () => {},
  });
  const base = await versions.settle();
  await expect(versions.replace(base, 'a: 2', note, audit())).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('mount its folder'),
  });
  expect(await history(db)).toEqual(['a: 1']);
  expect(await versions.settle()).toMatchObject({ isWritten: false, number: 1 });
});

test('two changes from the same version: one is refused', async () => {
  await using db = await open();
  const home = createHome(db, 'a: 1');
  const versions = home.start();
  const base = await versions.settle();
  await versions.replace(base, 'a: 2', note, audit());
  await expect(versions.replace(base, 'a: 3', note, audit())).rejects.toMatchObject({ code: 'conflict' });
  expect(home.text).toBe('a: 2');
});

test('versions that were sealed with another key are kept, and the file is the truth', async () => {
  await using db = await open();
  const home = createHome(db, 'a: 1');
  await home.start().settle();
  await home.change('a: 2');
  const other = new ConfigVersions({
    db,
    clock,
    log: silentLog,
    homeId: 'home',
    seal: createSeal(Buffer.alloc(32, 2)),
    isShared: false,
    readText: () => 'a: 3',
    writeText: () => expect.fail('the file was written'),
    keepText: () => '',
    check: () => {},
  });
  expect(await other.settle()).toMatchObject({ text: 'a: 3', number: 3 });
});

test('daemons that share the database write its newest version to their files, and keep what belongs to their machine', async () => {
  await using db = await open();
  const shared = { isShared: true };
  const one = createHome(db, '# one\ngateway: { port: 1 }\nagents: {}\n', { ...shared, homeId: 'one' });
  const two = createHome(db, 'gateway: { port: 2 }\nstorage: { driver: postgres }\n', { ...shared, homeId: 'two' });
  await one.start().settle();
  await one.change('# one\ngateway: { port: 1 }\nagents: { a: {} }\n');
  expect(await two.start().settle()).toMatchObject({ isWritten: true });
  expect(two.text).toBe('# one\ngateway: { port: 2 }\nagents: { a: {} }\nstorage:\n  driver: postgres\n');
  expect(two.kept).toEqual(['gateway: { port: 2 }\nstorage: { driver: postgres }\n']);
  // Nobody has edited the file of a home that comes new.
  expect(two.logged).toEqual([expect.stringContaining('of this home, which is new to the database, differs')]);
  expect(await two.start().settle()).toMatchObject({ isWritten: false });
  // The file of a daemon that changed nothing meanwhile follows, and an edit by hand on it is kept aside.
  await two.change(two.text.replace('a: {}', 'b: {}'));
  expect(await one.start().settle()).toMatchObject({ isWritten: true });
  expect(one.text).toBe('# one\ngateway: { port: 1 }\nagents: { b: {} }\n');
  await one.change(one.text.replace('b: {}', 'c: {}'));
  two.text = two.text.replace('b: {}', 'x: {}');
  expect(await two.start().settle()).toMatchObject({ isWritten: true });
  expect(two.text).toContain('agents: { c: {} }');
  expect(two.kept.at(-1)).toContain('agents: { x: {} }');
  expect(two.logged.at(-1)).toMatch(/was edited while another daemon/);
  // So is one of the newest version, made while the daemon stood by.
  const newest = two.text;
  two.text = newest.replace('c: {}', 'y: {}');
  expect(await two.start().settle({ isStandby: true })).toMatchObject({ isWritten: true, text: newest });
  expect(two.kept.at(-1)).toContain('agents: { y: {} }');
  // Another edit by hand of the newest version is one.
  two.text = two.text.replace('c: {}', 'd: {}');
  expect(await two.start().settle()).toMatchObject({ isWritten: false });
  expect((await one.start().settle()).text).toContain('agents: { d: {} }');
});

test('changes, edits by hand and deaths in any order leave a linear history that ends with the file', async () => {
  const act = fc.oneof(
    fc.record({ kind: fc.constant('change' as const), value: fc.nat(5), steps: fc.option(fc.nat(8)) }),
    fc.record({ kind: fc.constant('edit' as const), value: fc.nat(5) }),
    fc.record({ kind: fc.constant('race' as const), value: fc.nat(5) }),
    fc.record({ kind: fc.constant('start' as const), steps: fc.nat(4) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 12 }), async (acts) => {
      await using db = await open();
      const home = createHome(db, 'first: 0');
      await home.start().settle();
      const mustKeep: string[] = [];
      for (const [index, one] of acts.entries()) {
        const name = (kind: string) => `${kind}: ${'value' in one ? one.value : 0} # ${index}`;
        if (one.kind === 'edit') {
          // Only a person who saw the file edits it.
          mustKeep.push(home.text, name('hand'));
          home.text = name('hand');
        } else if (one.kind === 'start') {
          home.left = one.steps;
          await home
            .start()
            .settle()
            .catch(() => undefined);
        } else {
          if (one.kind === 'race')
            home.beforeWrite = () => {
              home.text = name('race');
              mustKeep.push(home.text);
            };
          else home.left = one.steps ?? Number.POSITIVE_INFINITY;
          await home.change(name('call')).then(
            () => mustKeep.push(name('call')),
            () => undefined,
          );
        }
        home.beforeWrite = () => {};
        home.left = Number.POSITIVE_INFINITY;
        // A daemon notices an edit before the next one, or the next one replaces it unseen.
        await home.start().settle();
      }
      const texts = await history(db);
      expect(texts.at(-1)).toBe(home.text);
      for (const text of mustKeep) expect(texts).toContain(text);
    }),
    { numRuns: 40 },
  );
});
