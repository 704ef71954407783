import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { dotted, readPath } from './config-error.ts';
import { documentValue, type Edit, EditError, editDocument } from './edit.ts';

const set = (path: string, value: unknown): Edit => ({ set: parts(path), value });
const unset = (path: string): Edit => ({ unset: parts(path) });
const parts = (path: string) => readPath(path) ?? [];
const edited = (text: string, ...edits: Edit[]) => editDocument(text, edits);

const file = `# first
gateway:
    host:   "127.0.0.1"   # loopback
    # the port
    port: 4766
    tokens:
    - id: ops   # people
      secret: '\${OPS}'
      scopes: [ "*" ]
    # for programs
    - {id: bot, secret: "x y", scopes: [rpc, admin]}
providers: {}   # none yet


agents:
    default:
        model: a/b
        # how long
        prompt: |
            Be brief.

            Be kind.
    # the last one
    scout: {name: Scout, tools: {deny: [write]}}
# the end
`;

test.each([
  ['gateway.port', ['gateway', 'port']],
  ['gateway.tokens[0].secret', ['gateway', 'tokens', 0, 'secret']],
  ['gateway.tokens.0.secret', ['gateway', 'tokens', 0, 'secret']],
  ['agents["a.b"].tools', ['agents', 'a.b', 'tools']],
  ['logging.modules["a\\"b"]', ['logging', 'modules', 'a"b']],
  ...['', '.', 'a.', 'a..b', 'a[', 'a[x]', 'a["b"', 'a["b"]c', '[0]'].map((text): [string, undefined] => [text, undefined]),
])('the path of %s', (text, path) => {
  expect(readPath(text)).toEqual(path);
});

test('a path that was formatted is read as the same', () => {
  for (const path of [
    ['gateway', 'tokens', 0, 'secret'],
    ['agents', 'a.b', 'model'],
  ])
    expect(readPath(dotted(path))).toEqual(path);
});

