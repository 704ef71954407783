import type { GraphNode } from '@gatehouse/contract';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readApproval } from '../run/gates/approval-terms.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import { readDefinition } from '../definition/definition.ts';
import { envelopeOf, type Upstream } from './envelope.ts';
import { fillTemplate, namesIn } from './template.ts';

const result = (id: string) => (id === 'a' ? 'RESULT' : undefined);

test('templates are filled in a single pass, and missing values leave a visible marker', () => {
  expect(fillTemplate('Use {{a.result}}, {{ a.result }}, ${X}.', { result, variables: { X: 'val' } })).toBe('Use RESULT, RESULT, val.');
  expect(fillTemplate('{{b.result}} ${Y}', { result, variables: {} })).toBe('[no result of node b] [no value for Y]');
  expect(fillTemplate('$X {a.result} {{a.output}} ${1X} ${toString}', { result, variables: {} })).toBe(
    '$X {a.result} {{a.output}} ${1X} [no value for toString]',
  );
  // Values are not templates, and `$&` is not a special reference.
  const sly = { X: '{{a.result}} ${Y} $& $1', Y: 'secret' };
  expect(fillTemplate('${X}', { result, variables: sly })).toBe('{{a.result}} ${Y} $& $1');
  expect(fillTemplate('{{a.result}}', { result: () => '${Y} {{a.result}}', variables: sly })).toBe('${Y} {{a.result}}');
  expect(namesIn('{{a.result}} ${X} {{a.result}} {{b.result}}')).toEqual({ nodes: ['a', 'b'], variables: ['X'] });
});

test('the length of filled text is limited', () => {
  const filled = fillTemplate('${X}'.repeat(100), { result, variables: { X: 'x'.repeat(20_000) } });
  expect(filled.length).toBeLessThan(101_000);
  expect(filled).toMatch(/omitted\]$/);
  // Text that would be cut off is never built: 5000 placeholders with 12,000 characters each.
  let asked = 0;
  const long = 'x'.repeat(12_000);
  fillTemplate('{{a.result}} '.repeat(5000), { result: () => ((asked += 1), long), variables: {} });
  expect(asked).toBeLessThan(10);
});

test('texts are cut between code points', () => {
  expect(headOf('ab😀cd', 3)).toBe('ab');
  expect(headOf('ab😀cd', 4)).toBe('ab😀');
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(40), (text, max) => {
      const cut = headOf(text, max);
      expect(cut.length).toBeLessThanOrEqual(max);
      expect(cut.length).toBeGreaterThanOrEqual(Math.min(text.length, max) - 1);
      expect(text.startsWith(cut)).toBe(true);
      if (text.isWellFormed()) expect(cut.isWellFormed()).toBe(true);
    }),
  );
});

test.each([
  ['yes', true],
  ['Yes, go ahead!', true],
  ['LGTM', true],
  ['sounds good', true],
  ['ok', true],
  ["no, don't do it", false],
  ['Don’t do it', false],
  ["don't", false],
  ['do not proceed', false],
  ['not ok', false],
  ["It isn't ok", false],
  ['please wait', false],
  ['yes, but stop after this', false],
  ['nobody knows', undefined],
  ['goal', undefined],
  ['yesterday', undefined],
  ['maybe', undefined],
  ['unsure', undefined],
  ['I cannot approve this', false],
  ["I can't approve", false],
  ['I refuse to approve it', false],
  ['declined, ok', false],
  ['yes!!', true],
  ['YES — go  ahead, thank you', true],
  ['I approve this.', true],
  ['‘ok’', true],
  // Conditions, questions, and unknown terms.
  ['yes, but only after the review', undefined],
  ['ok if legal signs it', undefined],
  ['approve?', undefined],
  ['do I approve this', undefined],
  ['go away', undefined],
  ['I doubt it is ok', undefined],
  ['ok, don t do it', undefined],
  ['do item one', undefined],
  ['yes 👎', undefined],
  ['👍', undefined],
  ['ja', undefined],
  ['да', undefined],
  ['n\u200bo, ok', undefined],
  ['', undefined],
])('approval: %s → %s', (answer, expected) => {
  expect(readApproval(answer)).toBe(expected);
});

const plain = (id: string, after: readonly string[] = [], more: Partial<GraphNode> = {}): GraphNode => ({
  node_id: id,
  task: `Do ${id}.`,
  depends_on: [...after],
  ...more,
});

function envelope(more: Partial<GraphNode>, upstream: Record<string, Partial<Upstream>>, own = (text: string) => text) {
  const read = readDefinition({
    label: 'Tides',
    nodes: [plain('a'), plain('b'), plain('end', ['a', 'b'], { barrier_mode: 'best-effort', ...more })],
  });
  if (!('spec' in read)) throw new Error(JSON.stringify(read.issues));
  const { spec } = read;
  const node = spec.nodes.find(({ id }) => id === 'end');
  if (node === undefined) throw new Error('no node');
  const known = Object.entries(upstream).map(([id, one]) => [id, { state: 'completed', output: null, partial: false, ...one }] as const);
  return envelopeOf({ spec, node, variables: { N: '3' }, upstream: new Map(known), fence: (text, from) => `<${from}|${text}>`, own });
}

const both = { a: { output: 'A said' }, b: { output: 'B said' } };

test('a node receives the structure of the graph, its goal, and the previous results, fenced', () => {
  const text = envelope({ task: 'Sum up ${N}.' }, both);
  expect(text).toContain('one of 3 parts');
  expect(text).toContain('- end (after a, b): this is you');
  expect(text).toContain('Overall goal:\nTides');
  expect(text).toContain('Result of a:\n<a|A said>');
  expect(text).toContain('Result of b:\n<b|B said>');
  expect(text).toMatch(/Your task:\nSum up 3\.$/);
});

test('a result that the task contains is not repeated', () => {
  const text = envelope({ task: 'Judge {{a.result}} now.' }, both);
  expect(text.match(/A said/g)).toHaveLength(1);
  expect(text).toContain('Judge \n<a|A said>\n now.');
  expect(text).toContain('Result of b');
});

test.each<[NonNullable<GraphNode['context_mode']>, RegExp, RegExp]>([
  ['summary', /Beginning of the result of a:\n<a\|x{500}>/, /x{501}/],
  ['refs', /- node_result \{"node":"a"\}\n- node_result \{"node":"b"\}/, /xxx/],
  ['none', /Your task/, /Result|xxx/],
])('context_mode %s', (context_mode, has, hasNot) => {
  const text = envelope({ context_mode }, { a: { output: 'x'.repeat(900) }, b: { output: 'y' } });
  expect(text).toMatch(has);
  expect(text).not.toMatch(hasNot);
});

test('missing and incomplete results are reported', () => {
  const text = envelope({ task: 'Use {{a.result}}.' }, { a: { state: 'failed' }, b: { output: 'B', partial: true } });
  expect(text).toContain('a failed; no result is available.');
  expect(text).toContain('b was stopped early; its result is not complete.');
  expect(text).toContain('Use [no result of node a].');
});

test('goal and task of a tainted author are fenced', () => {
  const text = envelope({ task: 'Sum up.' }, both, (own) => `{own|${own}}`);
  expect(text).toContain('{own|Tides}');
  expect(text).toMatch(/Your task:\n\{own\|Sum up\.\}$/);
});
