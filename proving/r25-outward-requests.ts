import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import * as z from 'zod';
import { root } from './lib/daemon.ts';

/**
 * R25: whatever address a caller passes, to any feature, and wherever the answer leads, nothing is dialled that is not public.
 * The server runs in a separate process whose sockets and resolver are observed: nothing outside of this machine is dialled.
 */
const R25Report = z.strictObject({
  /** Addresses of the corpus. */
  urls: z.int(),
  /** Calls, by the requesting feature. */
  cells: z.record(z.string(), z.int()),
  /** Forbidden addresses that were dialled, looked up or connected to, and callers that reach nothing at all, each in one line. */
  wrong: z.array(z.string()),
});
export type R25Report = z.output<typeof R25Report>;

export async function proveOutwardRequests(options: {
  /** Status codes of redirects, of five. */
  readonly statuses: number;
  /** Also lets callers with long time-outs wait for an answer that drips. */
  readonly slow?: boolean;
  /** Callers by name; all by default. */
  readonly only?: readonly string[];
  /** Every nth address at each caller, others at the next one; all by default. */
  readonly each?: number;
  readonly broken?: string;
}): Promise<R25Report> {
  const fault = options.broken === undefined ? undefined : join(root, 'proving/broken', `${options.broken}.ts`);
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    [
      ...(fault === undefined ? [] : [`--import=${pathToFileURL(fault).href}`]),
      join(root, 'proving/lib/outward-process.ts'),
      `--statuses=${options.statuses}`,
      ...(options.slow === true ? ['--slow'] : []),
      ...(options.only ?? []).map((name) => `--only=${name}`),
      `--each=${options.each ?? 1}`,
    ],
    { maxBuffer: 64 * 1024 * 1024, timeout: 600_000 },
  );
  if (fault !== undefined && !stderr.includes(`broken build: ${options.broken}`)) throw new Error(`the fault ${options.broken} was not built in`);
  return R25Report.parse(JSON.parse(stdout));
}
