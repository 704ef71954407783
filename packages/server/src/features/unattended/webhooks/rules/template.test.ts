import { cpuGrowth } from '@gatehouse/testkit/cpu-growth';
import { expect, it } from 'vitest';
import { renderTemplate } from './template.ts';

const context = {
  payload: { a: { b: 'deep' }, list: [{ n: 1 }, 'two'], zero: 0, no: false, nothing: null, path: 'own', evil: '{{payload.a.b}}', 'with-dash': 'd' },
  headers: { 'x-event': 'push' },
  query: { q: 'asked' },
  path: 'github/push',
  now: '2026-11-22T00:00:00.000Z',
};
const render = (template: string, max = 1_000) => renderTemplate(template, context, max);

it.each([
  ['{{a.b}} {{payload.a.b}} {{ a.b }}', 'deep deep deep'],
  ['{{list[0].n}} {{payload.list[1]}} {{list.1}}', '1 two two'],
  ['{{headers.x-event}} {{query.q}} {{path}} {{now}} {{payload.path}}', 'push asked github/push 2026-11-22T00:00:00.000Z own'],
  ['{{headers.X-Event}} {{headers.X-EVENT}}', 'push push'],
  ['{{zero}} {{no}} {{with-dash}}', '0 false d'],
  ['{{a}} {{list}}', '{"b":"deep"} [{"n":1},"two"]'],
  ['[{{nothing}}{{missing}}{{a.b.c}}{{headers.none}}{{query}}{{headers}}]', '[]'],
  ['no expression {a} {{ }} {{}}', 'no expression {a}  '],
])('%s', (template, text) => expect(render(template)).toBe(text));

it.each([
  "{{constructor.constructor('x')()}}",
  '{{__proto__.x}}',
  '{{__proto__}}',
  '{{payload.toString}}',
  '{{payload.constructor}}',
  '{{list.length}}',
  '{{list.map}}',
  '{{a.b.length}}',
  '{{headers.constructor}}',
  '{{list[999999999]}}',
  '{{a[-1]}}',
  '{{{{a}}}}',
  '{{{a}}}',
])('%s renders as empty (C11)', (template) => expect(render(template)).toBe(''));

it('stops at the maximum length, however often a template repeats a large payload', async () => {
  const payload = Array.from({ length: 20_000 }, (_, n) => n);
  const repeat = (times: number) => renderTemplate('{{payload}}'.repeat(times), { ...context, payload }, 2_000);
  expect(repeat(200)).toHaveLength(2_000);
  // The payload is printed once for any number of repetitions.
  expect(await cpuGrowth(25, repeat)).toBeLessThan(4);
});

it('does not expand rendered values again (C11)', () => expect(render('{{evil}}')).toBe('{{payload.a.b}}'));

it('respects the length limit without splitting a character', () => {
  const wide = { ...context, payload: { text: '🐙'.repeat(50_000) } };
  expect(renderTemplate('{{text}}'.repeat(150), wide, 101)).toBe(`${'🐙'.repeat(50)}\uFFFD`);
  expect(renderTemplate('{{text}}{{text}}', wide, 100_000).length).toBe(32_768);
});
