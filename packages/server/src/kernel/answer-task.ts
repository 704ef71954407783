import { buffer } from 'node:stream/consumers';

/** Runs the task of this process, which `runInProcess` started, and sends its answer. */
export async function answerTask(run: (input: Buffer<ArrayBuffer>, order: unknown) => Promise<unknown>): Promise<void> {
  // Nothing else stops this process when the daemon is gone.
  process.once('disconnect', () => process.exit());
  process.send?.(await run(await buffer(process.stdin), JSON.parse(process.argv[2] ?? '{}')));
}
