import { describe, expect, test } from 'vitest';
import { fillArguments, readInvocation } from './fill-arguments.ts';
import { loadText } from './load-text.ts';
import { parseSkill } from '../bundles/manifest.ts';
import { createMatcher } from './match.ts';

describe('arguments', () => {
  test.each([
    ['Say $1 to $2.', 'hello "dear reader"', 'Say hello to dear reader.'],
    ['All: $ARGUMENTS', 'a "b c"', 'All: a "b c"'],
    ['All: $@', 'a b', 'All: a b'],
    ['Rest: ${@:2}, first $1', 'a b c', 'Rest: b c, first a'],
    ['From {start} to {end}, again {start}', 'May June', 'From May to June, again May'],
    ['Nothing here', 'a b', 'Nothing here\n\nArguments: a b'],
    ['One $1', '', 'One '],
    ['Keep {open} as it is', '', 'Keep {open} as it is'],
    ['Price: $100 and ${name}', '', 'Price: $100 and ${name}'],
    ['$1', '$2 $ARGUMENTS', '$2\n\nArguments: $ARGUMENTS'],
  ])('%j with %j', (body, args, expected) => expect(fillArguments(body, args)).toBe(expected));

  test.each([
    ['/notes', { name: 'notes', args: '' }],
    ['/skill:notes 1 2', { name: 'notes', args: '1 2' }],
    ['/notes\nmore', { name: 'notes', args: 'more' }],
    ['see /notes', undefined],
    ['//notes', undefined],
    ['/usr/bin', undefined],
  ])('%j', (message, expected) => expect(readInvocation(message)).toEqual(expected));
});

describe('the text that a model is shown', () => {
  test('has no comments, not even nested ones, and nothing hidden', () => {
    expect(loadText('a<!-- x -->b<!--- <!-- y -->c<!<!-- z -->-- w -->d<!-- open')).not.toMatch(/[xyzw]|<!--/);
    expect(loadText('ｆｕｌｌ\u200b\u202e\u{e0041}')).toBe('full');
  });
  test('is bounded', () => {
    expect(loadText('x'.repeat(30_000))).toHaveLength(20_000 + '\n[The skill is longer: the rest is omitted.]'.length);
  });
});

describe('the manifest', () => {
  const parse = (head: string) => parseSkill(`---\nname: notes\ndescription: Notes.\n${head}---\nBody\n`);
  test('accepts the keys of other systems and drops unknown ones', async () => {
    expect(await parse('allowed-tools: Read, Grep\nuser-invocable: false\ncolor: red\nmetadata:\n  a: 1\n  b: {c: d}\n')).toMatchObject({
      manifest: { name: 'notes', allowedTools: ['Read', 'Grep'], userInvocable: false, metadata: { a: '1' } },
      body: 'Body\n',
      dropped: ['color', 'metadata.b'],
      executableKeys: [],
    });
    expect(await parse('hooks: {start: x}\n')).toMatchObject({ executableKeys: ['hooks'] });
  });
  test.each([
    '__proto__: {a: 1}\n',
    'a: &x 1\nb: *x\n',
    'name: twice\n',
    'allowedTools: [a]\nallowed-tools: [b]\n',
    'a: !!js/function "x"\n',
    'a: [\n',
    `description: ${'x'.repeat(20_000)}\n`,
  ])('refuses %j', async (head) => expect(await parse(head)).toMatchObject({ rule: 'UNPARSEABLE' }));
  test('of another type is refused', async () => expect(await parse('type: plugin\n')).toMatchObject({ rule: 'NOT_PROMPT' }));
});

describe('what fits a question', () => {
  const skills = [
    { name: 'release-notes', description: 'Writes release notes from commits.', promoted: false },
    { name: 'pdf', description: 'Fills and reads forms.', promoted: false },
    { name: 'tables', description: 'Aligns the columns of tables.', promoted: true },
  ];
  const match = createMatcher(skills);
  const names = (question: string, limit = 3) => match(question, limit).map(({ name }) => name);
  test('shares words with it, or is named in it', () => {
    expect(names('Which commits belong in the release?')).toEqual(['release-notes']);
    expect(names('Read this PDF')).toEqual(['pdf']);
    expect(names('Run release notes')).toEqual(['release-notes']);
    expect(names('Good morning')).toEqual([]);
    expect(names('notes')).toEqual([]);
  });
  test('promoted skills come first, and there is a limit', () => {
    expect(names('release notes: align the columns')).toEqual(['tables', 'release-notes']);
    expect(names('release notes: align the columns', 1)).toEqual(['tables']);
    expect(names('release notes', 0)).toEqual([]);
  });
});
