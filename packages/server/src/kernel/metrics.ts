/** One time series that only grows. */
export interface Counter {
  add(amount?: number): void;
}

export interface Histogram {
  observe(value: number): void;
}

/** What a gauge shows at a scrape: its values by labels, in the order of the label names. */
export type Sample = readonly [labels: readonly string[], value: number];

export interface MetricRegistry {
  /** The returned function maps label values to their series; look a series up once if it is used often. */
  counter(name: string, help: string, labels: readonly string[]): (...values: readonly string[]) => Counter;
  /** `buckets` are upper bounds, ascending. */
  histogram(name: string, help: string, labels: readonly string[], buckets: readonly number[]): (...values: readonly string[]) => Histogram;
  /** Read at each scrape, so that it costs nothing in between. */
  gauge(name: string, help: string, labels: readonly string[], read: () => Iterable<Sample> | Promise<Iterable<Sample>>): void;
  /** Like `gauge`, for a number that only grows and is counted elsewhere. */
  total(name: string, help: string, labels: readonly string[], read: () => Iterable<Sample>): void;
  /** The text of a scrape (Prometheus text format 0.0.4). */
  render(): Promise<string>;
}

/** Content type of `render`. */
export const metricsContentType = 'text/plain; version=0.0.4; charset=utf-8';

/** Series of one family; further combinations of labels share the one named `other`. */
const maxSeries = 1_000;

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  lines(): Iterable<string> | Promise<Iterable<string>>;
}

/** Plain numbers, formatted when somebody asks: counting is an addition. */
export function createMetricRegistry(): MetricRegistry {
  const families: Family[] = [];

  function series<T>(
    labels: readonly string[],
    make: () => T,
  ): { readonly of: (...values: readonly string[]) => T; readonly all: () => Iterable<[string, T]> } {
    const known = new Map<string, { readonly text: string; readonly value: T }>();
    const of = (...values: readonly string[]): T => {
      const key = values.length === 1 ? (values[0] ?? '') : values.join('\0');
      let found = known.get(key);
      if (found === undefined) {
        const shown = known.size < maxSeries ? values : values.map(() => 'other');
        if (shown !== values && known.has(shown.join('\0'))) return of(...shown);
        found = { text: labelText(labels, shown), value: make() };
        known.set(shown === values ? key : shown.join('\0'), found);
      }
      return found.value;
    };
    return { of, all: () => [...known.values()].map(({ text, value }): [string, T] => [text, value]) };
  }

  return {
    counter(name, help, labels) {
      const { of, all } = series(labels, () => new Sum());
      if (labels.length === 0) of();
      families.push({ name, help, type: 'counter', lines: () => [...all()].map(([text, sum]) => sampleLine(name, text, sum.value)) });
      return of;
    },
    histogram(name, help, labels, buckets) {
      const { of, all } = series(labels, () => new Buckets(buckets));
      families.push({ name, help, type: 'histogram', lines: () => [...all()].flatMap(([text, one]) => one.lines(name, text)) });
      return of;
    },
    gauge(name, help, labels, read) {
      families.push({ name, help, type: 'gauge', lines: async () => [...(await read())].map((sample) => readLine(name, labels, sample)) });
    },
    total(name, help, labels, read) {
      families.push({ name, help, type: 'counter', lines: () => [...read()].map((sample) => readLine(name, labels, sample)) });
    },
    async render() {
      const blocks: string[] = [];
      for (const family of families) {
        const lines = [...(await family.lines())];
        if (lines.length === 0) continue;
        blocks.push(`# HELP ${family.name} ${escapeHelp(family.help)}`, `# TYPE ${family.name} ${family.type}`, ...lines);
      }
      return `${blocks.join('\n')}\n`;
    },
  };
}

class Sum implements Counter {
  value = 0;
  add(amount = 1): void {
    this.value += amount;
  }
}

class Buckets implements Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    this.#sum += value;
    this.#count += 1;
    const at = this.#bounds.findIndex((bound) => value <= bound);
    if (at !== -1) this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  lines(name: string, labels: string): string[] {
    let below = 0;
    const inner = labels === '' ? '' : `${labels},`;
    return [
      ...this.#bounds.map((bound, at) => sampleLine(`${name}_bucket`, `${inner}le="${bound}"`, (below += this.#counts[at] ?? 0))),
      sampleLine(`${name}_bucket`, `${inner}le="+Inf"`, this.#count),
      sampleLine(`${name}_sum`, labels, this.#sum),
      sampleLine(`${name}_count`, labels, this.#count),
    ];
  }
}

function readLine(name: string, labels: readonly string[], [values, value]: Sample): string {
  return sampleLine(name, labelText(labels, values), value);
}

function sampleLine(name: string, labels: string, value: number): string {
  return labels === '' ? `${name} ${value}` : `${name}{${labels}} ${value}`;
}

function labelText(names: readonly string[], values: readonly string[]): string {
  return names.map((name, at) => `${name}="${escapeLabel(values[at] ?? '')}"`).join(',');
}

function escapeLabel(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