describe('set', () => {
  test.each([
    ['a number', set('gateway.port', 1), 'port: 4766', 'port: 1'],
    ['a quoted text', set('gateway.host', '::1'), '"127.0.0.1"   # loopback', '::1   # loopback'],
    ['an item by index', set('gateway.tokens.1.id', 'robot'), 'id: bot', 'id: robot'],
    ['an item by id', set('gateway.tokens.ops.secret', 'new'), `secret: '\${OPS}'`, 'secret: new'],
    ['a list on one line', set('gateway.tokens.ops.scopes', ['rpc', 'admin']), '[ "*" ]', '[ rpc, admin ]'],
    ['a key of a section on one line', set('agents.scout.model', 'c/d'), 'deny: [write]}}', 'deny: [write]}, model: c/d}'],
    ['a new key', set('gateway.enabled', false), 'scopes: [rpc, admin]}\n', 'scopes: [rpc, admin]}\n    enabled: false\n'],
    ['a new section', set('routing.defaultAgentId', 'scout'), 'deny: [write]}}\n', 'deny: [write]}}\nrouting:\n    defaultAgentId: scout\n'],
    [
      'a key of an empty section',
      set('providers.x', { type: 'openai' }),
      'providers: {}   # none yet\n',
      'providers:   # none yet\n    x:\n        type: openai\n',
    ],
    [
      'a longer text',
      set('agents.default.prompt', 'Be brief.\nBe bold.'),
      '|\n            Be brief.\n\n            Be kind.\n',
      '|-\n            Be brief.\n            Be bold.\n',
    ],
    ['one line for a longer text', set('agents.default.prompt', 'Be.'), '|\n            Be brief.\n\n            Be kind.\n', 'Be.\n'],
    ['a section for a value', set('gateway.port', { a: 1 }), 'port: 4766', 'port:\n        a: 1'],
    ['a value for a section', set('agents.default', 1), /default:\n[^]*?kind\.\n/, 'default: 1\n'],
    [
      'another item',
      set('gateway.tokens.2', { id: 'new', scopes: ['rpc'] }),
      'admin]}\n',
      'admin]}\n    - id: new\n      scopes:\n          - rpc\n',
    ],
  ])('%s replaces only its own characters', (_name, edit, from, to) => {
    const text = edited(file, edit);
    expect(text).toBe(file.replace(from, to));
    expect(text).not.toBe(file);
    expect(edited(text, edit)).toBe(text);
  });

  test('a whole section keeps the comments and the layout of what stays', () => {
    const gateway = { host: '127.0.0.1', port: 5, tokens: [{ id: 'bot', secret: 'x y', scopes: ['rpc'] }] };
    expect(edited(file, set('gateway', gateway))).toBe(
      file
        .replace('4766', '5')
        .replace(/ {4}- id: ops[^]*?"\*" \]\n/, '')
        .replace('[rpc, admin]', '[rpc]'),
    );
  });

  test('an item in the middle of a list by its id', () => {
    const list = 'a:\n  # one\n  - id: x\n    n: 1\n  # two\n  - id: y\n    n: 2\n';
    expect(edited(list, set('a', [{ id: 'x', n: 1 }, { id: 'z' }, { id: 'y', n: 2 }]))).toBe(
      'a:\n  # one\n  - id: x\n    n: 1\n  # two\n  - id: z\n  - id: y\n    n: 2\n',
    );
    expect(edited(list, set('a', [{ id: 'y', n: 3 }]))).toBe('a:\n  # one\n  # two\n  - id: y\n    n: 3\n');
  });

  test.each([
    ['', 'a:\n  b: 1\n'],
    ['# only\n#   comments\n', '# only\n#   comments\na:\n  b: 1\n'],
    ['a:\n', 'a:\n  b: 1\n'],
    ['a:   # empty\n#   b: 2\n# c:\n', 'a:   # empty\n  b: 1\n#   b: 2\n# c:\n'],
    ['a: {}', 'a:\n  b: 1'],
    ['{}', 'a:\n  b: 1'],
    ['{a: {c: 1}}', '{a: {c: 1, b: 1}}'],
    ['a: null # x', 'a: # x\n  b: 1'],
    ['a:\r\n  c: 1\r\nd: 2\r\n', 'a:\r\n  c: 1\r\n  b: 1\r\nd: 2\r\n'],
    ['\uFEFFa: {b: 2}\n', '\uFEFFa: {b: 1}\n'],
    ['a:\n  c: |+\n    x\n\n', 'a:\n  c: |+\n    x\n\n  b: 1\n'],
    ['---\na:\n  c: 1', '---\na:\n  c: 1\n  b: 1'],
  ])('in %j', (text, expected) => {
    expect(edited(text, set('a.b', 1))).toBe(expected);
  });

  test('quotes what would be read as something else', () => {
    const values = ['yes', 'null', '1e3', '- x', '# no', '${NAME}', 'a: b', '', ' x ', '*x', '!x', '{', 'ü\u0000\u2028'];
    for (const value of values) {
      expect(documentValue(edited('a: 1\nc: [x]', set('a', value), set('c.0', value)))).toEqual({ a: value, c: [value] });
      expect(documentValue(edited('a: {b: 1}', set(`a.b`, value), set('a.c', [value])))).toEqual({ a: { b: value, c: [value] } });
    }
  });
});

describe('unset', () => {
  test.each([
    ['a key with the comment on its line', unset('gateway.host'), '    host:   "127.0.0.1"   # loopback\n', ''],
    ['a block', unset('agents.default.prompt'), /        prompt: \|[^]*?kind\.\n/, ''],
    ['an item by id', unset('gateway.tokens.bot'), '    - {id: bot, secret: "x y", scopes: [rpc, admin]}\n', ''],
    ['the first key of an item', unset('gateway.tokens.ops.id'), '- id: ops   # people\n', '-    # people\n'],
    ['the first key on one line', unset('gateway.tokens.1.id'), '{id: bot, secret', '{secret'],
    ['the last key on one line', unset('gateway.tokens.1.scopes'), ', scopes: [rpc, admin]}', '}'],
    ['the only key', unset('agents.scout.tools.deny'), '{deny: [write]}', '{}'],
    ['a section', unset('providers'), 'providers: {}   # none yet\n', ''],
  ])('%s', (_name, edit, from, to) => {
    const text = edited(file, edit);
    expect(text).toBe(file.replace(from, to));
  });

  test('the last key of a section leaves it empty, and a missing key nothing', () => {
    expect(edited('a:\n  # b\n  b: 1 # c\nd: 1\n', unset('a.b'))).toBe('a: {} # c\nd: 1\n');
    expect(edited('a: # kept\n  b: 1\n', unset('a.b'))).toBe('a: {} # kept\n');
    expect(edited('a: 1\n# c\n', unset('a'))).toBe('# c\n');
    expect(edited(file, unset('gateway.web.distPath'))).toBe(file);
  });
});

