import { readFile, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { root } from './daemon.ts';
import type { Outcome } from './kept-outcomes.ts';

const file = join(root, 'proving/RESULTS.md');

/** Returns the outcomes in the report, one for each proof. */
export const readResults = async (): Promise<readonly Outcome[]> => parseResults(await readFile(file, 'utf8').catch(() => ''));

/** Puts outcomes into the report; the rows of other proofs stay. `ids`: all proofs, in their order. */
export async function writeResults(outcomes: readonly Outcome[], ids: readonly string[]): Promise<void> {
  const rows = new Map([...(await readResults()), ...outcomes].map((outcome) => [outcome.id, outcome]));
  await writeFile(file, formatResults(ids.flatMap((id) => rows.get(id) ?? [])));
}

export function formatResults(outcomes: readonly Outcome[]): string {
  const rows = outcomes.map(({ id, promise, figure, caught, seconds, commit, good }) => {
    const cells = [id.toUpperCase(), good ? 'holds' : '**FAILS**', promise, figure, caught, `${seconds} s`, commit];
    return `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
  });
  return [
    '# Results of the proving harnesses',
    '',
    `Written by \`npm run prove\` with Node ${process.version}, ${process.platform} with ${cpus().length} CPUs. Each row is of the last run of its harness, on the commit in its last column.`,
    'Each harness must also find the fault in a deliberately broken build; the fifth column has what it found there.',
    '',
    '| # | | Promise | Figures | Broken build | Time | Commit |',
    '|---|---|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

/** Reads what `formatResults` wrote; other lines are left out. */
export function parseResults(text: string): readonly Outcome[] {
  return text.split('\n').flatMap((line) => {
    const cells = line.split(/ (?<!\\)\| |^\| | \|$/).slice(1, -1);
    const [id = '', verdict, promise = '', figure = '', caught = '', time = '', commit] = cells.map((cell) => cell.replaceAll('\\|', '|'));
    const seconds = Number(/^(\d+) s$/.exec(time)?.[1]);
    if (commit === undefined || Number.isNaN(seconds)) return [];
    return { id: id.toLowerCase(), promise, figure, caught, good: verdict === 'holds', seconds, commit };
  });
}
