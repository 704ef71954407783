import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { readReport, reportVariable } from '../tools/run-report.ts';
import { root } from './lib/daemon.ts';
import { makeHome, removeHome } from './lib/home.ts';
import { namespaceMissing } from './lib/namespace.ts';
import { counts, printFindings, type ProofOptions, type Proofs } from './lib/proof.ts';
import { proveStalledReaders } from './r16-stalled-readers.ts';
import { proveSlowLinks } from './r17-slow-links.ts';
import { faultsOf, proveOverload } from './r19-overload.ts';
import { isFair, proveFairness } from './r20-fairness.ts';

/** The full forms of the proofs on many clients: those that stop reading, slow lines, overload, one greedy client. */
export function loadProofs({ seed, progress }: ProofOptions): Proofs {
  return {
    async rig() {
      const dir = await makeHome();
      const path = join(dir, 'report.json');
      const parameters = [
        'node_modules/vitest/vitest.mjs',
        'run',
        '--project',
        'scenarios',
        '--reporter=default',
        '--reporter=./tools/run-report.ts',
      ];
      const { status } = spawnSync(process.execPath, parameters, { cwd: root, stdio: 'inherit', env: { ...process.env, [reportVariable]: path } });
      const report = readReport(path);
      await removeHome(dir);
      const failures = report === undefined ? ['no report'] : [...report.files.flatMap((file) => file.failures), ...report.errors];
      printFindings(failures);
      return {
        promise: 'The benchmark calls a build slow that is, in its longest scenarios',
        figure: `webhooks, start and idle agents, due jobs, sub-agents, pages: ${failures.length} not as they should be`,
        caught: `slow builds of each: ${status === 0 ? 'missed their goals' : 'not all caught'}`,
        good: status === 0 && failures.length === 0,
      };
    },
    async r16() {
      const report = await proveStalledReaders({ warmMs: 15_000, readersMs: 16_000, turnsMs: 38_000 });
      printFindings(report.failed);
      const broken = await proveStalledReaders({ readersMs: 15_000, turnsMs: 0, broken: 'no-reader-cap' });
      const { cutMs, grown, turnsGrown, resumed } = report;
      const inTime = (ms: number | undefined, limitMs: number): boolean => ms !== undefined && ms <= limitMs;
      return {
        promise:
          'Clients that stop reading cost at most 16 MiB, are cut in time and miss nothing when they reconnect; other clients are not affected',
        figure: `${report.eventsPerSecond} events a second: event stream cut after ${cutMs.events} ms, socket after ${cutMs.socket} ms, endless /v1 stream after ${cutMs.v1} ms, /api/chat/stream after ${cutMs.chat} ms; held ${grown.heldMb} MiB more, with the endless turns ${turnsGrown?.heldMb} (resident ${grown.rssMb} and ${turnsGrown?.rssMb}); age of events with others, p99, ${report.beforeP99Ms} ms before and ${report.meanwhileP99Ms} ms meanwhile; ${resumed.events} events to the one that came back, ${resumed.missing} missing, ${resumed.gaps} gaps; ${report.failed.length} turns failed`,
        caught: `no limit on the buffer of a reader: cut after ${broken.cutMs.events ?? 'more than 15000'} ms, held ${broken.grown.heldMb} MiB more`,
        good:
          report.failed.length === 0 &&
          inTime(cutMs.events, 15_000) &&
          inTime(cutMs.socket, 15_000) &&
          inTime(cutMs.v1, 35_000) &&
          inTime(cutMs.chat, 35_000) &&
          grown.heldMb <= 16 &&
          (turnsGrown?.heldMb ?? Infinity) <= 16 &&
          resumed.missing === 0 &&
          report.meanwhileP99Ms <= 2 * report.beforeP99Ms + 25 &&
          broken.cutMs.events === undefined &&
          broken.grown.heldMb > 16,
      };
    },
    async r17() {
      const promise = 'A steady reader is kept, at 64 kB a second and 300 ms';
      const missing = namespaceMissing();
      if (missing !== undefined) return { promise, figure: `not run: ${missing}`, caught: '-', good: false };
      const report = await proveSlowLinks({ readers: 100, forMs: 60_000 });
      const broken = await proveSlowLinks({ readers: 100, forMs: 2_000, broken: 'cut-at-high-water' });
      return {
        promise,
        figure: `${report.readers} readers, 60 s, ${Math.round(report.bytesEach / 1024)} KiB each in bursts, up to ${report.behindMs} ms behind: ${report.cut} cut, ${report.incomplete} did not get everything`,
        caught: `cut at the first full socket: ${broken.cut} of ${broken.readers} cut`,
        good: report.cut === 0 && report.incomplete === 0 && broken.cut > 0,
      };
    },
    async r19() {
      const report = await proveOverload({ forMs: 30_000, seed });
      const faults = faultsOf(report);
      printFindings(faults);
      const broken = faultsOf(await proveOverload({ forMs: 2_000, looks: 1, seed, broken: 'unbounded-queue' }));
      const { statuses, loaded, alone, refused, health } = report;
      return {
        promise: 'At ten times its capacity the daemon accepts what it can do in time, refuses the rest immediately and recovers within 2 s',
        figure: `capacity ${report.capacity} turns a second, ${report.offered} requested, 30 s: ${counts(statuses)}; accepted p99 ${loaded.p99Ms} ms (alone ${alone.p99Ms}), refused p99 ${refused.p99Ms} ms; /health ${health.count} times, ${health.bad.length} bad, p99 ${health.p99Ms} ms; well again after ${report.recoveryMs} ms, resident memory ${report.grownMb} MiB more at its most; seed ${seed}`,
        caught: `no limit on the queue: ${broken.join('; ')}`,
        good: faults.length === 0 && broken.length > 0,
      };
    },
    async r20() {
      const report = await proveFairness({ turns: 200, rounds: 1, clients: 600, seed });
      const [round] = report.rounds;
      printFindings(round?.flooded.failed ?? []);
      const broken = await proveFairness({ turns: 5, rounds: 1, clients: 300, seed, broken: 'fifo-lanes' });
      const [late] = broken.rounds;
      progress(`R20: ${report.flood.answered} turns of the flood answered, ${report.flood.refused} refused`);
      return {
        promise: 'The requests of one principal do not delay another one: within twice the time that it takes alone',
        figure: `${report.flood.clients} clients of one token, ${round?.idle.turns} turns of another: p50 ${round?.flooded.p50Ms} ms (alone ${round?.idle.p50Ms}), p99 ${round?.flooded.p99Ms} ms (alone ${round?.idle.p99Ms}), ${round?.flooded.failed.length} refused; of the flood ${report.flood.answered} answered and ${report.flood.refused} refused; seed ${seed}`,
        caught: `served in the order of arrival: p50 ${late?.flooded.p50Ms} ms (alone ${late?.idle.p50Ms}), ${late?.flooded.failed.length} refused`,
        good: isFair(report) && !isFair(broken),
      };
    },
  };
}
