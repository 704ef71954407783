import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, join, resolve } from 'node:path';
import { type Plugin, transform } from 'esbuild';
import { attachments, bundleDaemon, sourceStamp } from '../../tools/build.mjs';
import { built, type ExportFault, type Fault } from '../broken/patch.ts';
import { brokenBundleAt, root } from './daemon.ts';

const faultFolder = join(root, 'proving/broken');
const resolveFile = createRequire(import.meta.url).resolve;
const original = '?original';
const replaced = '?replaced=';

/**
 * Bundles the daemon with every fault of proving/broken, of which `PROVING_FAULTS` selects some at its start: one from a thousand sources
 * takes five times the processor time. A changed module is in the bundle once for each set of its faults, behind a module that chooses.
 */
export async function bundleBroken(): Promise<string> {
  const names = (await readdir(faultFolder)).filter((name) => name.endsWith('.ts') && !name.startsWith('patch.')).toSorted();
  const texts = await Promise.all([import.meta.filename, ...names.map((name) => join(faultFolder, name))].map((file) => readFile(file)));
  const digest = createHash('sha256').update(sourceStamp());
  for (const text of texts) digest.update('\0').update(text);
  const folder = join(root, 'node_modules/.cache/broken-builds', digest.digest('hex').slice(0, 16));
  const program = join(folder, 'main.js');
  if (existsSync(program)) return program;
  for (const name of names) await import(join(faultFolder, name));
  const draft = `${folder}.${process.pid}`;
  const faults = Map.groupBy(built, ({ module }) => join(root, 'packages/server/src', module));
  const files = await bundleDaemon((named) => choosing(faults, named));
  await mkdir(draft, { recursive: true });
  for (const [name, text] of files) await writeFile(join(draft, name), text);
  for (const [name, source] of Object.entries(attachments)) await copyFile(resolveFile(source), join(draft, name));
  await writeFile(join(draft, '.sources'), basename(folder));
  await mkdir(join(folder, '..'), { recursive: true });
  try {
    await rename(draft, folder);
  } catch {
    // Another run was faster.
    await rm(draft, { recursive: true });
  }
  return program;
}

/** Makes the daemons of this process, and of those that it starts, use the bundle; vitest calls it once for a run. */
export async function setup(): Promise<void> {
  process.env[brokenBundleAt] = await bundleBroken();
}

type FaultsByFile = ReadonlyMap<string, readonly (Fault | ExportFault)[]>;

function choosing(faultsByFile: FaultsByFile, named: (text: string) => string): Plugin {
  return {
    name: 'choosing',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /\?(?:original|replaced=.*)$/ }, ({ path, resolveDir }) => {
        const at = path.indexOf('?');
        return { path: resolve(resolveDir, path.slice(0, at)), suffix: path.slice(at) };
      });
      onLoad({ filter: /packages[\\/]server[\\/]src[\\/].*\.ts$/ }, async ({ path, suffix }) => {
        const faults = faultsByFile.get(path);
        if (faults === undefined) return undefined;
        const text = await readFile(path, 'utf8');
        if (suffix === original) return { contents: named(text), loader: 'ts' };
        if (!suffix.startsWith(replaced)) return { contents: await choiceOf(path, text, faults), loader: 'js' };
        const contents = withFaults(text, faults, suffix.slice(replaced.length).split('+'));
        return contents === undefined ? undefined : { contents: named(contents), loader: 'ts' };
      });
    },
  };
}

/** Returns the text with the named faults; undefined when one of them replaces what another one needs. */
function withFaults(text: string, faults: readonly (Fault | ExportFault)[], names: readonly string[]): string | undefined {
  let changed = text;
  for (const fault of faults) {
    if (!('replace' in fault) || !names.includes(fault.name)) continue;
    for (const { from, to } of fault.replace) {
      if (changed.split(from).length !== 2) return undefined;
      changed = changed.replace(from, () => to);
    }
  }
  return changed;
}

/** Returns a module that exports what the one with the selected faults does. */
async function choiceOf(path: string, text: string, faults: readonly (Fault | ExportFault)[]): Promise<string> {
  const file = `./${basename(path)}`;
  const names = [...new Set(faults.map(({ name }) => name))];
  const byText = names.filter((name) => faults.some((fault) => fault.name === name && 'replace' in fault));
  const sets = setsOf(byText).filter((set) => withFaults(text, faults, set) !== undefined);
  const lost = byText.filter((name) => !sets.some((set) => set.length === 1 && set[0] === name));
  if (lost.length > 0) throw new Error(`${path} no longer has the texts of ${lost.join(', ')}`);
  const changes = faults.flatMap((fault) => ('exports' in fault ? [fault] : []));
  return `import { writeSync } from 'node:fs';
import * as original from '${file}${original}';
${sets.map((set, index) => `import * as replaced${index} from '${file}${replaced}${set.join('+')}';`).join('\n')}
const wanted = (process.env['PROVING_FAULTS'] ?? '').split(',');
const selected = ${JSON.stringify(names)}.filter((name) => wanted.includes(name));
const withText = selected.filter((name) => ${JSON.stringify(byText)}.includes(name)).join('+');
const replaced = { '': original, ${sets.map((set, index) => `'${set.join('+')}': replaced${index}`).join(', ')} };
if (!Object.hasOwn(replaced, withText)) throw new Error('the faults ' + withText + ' exclude each other');
const chosen = { ...replaced[withText] };
${changes
  .map((fault) =>
    Object.entries(fault.exports).map(
      ([name, change]) => `if (selected.includes('${fault.name}')) chosen.${name} = (${String(change)})(chosen.${name});`,
    ),
  )
  .flat()
  .join('\n')}
for (const name of selected) writeSync(2, 'broken build: ' + name + '\\n');
export const { ${(await exportsOf(text)).join(', ')} } = chosen;`;
}

/** Returns every set of some of the names, each in their order. */
function setsOf(names: readonly string[]): readonly (readonly string[])[] {
  return names.reduce<readonly (readonly string[])[]>((sets, name) => [...sets, [name], ...sets.map((set) => [...set, name])], []);
}

/** Returns the names of the values that a module exports. */
async function exportsOf(text: string): Promise<readonly string[]> {
  const { code } = await transform(text, { loader: 'ts', format: 'esm', target: 'node26' });
  const list = /export \{([^}]*)\};\s*$/.exec(code)?.[1] ?? '';
  return list.split(',').flatMap((one) => one.trim().split(' as ').at(-1)?.trim() || []);
}
