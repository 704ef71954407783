import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Writes into a folder a program that is the daemon of the sources with one step of the schema more, which programs of schemas from `compatibleFrom` on can live
 * with; returns its path. The step is added as the list of the steps is loaded, in every thread.
 */
export function writeNewerProgram(parent: string, compatibleFrom: number): string {
  const folder = mkdtempSync(join(parent, 'program-'));
  const registry = new URL('../../../transactions/registry.ts', import.meta.url).href;
  const step = { id: '900-newer', up: ['CREATE TABLE newer (id INTEGER PRIMARY KEY)'], compatibleFrom };
  const hook = join(folder, 'hook.mjs');
  writeFileSync(
    hook,
    `import { registerHooks } from 'node:module';
    registerHooks({ load(url, context, next) {
      const original = ${JSON.stringify(`${registry}?original`)};
      if (url === original) return next(${JSON.stringify(registry)}, context);
      if (url !== ${JSON.stringify(registry)}) return next(url, context);
      const source = \`export * from '\${original}'; import { migrations as known } from '\${original}'; export const migrations = [...known, ${JSON.stringify(step)}];\`;
      return { format: 'module', source, shortCircuit: true };
    } });`,
  );
  const program = join(folder, 'main.mjs');
  const main = new URL('../../../main.ts', import.meta.url).href;
  // Threads read the variable, not the flags of the process.
  writeFileSync(
    program,
    `process.env.NODE_OPTIONS = '--import=${pathToFileURL(hook).href}'; await import('${pathToFileURL(hook).href}'); await import('${main}');`,
  );
  return program;
}
