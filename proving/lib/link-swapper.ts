import { renameSync, rmSync, symlinkSync, unlinkSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import * as z from 'zod';

/** A thread that repeatedly replaces each of these files and folders by a link and removes it again; reports how often it succeeded. */
const { entries, swaps } = z.object({ entries: z.array(z.object({ path: z.string(), target: z.string() })), swaps: z.int() }).parse(workerData);
const never = new Int32Array(new SharedArrayBuffer(4));
let made = 0;

for (let n = 0; n < swaps; n += 1) {
  const entry = entries[n % entries.length];
  if (entry === undefined) break;
  const { path, target } = entry;
  const away = `${path}-away`;
  if (!tries(() => renameSync(path, away))) rmSync(away, { recursive: true, force: true });
  if (tries(() => symlinkSync(target, path))) made += 1;
  Atomics.wait(never, 0, 0, n % 4);
  tries(() => unlinkSync(path));
  tries(() => renameSync(away, path));
  Atomics.wait(never, 0, 0, n % 3);
}
parentPort?.postMessage(made);

/** The racing caller may have been faster. */
function tries(work: () => void): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}
