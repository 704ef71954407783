import { createHash } from 'node:crypto';
import type { ResultInput } from '@gatehouse/contract';

type Report = ResultInput<'obs.explain'>;

const maxChars = 256;
/** Bytes of a report as JSON. */
export const maxBytes = { summary: 6 * 1024, full: 256 * 1024 } as const;
export const maxEntries = { summary: 20, full: 200 } as const;
const shedSummaryChars = 80;

/** Replaces texts of more than 256 characters with their digest, at any depth; adds the names of their fields to `found`. */
export function withDigests<T>(value: T, found: Set<string>, path = ''): T {
  if (typeof value === 'string') {
    if (value.length <= maxChars) return value;
    found.add(path);
    return `sha256:${createHash('sha256').update(value).digest('hex').slice(0, 16)} (${value.length} characters)` as T;
  }
  if (Array.isArray(value)) return value.map((item) => withDigests<unknown>(item, found, path)) as T;
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, item]) => {
    const name = key.length <= maxChars ? key : withDigests(key, found, path);
    return [name, withDigests<unknown>(item, found, path === '' ? key : `${path}.${key}`.slice(0, 80))];
  });
  return Object.fromEntries(entries) as T;
}

export function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Rounds that make a report smaller, the least important part first. Each returns the report and names what it cut. */
const rounds: readonly ((report: Report) => readonly [Report, readonly string[]])[] = [
  (report) => keep(report, { failures: 10, offloads: 10, breakerTimeline: 10, spawnTree: 10, orchestrate: 5 }),
  (report) => keep(report, { failures: 5, offloads: 5, breakerTimeline: 5, spawnTree: 5, orchestrate: 3 }),
  (report) => keepTools(report, 10),
  (report) => keep(report, { failures: 3, offloads: 2, breakerTimeline: 3, spawnTree: 2, orchestrate: 1 }),
  (report) => [{ ...report, summary: report.summary.slice(0, shedSummaryChars) }, ['summary']],
  (report) => drop(report, ['learning', 'recall', 'voice', 'cronWakeGate', 'orchestrate']),
  (report) => drop(report, ['spawnTree', 'coverage', 'contextBudget']),
  (report) => keepTools(keep(report, { failures: 1, offloads: 0, breakerTimeline: 1 })[0], 3),
];

type List = 'failures' | 'offloads' | 'breakerTimeline' | 'spawnTree' | 'orchestrate';

function keep(report: Report, limits: Partial<Record<List, number>>): readonly [Report, readonly string[]] {
  const cut = (Object.keys(limits) as List[]).filter((name) => (report[name]?.length ?? 0) > (limits[name] ?? 0));
  const shorter = Object.fromEntries(cut.map((name) => [name, report[name]?.slice(0, limits[name])]));
  return [{ ...report, ...shorter }, cut];
}

/** Keeps the tools with the most failures. */
function keepTools(report: Report, count: number): readonly [Report, readonly string[]] {
  const tools = Object.entries(report.toolStats);
  if (tools.length <= count) return [report, []];
  const kept = new Set(
    tools
      .toSorted(([a, x], [b, y]) => y.failed - x.failed || y.ok - x.ok || (a < b ? -1 : 1))
      .slice(0, count)
      .map(([name]) => name),
  );
  return [{ ...report, toolStats: Object.fromEntries(tools.filter(([name]) => kept.has(name))) }, ['toolStats']];
}

function drop(report: Report, names: readonly (keyof Report)[]): readonly [Report, readonly string[]] {
  const cut = names.filter((name) => report[name] !== undefined);
  const rest = Object.fromEntries(Object.entries(report).filter(([name]) => !cut.includes(name as keyof Report)));
  return [rest as Report, cut];
}

/** Sheds parts of a report until it fits; `truncations` names each of them once. */
export function fitted(report: Report, limit: number): Report {
  let fitting = report;
  for (const shed of rounds) {
    if (bytesOf(fitting) <= limit) return fitting;
    const [smaller, fields] = shed(fitting);
    const known = new Set(smaller.truncations.filter(({ reason }) => reason === 'size').map(({ field }) => field));
    const added = fields.filter((field) => !known.has(field)).map((field) => ({ field, reason: 'size', pointer: 'depth: full' }));
    fitting = { ...smaller, truncations: [...smaller.truncations, ...added] };
  }
  return fitting;
}
