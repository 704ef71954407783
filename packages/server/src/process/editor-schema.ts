import { readFile, stat, writeFile } from 'node:fs/promises';
import type { HomePaths } from '../kernel/home-paths.ts';

/** Copies the JSON Schema of config.yaml, with which editors complete and check it, next to it, unless that of this version is there. */
export async function placeEditorSchema({ configSchemaFile: target }: Pick<HomePaths, 'configSchemaFile'>): Promise<void> {
  // Running from sources, it is among the generated documents.
  const folder = import.meta.url.endsWith('.ts') ? '../../../../docs/reference/' : './';
  const source = new URL(`${folder}config.schema.json`, import.meta.url);
  const [own, there] = await Promise.all([stat(source), stat(target).catch(() => undefined)]);
  if (there?.size !== own.size || there.mtimeMs < own.mtimeMs) await writeFile(target, await readFile(source), { mode: 0o600 });
}
