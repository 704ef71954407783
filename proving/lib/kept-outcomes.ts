import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
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
  commit: z.string(),
});
export type Outcome = z.infer<typeof Outcome>;

const folderOf = (commit: string): string => join(root, 'node_modules/.cache/prove', commit);

/** Outcomes on this commit so far, so that an interrupted run continues. */
export async function readKept(commit: string): Promise<readonly Outcome[]> {
  const folder = folderOf(commit);
  const names = await readdir(folder).catch(() => []);
  return Promise.all(names.map(async (name) => Outcome.parse(JSON.parse(await readFile(join(folder, name), 'utf8')))));
}

/** Keeps an outcome that is good; proofs that run at the same time do not overwrite each other's. */
export async function keep(outcome: Outcome): Promise<void> {
  const folder = folderOf(outcome.commit);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${outcome.id}.json`), JSON.stringify(outcome));
}
