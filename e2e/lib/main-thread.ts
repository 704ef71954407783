import type { BrowserContext, Page } from 'playwright-core';
import * as z from 'zod';

const Trace = z.object({
  traceEvents: z.array(
    z.looseObject({ name: z.string(), ph: z.string(), pid: z.number(), tid: z.number(), tdur: z.number().optional(), args: z.unknown().optional() }),
  ),
});

const ThreadName = z.object({ name: z.string() });

/**
 * Returns the longest task of the page's main thread while `run` runs, in milliseconds of CPU time: wall time would
 * include other load on the machine.
 */
export async function longestTask(
  context: BrowserContext,
  page: Page,
  run: () => Promise<void>,
): Promise<{ readonly longestMs: number; readonly tasks: number }> {
  const session = await context.newCDPSession(page);
  await session.send('Tracing.start', {
    transferMode: 'ReturnAsStream',
    traceConfig: { includedCategories: ['toplevel', '__metadata', 'disabled-by-default-devtools.timeline'], excludedCategories: ['*'] },
  });
  await run();
  // The last task of the page answers before it ends, and a trace that ends sooner does not hold it: another task comes after it.
  await page.evaluate(() => undefined);
  const ended = new Promise<string>((resolve) => session.once('Tracing.tracingComplete', ({ stream }) => resolve(stream ?? '')));
  await session.send('Tracing.end');
  const handle = await ended;
  let text = '';
  for (;;) {
    const { data, eof } = await session.send('IO.read', { handle });
    text += data;
    if (eof) break;
  }
  await session.send('IO.close', { handle });
  await session.detach();
  const { traceEvents } = Trace.parse(JSON.parse(text));
  const mains = new Set(
    traceEvents.flatMap(({ name, pid, tid, args }) => {
      const thread = ThreadName.safeParse(args);
      return name === 'thread_name' && thread.success && thread.data.name === 'CrRendererMain' ? [`${pid} ${tid}`] : [];
    }),
  );
  const durations = traceEvents.flatMap(({ name, pid, tid, tdur }) =>
    tdur !== undefined && mains.has(`${pid} ${tid}`) && name.endsWith('RunTask') ? [tdur / 1000] : [],
  );
  return { longestMs: Math.max(0, ...durations), tasks: durations.length };
}