test('an alias gets its own value where the two become different', () => {
  const text = 'a: &x {b: 1}\nc: *x # own\nd: *x\n';
  expect(edited(text, set('c.b', 2))).toBe('a: &x {b: 1}\nc: # own\n  b: 2\nd: *x\n');
  expect(edited(text, set('a.b', 2))).toBe('a: &x {b: 2}\nc: # own\n  b: 1\nd:\n  b: 1\n');
  expect(edited(text, unset('a'))).toBe('c: # own\n  b: 1\nd:\n  b: 1\n');
});

describe('refuses', () => {
  test.each([
    ['a removal that would change what is a list', 'a: [x, y]', unset('a.z')],
    ['a path through a value', 'a: 1', set('a.b', 1)],
    ['an index behind the end', 'a: [1]', set('a.2', 1)],
    ['an unknown id', 'a: [{id: x}]', set('a.y.z', 1)],
    ['a document that is not valid', 'a: [', set('a', 1)],
    ['a document with tags', 'a: !x 1', set('b', 1)],
    ['two documents', 'a: 1\n---\nb: 1\n', set('b', 1)],
  ])('%s', (_name, text, edit) => {
    expect(() => edited(text, edit)).toThrow(EditError);
  });

  test('without quoting the document', () => {
    for (const text of ['a: &x {key: sk-secret', 'key: !x sk-secret', 'sk-secret: [1]\nsk-secret: 2\n'])
      expect(() => edited(text, set('b', 1))).toThrow(expect.objectContaining({ message: expect.not.stringContaining('sk-secret') }));
  });
});

test('after a change the text has the value, and every other value and comment is as before', () => {
  const leaf = fc.oneof(fc.integer(), fc.boolean(), fc.constant(null), fc.string(), fc.constantFrom('yes', '${A}', 'x\ny\n', '# c', '*'));
  const key = fc.constantFrom('a', 'b', 'c d', 'é', '1', '- x');
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof({ maxDepth: 3, withCrossShrink: true }, leaf, tie('map'), tie('list')),
    map: fc.dictionary(key, tie('tree'), { maxKeys: 4 }),
    list: fc.array(fc.oneof(tie('tree'), fc.record({ id: key, n: leaf })), { maxLength: 4 }),
  }));
  const root = fc.dictionary(key, tree, { maxKeys: 5, minKeys: 1 });
  const style = fc.record({ indent: fc.constantFrom(2, 4), indentSeq: fc.boolean(), flow: fc.boolean(), crlf: fc.boolean(), bom: fc.boolean() });
  fc.assert(
    fc.property(root, style, key, tree, fc.option(key), (value, { indent, indentSeq, flow, crlf, bom }, at, next, below) => {
      // Another section, with all that must survive, before and after.
      const written = stringify(value, {
        version: '1.2',
        indent,
        indentSeq,
        lineWidth: 0,
        aliasDuplicateObjects: false,
        ...(flow && { collectionStyle: 'flow' as const }),
      });
      const around = (text: string) =>
        `# first\nhead:   { x: 1,y: "2" } # kept\n\n\n# about\nmid:\n${text.replaceAll(/^(?=.)/gm, '    ')}# after\ntail: &t\n  - 'z'   # odd\nlast: *t\n# end\n`;
      const plain = around(written);
      const text = (bom ? '\uFEFF' : '') + (crlf ? plain.replaceAll('\n', '\r\n') : plain);
      const before = JSON.parse(JSON.stringify(documentValue(text)));
      const path = below === null ? ['mid', at] : ['mid', at, below];
      const held = before.mid?.[at];
      const fits = below === null || held === undefined || held === null || (typeof held === 'object' && !Array.isArray(held));
      fc.pre(fits);
      const result = editDocument(text, [{ set: path, value: next }]);
      const after = JSON.parse(JSON.stringify(documentValue(result)));
      const mid = { ...before.mid };
      mid[at] = below === null ? next : { ...held, [below]: next };
      expect(after).toEqual({ ...before, mid });
      for (const line of ['# first', 'head:   { x: 1,y: "2" } # kept', '# about', '# after', "  - 'z'   # odd", 'last: *t', '# end'])
        expect(result.split(/\r?\n/).map((one) => one.replace('\uFEFF', ''))).toContain(line);
      expect(result.startsWith('\uFEFF')).toBe(bom);
      if (crlf) expect(result.replaceAll('\r\n', '')).not.toContain('\n');
      expect(JSON.parse(JSON.stringify(documentValue(editDocument(result, [{ unset: ['mid', at] }]))))).toEqual({
        ...before,
        mid: Object.fromEntries(Object.entries(mid).filter(([name]) => name !== at)),
      });
    }),
    { numRuns: 100 },
  );
});
