/** Samples of a scrape by the text before the value: `name{label="value"}` → number. */
export type Samples = ReadonlyMap<string, number>;

const sampleLine =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*\})? (-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN)$/;

/**
 * Reads the Prometheus text format and fails on anything that breaks its rules or those of its linter: HELP and TYPE
 * once before the samples of a family, families not split, no duplicate sample, counters named `_total`, histograms
 * with rising buckets that end at `+Inf` and agree with `_count`.
 */
export function parseExposition(text: string): Samples {
  if (!text.endsWith('\n')) throw new Error('the last line does not end');
  const samples = new Map<string, number>();
  const types = new Map<string, string>();
  let family: string | undefined;
  let helped: string | undefined;
  for (const line of text.slice(0, -1).split('\n')) {
    const [, kind, name, rest] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (kind === 'HELP') {
      if (name === undefined || types.has(name)) throw new Error(`family twice: ${line}`);
      helped = name;
    } else if (kind === 'TYPE') {
      if (name === undefined || rest === undefined || name !== helped) throw new Error(`TYPE without HELP: ${line}`);
      if ((rest === 'counter') !== name.endsWith('_total')) throw new Error(`a counter is named _total, and nothing else is: ${line}`);
      types.set(name, rest);
      family = name;
    } else {
      addSample(line, family, types, samples);
    }
  }
  for (const [name, type] of types) if (type === 'histogram') checkHistogram(name, samples);
  return samples;
}

function addSample(line: string, family: string | undefined, types: ReadonlyMap<string, string>, samples: Map<string, number>): void {
  const [, name, labels = '', value] = sampleLine.exec(line) ?? [];
  if (name === undefined || value === undefined || family === undefined) throw new Error(`no sample: ${line}`);
  const base = types.get(family) === 'histogram' ? name.replace(/_(bucket|sum|count)$/, '') : name;
  if (base !== family) throw new Error(`a sample of another family below ${family}: ${line}`);
  const key = `${name}${labels}`;
  if (samples.has(key)) throw new Error(`sample twice: ${line}`);
  samples.set(key, value === 'Inf' ? Infinity : Number(value));
}

function checkHistogram(name: string, samples: Samples): void {
  const last = new Map<string, number>();
  for (const [key, value] of samples) {
    if (!key.startsWith(`${name}_bucket{`)) continue;
    const labels = key.slice(name.length + 7).replace(/,?le="[^"]+"/, '');
    if (value < (last.get(labels) ?? 0)) throw new Error(`buckets fall: ${key}`);
    last.set(labels, value);
    if (key.includes('le="+Inf"') && value !== samples.get(`${name}_count${labels === '{}' ? '' : labels}`))
      throw new Error(`+Inf differs from _count: ${key}`);
  }
  if (last.size === 0) throw new Error(`a histogram without buckets: ${name}`);
}
