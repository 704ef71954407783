import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { root } from './daemon.ts';

const Outcome = z.strictObject({
  id: z.string(),
  promise: z.string(),
  figure: z.string(),
  caught: z.string(),
  good: z.boolean(),
  seconds: z.number(),
});
export type Outcome = z.infer<typeof Outcome>;
const Kept = z.strictObject({ commit: z.string(), outcomes: z.array(Outcome) });

const dir = join(root, 'node_modules/.cache');
const file = join(dir, 'gatehouse-prove.json');

/** What has held on this commit already, so that a run that was cut off continues. */
export async function readKept(commit: string): Promise<readonly Outcome[]> {
  try {
    const kept = Kept.parse(JSON.parse(await readFile(file, 'utf8')));
    return kept.commit === commit ? kept.outcomes : [];
  } catch {
    return [];
  }
}

export async function keep(commit: string, outcomes: readonly Outcome[]): Promise<void> {
  await mkdir(dir, { recursive: true });
  await writeFile(file, JSON.stringify({ commit, outcomes }));
}
