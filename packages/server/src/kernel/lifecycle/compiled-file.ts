import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire, getCompileCacheDir } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Script } from 'node:vm';

/** The function in which the build wraps a file: parameters of CommonJS, then substitutes for `import.meta.url` and `import()`. */
type Body = (
  exports: object,
  require: NodeJS.Require,
  module: { exports: object },
  filename: string,
  folder: string,
  url: string,
  load: (name: string) => Promise<unknown>,
) => void;

export interface CompiledFile<Exports> {
  readonly exports: Exports;
  /** Keeps the functions that are compiled by now for the next process, unless this one got them from an earlier one. */
  keep(): void;
}

/**
 * Runs a file of the build with the functions that an earlier process compiled. Node's own cache is written before a module runs, so it
 * holds none of the functions that a start calls, and compiling these one by one is a fifth of a start. V8 refuses code that was made
 * from another text, by another version, or under other flags: then the file is compiled again.
 */
export function runCompiled<Exports extends object>(file: string, cacheDir = getCompileCacheDir()): CompiledFile<Exports> {
  // oxlint-disable-next-line house/paths -- the name of a file of the build
  const cacheFile = cacheDir === undefined ? undefined : join(cacheDir, `${basename(file)}.functions`);
  const cachedData = readIfThere(cacheFile);
  // The build leaves ASCII only, which is read fastest like this.
  const script = new Script(readFileSync(file, 'latin1'), { filename: file, ...(cachedData !== undefined && { cachedData }) });
  const module = { exports: {} };
  const body: Body = script.runInThisContext();
  body(module.exports, createRequire(file), module, file, dirname(file), pathToFileURL(file).href, (name) => import(name));
  return {
    exports: module.exports as Exports,
    keep() {
      if (cacheFile !== undefined && (cachedData === undefined || script.cachedDataRejected === true)) write(cacheFile, script.createCachedData());
    },
  };
}

function readIfThere(file: string | undefined): Buffer | undefined {
  try {
    return file === undefined ? undefined : readFileSync(file);
  } catch {
    return undefined;
  }
}

/** Synced before it gets its name: V8 trusts the content, and a loss of power must not leave half of it. */
function write(file: string, data: Buffer): void {
  const draft = `${file}.${process.pid}.new`;
  try {
    const handle = openSync(draft, 'w', 0o600);
    try {
      writeFileSync(handle, data);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    renameSync(draft, file);
  } catch {
    // A program folder that cannot be written makes starts slower, nothing else.
  }
}
