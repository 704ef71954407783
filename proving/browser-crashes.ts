import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { freePort } from '@gatehouse/testkit/free-port';
import { startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { proofConfig, startEchoProvider } from './lib/provider.ts';
import { randomFrom } from './lib/random.ts';
import { rpcCall } from './lib/rpc.ts';

/** Proves that a browser that is killed or stops answering is reported, starts again at the next call, and leaves nothing. */
export interface CrashReport {
  readonly crashes: number;
  /** Longest time from a crash until the call in progress failed, and until a page was open again. */
  readonly slowestMs: { readonly reported: number; readonly again: number };
  readonly wrong: readonly string[];
}

export interface CrashOptions {
  readonly crashes: number;
  readonly seed: number;
  /** Only hangs; every fourth crash is one otherwise. */
  readonly hangs?: boolean;
  /** Files of proving/broken, by name. */
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}

const reportedWithinMs = 10_000;

export async function proveBrowserCrashes({ crashes, seed, hangs = false, broken, progress }: CrashOptions): Promise<CrashReport> {
  const random = randomFrom(seed);
  const provider = await startEchoProvider();
  const home = await makeHome();
  const port = await freePort();
  const wrong: string[] = [];
  const slowestMs = { reported: 0, again: 0 };
  await writeConfig(home, proofConfig(provider.url, { browser: { enabled: true } }));
  const daemon = await startDaemon({ home, port, ...(broken !== undefined && { broken, loadsFaultsLater: true }) });
  const open = () => rpcCall(daemon, 'browser.navigate', { url: 'about:blank' }, { timeoutMs: 120_000 });
  try {
    for (let crash = 1; crash <= crashes; crash += 1) {
      await open();
      if (broken !== undefined && !daemon.stderr().includes(`broken build: ${broken}`)) throw new Error(`the fault ${broken} was not built in`);
      const request = { kind: 'wait', selector: '#never', timeoutMs: 12_000 };
      const step = rpcCall(daemon, 'browser.act', { request }, { timeoutMs: 120_000 }).then(
        (result) => JSON.stringify(result),
        (error: unknown) => String(error),
      );
      await new Promise((resolve) => setTimeout(resolve, random.next() * 200));
      const [main] = browsersOf(home);
      if (main === undefined) throw new Error('there is no browser');
      const crashedAt = performance.now();
      process.kill(main, hangs || crash % 4 === 0 ? 'SIGSTOP' : 'SIGKILL');
      const outcome = await step;
      const reportedMs = Math.round(performance.now() - crashedAt);
      if (!outcome.includes('The browser is gone')) wrong.push(`${crash}: the step ended with ${outcome}`);
      else if (reportedMs > reportedWithinMs) wrong.push(`${crash}: reported after ${reportedMs} ms`);
      if (broken !== undefined) continue;
      const openedAt = performance.now();
      await open().catch((error: unknown) => wrong.push(`${crash}: the next call: ${String(error)}`));
      slowestMs.reported = Math.max(slowestMs.reported, reportedMs);
      slowestMs.again = Math.max(slowestMs.again, Math.round(performance.now() - openedAt));
      if (browsersOf(home).length > 1) wrong.push(`${crash}: two browsers run`);
      if (crash % 10 === 0) progress?.(`browser: ${crash} of ${crashes} crashes, ${wrong.length} wrong`);
    }
    if (broken !== undefined) return { crashes, slowestMs, wrong };
    await rpcCall(daemon, 'browser.stop', {}, { timeoutMs: 60_000 });
    if (existsSync(`${home}/data/browsers/default`)) wrong.push('a profile is left');
    if (browsersOf(home).length > 0) wrong.push('a process is left');
  } finally {
    await daemon.kill();
    await removeHome(home);
    await provider.close();
  }
  return { crashes, slowestMs, wrong };
}

/** Main processes of browsers whose jail has a folder of this home. */
function browsersOf(home: string): number[] {
  return readdirSync('/proc')
    .filter((pid) => {
      try {
        const command = /^\d+$/.test(pid) ? readFileSync(`/proc/${pid}/cmdline`, 'latin1') : '';
        const isMain = command.includes('--remote-debugging-pipe') && !command.includes('--type=') && !/^\S*(?:bwrap|prlimit|node)\0/.test(command);
        return isMain && readFileSync(`/proc/${pid}/mountinfo`, 'utf8').includes(home);
      } catch {
        return false;
      }
    })
    .map(Number);
}
