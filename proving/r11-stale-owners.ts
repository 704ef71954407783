import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as z from 'zod';
import { root } from './lib/daemon.ts';

/** R11: an owner that resumes work of a sub-agent, a graph or a message after its lease expired writes nothing. */
const Report = z.object({
  pauses: z.int(),
  /** Writes that the stale owner attempted. */
  writes: z.int(),
  tried: z.record(z.string(), z.int()),
  wrong: z.array(z.string()),
});
export type R11Report = z.output<typeof Report>;

export async function proveStaleOwners(options: { readonly pauses: number; readonly seed: number; readonly broken?: string }): Promise<R11Report> {
  const faults = options.broken === undefined ? [] : ['--import', pathToFileURL(join(root, 'proving/broken', `${options.broken}.ts`)).href];
  const child = fork(join(import.meta.dirname, 'lib/stale-owner.ts'), [String(options.pauses), String(options.seed)], {
    execArgv: faults,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-4000)));
  try {
    const [report] = await Promise.race([once(child, 'message'), once(child, 'exit').then(() => [undefined])]);
    if (report === undefined) throw new Error(`the owners ended without a report: ${said}`);
    return Report.parse(report);
  } finally {
    child.kill('SIGKILL');
  }
}
