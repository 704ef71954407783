import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { posix, relative, sep } from 'node:path';
import { parseSync } from 'vite';

export interface Import {
  readonly specifier: string;
  readonly line: number;
  readonly typeOnly: boolean;
}

const skippedFolders = new Set(['node_modules', 'dist', '.build', '.git', 'coverage']);

/** Lists every module of the project, relative to `root`. */
export function sourceFiles(root: string): string[] {
  const found: string[] = [];
  const walk = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory() && !skippedFolders.has(entry.name)) walk(path);
      else if (entry.isFile() && /\.tsx?$/.test(entry.name) && !entry.name.endsWith('.d.ts')) found.push(path);
    }
  };
  walk(root);
  return found.map((path) => relative(root, path).split(sep).join('/')).toSorted();
}

/** Every static import, re-export and dynamic import of one module. An import counts as type-only when nothing of it remains at run time. */
export function importsOf(file: string, text: string): Import[] {
  const { module, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
  const at = (offset: number): number => text.slice(0, offset).split('\n').length;
  const found: Import[] = [];
  for (const one of module.staticImports) {
    found.push({
      specifier: one.moduleRequest.value,
      line: at(one.start),
      typeOnly: one.entries.length > 0 && one.entries.every((entry) => entry.isType),
    });
  }
  for (const one of module.staticExports) {
    const from = one.entries.find((entry) => entry.moduleRequest)?.moduleRequest;
    if (from) found.push({ specifier: from.value, line: at(one.start), typeOnly: one.entries.every((entry) => entry.isType) });
  }
  for (const one of module.dynamicImports) {
    const argument = text.slice(one.moduleRequest.start, one.moduleRequest.end);
    const literal = /^(['"`])([^$]*)\1$/.exec(argument)?.[2];
    if (literal !== undefined) found.push({ specifier: literal, line: at(one.start), typeOnly: false });
  }
  return found;
}

const knownExports = new Map<string, Readonly<Record<string, string>>>();

/** Returns the `exports` of a workspace package: "." and others, with their modules. */
export function packageExports(root: string, name: string): Readonly<Record<string, string>> {
  const file = `${root}/packages/${name}/package.json`;
  let found = knownExports.get(file);
  if (found === undefined) {
    const manifest: { readonly exports?: Readonly<Record<string, string>> } = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
    knownExports.set(file, (found = manifest.exports ?? {}));
  }
  return found;
}

/** Returns for each module the modules of the project that it loads, relative to `root`; imports of types load nothing. */
export function moduleGraph(root: string): ReadonlyMap<string, readonly string[]> {
  const resolve = (file: string, specifier: string): string | undefined => {
    if (specifier.startsWith('.')) return posix.normalize(posix.join(posix.dirname(file), specifier));
    const [, name, path = ''] = /^@gatehouse\/([^/]+)(\/.*)?$/.exec(specifier) ?? [];
    const target = name === undefined ? undefined : packageExports(root, name)[`.${path}`];
    return target === undefined ? undefined : posix.join('packages', name ?? '', target);
  };
  return new Map(
    sourceFiles(root).map((file) => [
      file,
      importsOf(file, readFileSync(`${root}/${file}`, 'utf8')).flatMap(({ specifier, typeOnly }) =>
        typeOnly ? [] : (resolve(file, specifier) ?? []),
      ),
    ]),
  );
}
