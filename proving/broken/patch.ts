import { existsSync, writeSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

export interface Fault {
  /** Name of the broken build, written to standard error when the fault is in. */
  readonly name: string;
  /** Module below packages/server/src. */
  readonly module: string;
  /** Exact text of the module and what stands in its place. */
  readonly replace: readonly { readonly from: string; readonly to: string }[];
}

/** What was built in, for the test that looks whether the texts are still there. */
export const built: Fault[] = [];

/**
 * Builds a fault into one module as it is loaded, in every thread (worker threads read `--import` in NODE_OPTIONS). Ends the
 * process when the module or the text is not there any more: a broken build that is whole would prove nothing.
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
        if (source.split(from).length !== 2) fail(`${fault.name}: the text to replace does not stand exactly once in ${fault.module}: ${from}`);
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
