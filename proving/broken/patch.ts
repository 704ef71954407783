import { existsSync, writeSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

export interface Fault {
  /** Name of the broken build, written to standard error when the fault is in. */
  readonly name: string;
  /** Module below packages/server/src. */
  readonly module: string;
  /** Exact text of the module and its replacement. */
  readonly replace: readonly { readonly from: string; readonly to: string }[];
}

/** A fault at a seam: other modules get a changed export. Use it where there is one, as it depends on no text of the program. */
export interface ExportFault {
  readonly name: string;
  readonly module: string;
  /** Returns the changed export for each name. The functions are run in the daemon: they can use nothing from around them. */
  // oxlint-disable-next-line typescript/no-explicit-any -- any export of any module
  readonly exports: Readonly<Record<string, (original: any) => unknown>>;
}

/** The faults of this process, for the test that checks whether their texts and exports still exist. */
export const built: (Fault | ExportFault)[] = [];

/** Changes what a module exports, in every thread. The module itself keeps its own functions. Exits when an export no longer exists. */
export function changeExports(fault: ExportFault): void {
  built.push(fault);
  const target = locate(fault);
  const original = `${target}?original`;
  const changes = Object.entries(fault.exports).map(
    ([name, change]) =>
      `if (!('${name}' in original)) { process._rawDebug(${JSON.stringify(`${fault.name}: ${fault.module} does not export ${name}`)}); process.exit(99); }
      export const ${name} = (${String(change)})(original.${name});`,
  );
  const source = `import * as original from '${original}'; export * from '${original}'; ${changes.join('\n')}`;
  registerHooks({
    load(url, context, nextLoad) {
      if (url === original) return { ...nextLoad(target, context) };
      if (url !== target) return nextLoad(url, context);
      writeSync(2, `broken build: ${fault.name}\n`);
      return { format: 'module', source, shortCircuit: true };
    },
  });
}

/**
 * Builds a fault into one module as it is loaded, in every thread (worker threads read `--import` in NODE_OPTIONS). Exits
 * when the module or the text no longer exists: an intact broken build would prove nothing.
 */
export function buildIn(fault: Fault): void {
  built.push(fault);
  const target = locate(fault);
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (url !== target) return loaded;
      let source = String(loaded.source);
      for (const { from, to } of fault.replace) {
        if (source.split(from).length !== 2) fail(`${fault.name}: the text to replace does not occur exactly once in ${fault.module}: ${from}`);
        source = source.replace(from, () => to);
      }
      writeSync(2, `broken build: ${fault.name}\n`);
      return { ...loaded, source };
    },
  });
}

function locate({ name, module }: Fault | ExportFault): string {
  const { href } = new URL(`../../packages/server/src/${module}`, import.meta.url);
  if (!existsSync(fileURLToPath(href))) fail(`${name}: there is no module ${module}`);
  return href;
}

function fail(message: string): never {
  writeSync(2, `${message}\n`);
  process.exit(99);
}
