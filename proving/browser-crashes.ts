import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { type Clock, systemClock } from '../packages/server/src/kernel/clock.ts';
import { openBrowsers } from '../packages/server/src/features/environment/browser/testing/open-browsers.ts';
import { openShop } from './lib/shop.ts';
import { randomFrom } from './lib/random.ts';

/** Proves that a browser whose processes are killed or stopped reports it, starts again at the next call, and leaves nothing. */
export interface CrashReport {
  readonly crashes: number;
  /** Longest time from a crash until the call in progress failed or ended, and until a page was open again. */
  readonly slowestMs: { readonly reported: number; readonly again: number };
  readonly wrong: readonly string[];
}

export interface CrashOptions {
  readonly crashes: number;
  readonly seed: number;
  /** Lets every crash be a hang that the daemon does not look for: a harness that notices nothing is worthless. */
  readonly unwatched?: boolean;
  readonly progress?: (line: string) => void;
}

const reportedWithinMs = 10_000;
/** A clock on which the time never comes to ask a silent browser whether it works. */
const withoutChecks: Clock = { ...systemClock, after: (ms, run) => (ms === 4_000 ? () => {} : systemClock.after(ms, run)) };

export async function proveBrowserCrashes({ crashes, seed, unwatched = false, progress }: CrashOptions): Promise<CrashReport> {
  const random = randomFrom(seed);
  await using shop = await openShop();
  const wrong: string[] = [];
  const slowestMs = { reported: 0, again: 0 };
  let base = '';
  {
    await using browsers = await openBrowsers({ dial: shop.dial, ...(unwatched && { processClock: withoutChecks }) });
    base = browsers.base;
    const { signal } = browsers.context;
    for (let crash = 1; crash <= crashes; crash += 1) {
      const session = await browsers.pool.start('default');
      await session.navigate(undefined, shop.url('/'), signal);
      const step = session.act(undefined, { kind: 'wait', textGone: 'Shop', timeoutMs: 30_000 }, browsers.context).then(
        ({ ok, error }) => (ok ? 'done' : `failed: ${error}`),
        (error: unknown) => `failed: ${String(error)}`,
      );
      await new Promise((resolve) => setTimeout(resolve, random.next() * 200));
      // Every fourth one stops answering instead of ending.
      const signalName = crash % 4 === 0 || unwatched ? 'SIGSTOP' : 'SIGKILL';
      const [main] = browserProcesses(base);
      if (main === undefined) throw new Error('there is no browser');
      const begunMs = performance.now();
      process.kill(main, signalName);
      const outcome = await step;
      const reportedMs = performance.now() - begunMs;
      if (!outcome.startsWith('failed')) wrong.push(`${crash}: the step was ${outcome}`);
      if (reportedMs > reportedWithinMs) wrong.push(`${crash}: reported after ${Math.round(reportedMs)} ms`);
      if (unwatched) await session.end('the proof is over');
      await session.gone;
      const againMs = performance.now();
      const next = await browsers.pool.start('default');
      const page = await next.navigate(undefined, shop.url('/terms'), signal);
      if (page.title !== 'Terms') wrong.push(`${crash}: the next page was "${page.title}"`);
      slowestMs.reported = Math.max(slowestMs.reported, Math.round(reportedMs));
      slowestMs.again = Math.max(slowestMs.again, Math.round(performance.now() - againMs));
      if (new Set(browserProcesses(base)).size > 1) wrong.push(`${crash}: two browsers run`);
      if (crash % 10 === 0) progress?.(`browser: ${crash} of ${crashes} crashes, ${wrong.length} wrong`);
    }
    await browsers.pool.stop('default');
    if (existsSync(`${base}/browser/default`)) wrong.push('a profile is left');
    const left = browserProcesses(base);
    if (left.length > 0) wrong.push(`${left.length} processes are left`);
  }
  return { crashes, slowestMs, wrong };
}

/** Main processes of browsers that write their downloads below this folder. */
function browserProcesses(base: string): number[] {
  return readdirSync('/proc')
    .filter((pid) => {
      try {
        const command = /^\d+$/.test(pid) ? readFileSync(`/proc/${pid}/cmdline`, 'latin1') : '';
        return (
          command.includes('--remote-debugging-pipe') &&
          !/^(?:\S*bwrap|\S*node)\0/.test(command) &&
          !command.includes('--type=') &&
          readFileSync(`/proc/${pid}/mountinfo`, 'utf8').includes(base)
        );
      } catch {
        return false;
      }
    })
    .map(Number);
}
