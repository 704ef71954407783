import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as z from 'zod';
import { root } from './lib/daemon.ts';
import type { WrongClockLoad, WrongClockReport } from './lib/wrong-clock.ts';

const Report = z.object({ repeats: z.number(), wrong: z.array(z.string()) });
const Said = z.union([Report, z.object({ failed: z.string() })]);

/**
 * One start with the clock years wrong: `/health` names the clock, nothing is deleted by age, pending approvals stay pending, and
 * repeats, then or once the clock is right, do not run again. The clock is injected.
 */
export async function proveWrongClock({ broken, ...load }: WrongClockLoad & { readonly broken?: string }): Promise<WrongClockReport> {
  const { PATH, HOME } = process.env;
  const fault = broken === undefined ? {} : { NODE_OPTIONS: `--import="${pathToFileURL(join(root, 'proving/broken', `${broken}.ts`)).href}"` };
  const child = fork(join(import.meta.dirname, 'lib/wrong-clock-process.ts'), [], {
    env: { PATH, HOME, ...fault },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  try {
    await once(child, 'message');
    const answer = Promise.race([once(child, 'message'), once(child, 'exit').then(([code]) => [{ failed: `the process ended with ${code}` }])]);
    child.send(load);
    const said = Said.parse((await answer)[0]);
    // A build that does not even run proves nothing.
    if ('failed' in said) throw new Error(said.failed);
    return said;
  } finally {
    child.kill('SIGKILL');
  }
}
