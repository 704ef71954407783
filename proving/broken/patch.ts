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

/** The faults of this process, for the test that checks whether their texts still exist. */
export const built: Fault[] = [];

/**
 * Builds a fault into one module as it is loaded, in every thread (worker threads read `--import` in NODE_OPTIONS). Exits
 * when the module or the text no longer exists: an intact broken build would prove nothing.
 */
export function buildIn(fault: Fault): void {
  built.push(fault);
  const target = new URL(`../../packages/server/src/${fault.module}`, import.meta.url).href;
  if (!existsSync(fileURLToPath(target))) fail(`${fault.name}: there is no module ${fault.module}`);
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

function fail(message: string): never {
  writeSync(2, `${message}\n`);
  process.exit(99);
}
