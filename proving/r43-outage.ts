import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as z from 'zod';
import { root } from './lib/daemon.ts';
import type { OutageLoad, OutageReport } from './lib/outage.ts';

const Report = z.object({
  ran: z.record(z.string(), z.number()),
  refused: z.number(),
  recoveredAfterMin: z.number(),
  wrong: z.array(z.string()),
});
const Said = z.union([Report, z.object({ failed: z.string() })]);

/** Proves that work accepted while its model provider fails runs when the provider answers again, once each. */
export async function proveOutage({ broken, ...load }: OutageLoad & { readonly broken?: string }): Promise<OutageReport> {
  const { PATH, HOME } = process.env;
  const fault = broken === undefined ? {} : { NODE_OPTIONS: `--import="${pathToFileURL(join(root, 'proving/broken', `${broken}.ts`)).href}"` };
  const child = fork(join(import.meta.dirname, 'lib/outage-process.ts'), [], {
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
