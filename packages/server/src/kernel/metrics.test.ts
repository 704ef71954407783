import { expect, it } from 'vitest';
import { parseExposition } from './testing/exposition.ts';
import { createMetricRegistry } from './metrics.ts';

it('renders counters, gauges and histograms with escaped labels', async () => {
  const registry = createMetricRegistry();
  const calls = registry.counter('calls_total', 'Calls,\nby "name" \\.', ['name']);
  calls('a"b\\c\nd').add();
  calls('a"b\\c\nd').add(2);
  registry.counter('never_total', 'Nothing yet.', [])();
  registry.gauge('open', 'Open.', ['kind'], async () => [[['x'], 1.5]]);
  const times = registry.histogram('time_seconds', 'Time.', ['route'], [0.1, 1]);
  for (const seconds of [0.05, 0.1, 0.5, 7]) times('/a').observe(seconds);
  const text = await registry.render();
  expect(text).toContain('# HELP calls_total Calls,\\nby "name" \\\\.\n# TYPE calls_total counter\ncalls_total{name="a\\"b\\\\c\\nd"} 3\n');
  const samples = parseExposition(text);
  expect(Object.fromEntries(samples)).toMatchObject({
    never_total: 0,
    'open{kind="x"}': 1.5,
    'time_seconds_bucket{route="/a",le="0.1"}': 2,
    'time_seconds_bucket{route="/a",le="1"}': 3,
    'time_seconds_bucket{route="/a",le="+Inf"}': 4,
    'time_seconds_count{route="/a"}': 4,
  });
  expect(samples.get('time_seconds_sum{route="/a"}')).toBeCloseTo(7.65);
});

it('holds a bounded number of series and counts further ones together', async () => {
  const registry = createMetricRegistry();
  const calls = registry.counter('calls_total', 'Calls.', ['name', 'kind']);
  for (let i = 0; i < 3_000; i += 1) calls(`n${i}`, 'k').add();
  const samples = parseExposition(await registry.render());
  expect(samples.size).toBe(1_001);
  expect(samples.get('calls_total{name="other",kind="other"}')).toBe(2_000);
});
