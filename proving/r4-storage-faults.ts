import { cp } from 'node:fs/promises';
import { freePort } from '@gatehouse/testkit/free-port';
import { type Daemon, logOf, pause, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { lookForAcked, startWriters } from './lib/kept-writes.ts';
import { proofConfig, startEchoProvider } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';
import { type SqlFault, sqlHook } from './lib/sql-hook.ts';

/**
 * R4: one storage call fails, the n-th since the start of the process. Nothing is damaged, acknowledged writes exist,
 * and the daemon keeps running, or exits with a code and a message and can start again.
 */
export interface R4Report {
  /** Faults that happened: before the daemon was ready, and while clients wrote. */
  readonly early: number;
  readonly late: number;
  /** Starts that were refused. */
  readonly refusedStarts: number;
  readonly acked: number;
  readonly refused: number;
  readonly wrong: readonly string[];
}

const codes = ['EIO', 'ENOSPC', 'BUSY'] as const;
/** Writes of each kind; the last counted calls come before these are done. */
const most = 60;

export async function proveStorageFaults(options: {
  /** Which call fails, each in a separate daemon. */
  readonly calls: readonly number[];
  /** Counts only commits, and lets so many consecutive ones fail. */
  readonly commits?: number;
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}): Promise<R4Report> {
  const report = { early: 0, late: 0, refusedStarts: 0, acked: 0, refused: 0, wrong: [] as string[] };
  const provider = await startEchoProvider();
  const template = await makeHome();
  try {
    await writeConfig(template, proofConfig(provider.url));
    await (await startDaemon({ home: template, port: await freePort() })).stop();
    for (const [index, n] of options.calls.entries()) {
      const fault: SqlFault = {
        n,
        code: codes[n % codes.length] ?? 'EIO',
        ...(options.commits !== undefined && { only: 'COMMIT', times: options.commits }),
      };
      const home = await makeHome();
      try {
        await cp(template, home, { recursive: true });
        await failOnce(home, fault, options.broken, report);
      } finally {
        await removeHome(home);
      }
      if (index % 50 === 49) options.progress?.(`R4: ${index + 1} faults, ${report.acked} acknowledged, ${report.wrong.length} wrong`);
    }
    return report;
  } finally {
    await provider.close();
    await removeHome(template);
  }
}

type Counted = { -readonly [Key in keyof R4Report]: R4Report[Key] } & { wrong: string[] };

async function failOnce(home: string, fault: SqlFault, broken: string | undefined, report: Counted): Promise<void> {
  const say = (fact: string): void => void report.wrong.push(`${fault.code} in call ${fault.n}: ${fact}`);
  const start = { home, port: await freePort(), ...(broken !== undefined && { broken }) };
  let daemon: Daemon;
  try {
    daemon = await startDaemon({ ...start, ...sqlHook({ fault }) });
  } catch (error) {
    report.early += 1;
    report.refusedStarts += 1;
    const problem = uncleanStart(String(error));
    if (problem !== undefined) say(problem);
    await startDaemon(start).then(
      (again) => again.stop(),
      (again: unknown) => say(`it does not start any more: ${String(again)}`),
    );
    return;
  }
  try {
    const happened = (): boolean => daemon.stderr().includes('storage fault: ');
    if (happened()) report.early += 1;
    else report.late += 1;
    let after = 0;
    const writers = startWriters(daemon, (asked) => asked < most && !(happened() && (after += 1) > 8));
    await writers.done;
    report.acked += writers.acked.size;
    report.refused += writers.refused;
    if (!happened()) say(`the fault never came\n${logOf(daemon)}`);
    for (const line of writers.broken.slice(0, 3)) say(line);
    const trouble = await recovery(daemon);
    if (trouble !== undefined) say(trouble);
    await daemon.kill();
    for (const line of lookForAcked(home, writers.acked)) say(line);
  } finally {
    await daemon.kill();
  }
}

/** Returns why a start did not end cleanly: a signal, or an uncaught error. */
function uncleanStart(message: string): string | undefined {
  if (!/the daemon ended with \d+ before/.test(message)) return `no exit with a code: ${message}`;
  return /Node\.js v\d|Uncaught|UnhandledPromise/.test(message) ? `an uncaught error: ${message}` : undefined;
}

/** Returns what is wrong when the daemon does not answer, or accepts no writes, five seconds after the fault. */
async function recovery(daemon: Daemon): Promise<string | undefined> {
  let last = '';
  for (const until = performance.now() + 5_000; performance.now() < until; await pause(100)) {
    if (daemon.child.exitCode !== null || daemon.child.signalCode !== null) return `it is gone\n${logOf(daemon)}`;
    try {
      await rpcCall(daemon, 'memory.store', { content: `Afterwards ${performance.now()}` }, { timeoutMs: 3_000 });
      return undefined;
    } catch (error) {
      last = String(error);
    }
  }
  return `it takes no writes any more: ${last}`;
}
