import { globSync, readFileSync } from 'node:fs';

/** Median, 90th percentile and the longest files per package: for information, without a limit. */
const groups: Record<string, string> = {
  contract: 'packages/contract/src/**/*.ts',
  server: 'packages/server/src/**/*.ts',
  client: 'packages/client/src/**/*.ts',
  cli: 'packages/cli/src/**/*.ts',
  dashboard: 'packages/dashboard/src/**/*.{ts,tsx}',
  testkit: 'packages/testkit/src/**/*.ts',
  suites: '{e2e,bench,proving,tools}/**/*.ts',
};

const rows: string[][] = [['package', 'files', 'lines', 'median', 'p90', 'longest']];
for (const [name, pattern] of Object.entries(groups)) {
  const files = globSync(pattern)
    .filter((path) => name === 'suites' || !path.endsWith('.test.ts'))
    .map((path) => ({ path, lines: readFileSync(path, 'utf8').split('\n').length - 1 }))
    .toSorted((a, b) => a.lines - b.lines);
  if (files.length === 0) continue;
  const at = (share: number): number => files[Math.min(files.length - 1, Math.floor(files.length * share))]?.lines ?? 0;
  const longest = files
    .slice(-3)
    .toReversed()
    .map((file) => `${file.path.split('/src/').at(-1)} ${file.lines}`);
  rows.push([name, `${files.length}`, `${files.reduce((sum, file) => sum + file.lines, 0)}`, `${at(0.5)}`, `${at(0.9)}`, longest.join(', ')]);
}
const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
for (const row of rows)
  console.log(
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
