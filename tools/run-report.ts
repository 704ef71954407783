import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Reporter, TestModule, Vitest } from 'vitest/node';
import * as z from 'zod';

const Report = z.object({
  files: z.array(z.object({ file: z.string(), ms: z.number(), failures: z.array(z.string()) })),
  /** Errors outside of every file. */
  errors: z.array(z.string()),
});
/** What a run of test files returned; paths are relative to the root. `failures` has one line for each failed test or unhandled error. */
export type RunReport = z.output<typeof Report>;

/** Environment variable with the path of the report. */
export const reportVariable = 'GATEHOUSE_TEST_REPORT';

/** Returns the report of the last run that wrote there; undefined when there is none or it was cut off. */
export function readReport(path: string): RunReport | undefined {
  try {
    return Report.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return undefined;
  }
}

type UnhandledErrors = Parameters<NonNullable<Reporter['onTestRunEnd']>>[1];

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? '';

function failuresOf(module: TestModule): string[] {
  const failures = module.errors().map(({ message }) => firstLine(message));
  for (const test of module.children.allTests('failed')) failures.push(`${test.fullName}: ${firstLine(test.result().errors?.[0]?.message ?? '')}`);
  for (const suite of module.children.allSuites())
    for (const { message } of suite.errors()) failures.push(`${suite.fullName}: ${firstLine(message)}`);
  // Such as a file whose process crashed.
  return failures.length > 0 || ['passed', 'skipped'].includes(module.state()) ? failures : ['did not run to its end'];
}

/** A reporter of vitest for `tools/test.ts`. Its own JSON report leaves out unhandled errors, which fail a run too. */
export default class implements Reporter {
  #root = '';

  onInit({ config }: Vitest): void {
    this.#root = config.root;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: UnhandledErrors): void {
    const path = process.env[reportVariable];
    if (path === undefined) return;
    const files = modules.map((module) => ({ file: module.relativeModuleId, ms: module.diagnostic().duration, failures: failuresOf(module) }));
    const errors: string[] = [];
    for (const error of unhandled) {
      const { VITEST_TEST_PATH: testPath, name = 'error', cause } = error;
      // The end of a process names its file in the text.
      const text = [error.message, cause?.message ?? []].flat().map(firstLine).join(' ');
      const file = files.find((one) => join(this.#root, one.file) === testPath || text.includes(join(this.#root, one.file)));
      (file?.failures ?? errors).push(`unhandled ${name}: ${text}`);
    }
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify({ files, errors } satisfies RunReport));
  }
}
