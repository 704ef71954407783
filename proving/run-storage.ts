import { lookAtPackages, readPackageSources } from '../tools/packages.ts';
import { root } from './lib/daemon.ts';
import { counts, printFindings, type ProofOptions, type Proofs, total } from './lib/proof.ts';
import { proveLoopDelay } from './r14-loop-delay.ts';
import { proveConfigChanges } from './config-changes.ts';
import { growthOf, proveNoGrowth } from './r15-no-growth.ts';
import { proveStartAfterCrash } from './r13-start-after-crash.ts';
import { proveDiskFull, proveTelemetryFull, smallDiskMissing } from './r5-disk-full.ts';
import { proveStorageFaults } from './r4-storage-faults.ts';

/** The full forms of the proofs on failing storage, a large database, a long life, and the installation. */
export function storageProofs({ seed, progress }: ProofOptions): Proofs {
  return {
    async r4() {
      const { wrong, ...report } = await proveStorageFaults({ calls: Array.from({ length: 400 }, (_, index) => index + 1), progress });
      printFindings(wrong.slice(0, 20));
      const broken = await proveStorageFaults({ calls: [15, 25, 35], commits: 8, broken: 'swallowed-error' });
      return {
        promise:
          'A failing storage call damages nothing, and nothing is acknowledged without being stored; the daemon keeps running or exits with a message',
        figure: `400 daemons with EIO, ENOSPC or BUSY in the n-th call each: ${report.refusedStarts} starts refused with a message and repaired by the next one, ${report.late} faults under load: ${report.acked} acknowledged, ${report.refused} refused, ${wrong.length} wrong`,
        caught: `errors swallowed: ${broken.wrong.length} of ${broken.acked} acknowledged wrong`,
        good: wrong.length === 0 && report.late > 200 && broken.wrong.length > 0,
      };
    },
    async r5() {
      const promise = 'On a full disk the daemon keeps reading, loses nothing that it acknowledged and accepts writes again when space is free';
      const missing = await smallDiskMissing();
      if (missing !== undefined) return { promise, figure: `not run: ${missing}`, caught: '-', good: false };
      const { wrong, ...report } = await proveDiskFull({ forMs: 60_000 });
      printFindings(wrong);
      const broken = await proveDiskFull({ forMs: 2_000, broken: 'swallowed-error' });
      const telemetry = await proveTelemetryFull({ turns: 300 });
      const blind = await proveTelemetryFull({ turns: 30, broken: 'blind-to-full-disk' });
      printFindings(telemetry.wrong);
      return {
        promise,
        figure: `16 MB, full for 60 s: ${report.refused} writes refused, ${report.readOnly} of ${report.looks} checks reported it; ${report.acked} acknowledged in all; writes again ${report.recoveredMs} ms after space was free; ${wrong.length} wrong; the disk of events and traces alone full: ${telemetry.turns} turns answered and kept, their traces stored once there is space: ${telemetry.wrong.length} wrong`,
        caught: `errors swallowed: ${broken.wrong.length} of ${broken.acked} acknowledged wrong; a full disk of traces goes unnoticed: ${blind.wrong.length} wrong`,
        good:
          [...wrong, ...telemetry.wrong].length === 0 &&
          report.refused > 0 &&
          report.readOnly > 0 &&
          broken.wrong.length > 0 &&
          blind.wrong.length > 0,
      };
    },
    async config() {
      const { wrong, ...report } = await proveConfigChanges({ patches: 300, seed, progress });
      printFindings(wrong);
      const inPlace = await proveConfigChanges({ patches: 20, seed, broken: 'config-in-place', only: 'before the rename' });
      const after = await proveConfigChanges({ patches: 20, seed, broken: 'config-row-after-file', only: 'before the version' });
      return {
        promise:
          'Changes of config.yaml by calls and by hand survive kills between their steps: the daemon always starts, the history is linear, a rollback restores the bytes',
        figure: `${report.patches} random patches, ${report.edits} edits by hand, ${report.rollbacks} rollbacks, ${report.refused} refused, killed ${total(report.kills)} times (${counts(report.kills)}): ${report.versions} versions, ${wrong.length} wrong; seed ${seed}`,
        caught: `written in place: ${inPlace.wrong.length} wrong; version after the file: ${after.wrong.length} wrong`,
        good: wrong.length === 0 && total(report.kills) > 20 && inPlace.wrong.length > 0 && after.wrong.length > 0,
      };
    },
    async r13() {
      const { wrong, checks, scans, ...report } = await proveStartAfterCrash({ megabytes: 1024, kills: 5 });
      printFindings([...wrong, ...checks, ...scans]);
      const broken = await proveStartAfterCrash({ megabytes: 1024, kills: 1, broken: 'check-at-start' });
      const stale = await proveStartAfterCrash({ megabytes: 8, kills: 0, broken: 'statistics-at-stop' });
      const slowestMs = Math.max(...report.readyMs);
      return {
        promise: 'After a kill under load the daemon is ready again within 3 s and its first turns read no whole table, whatever its database holds',
        figure: `${report.megabytes} MiB: ready after ${report.readyMs.join(', ')} ms (with an empty home ${report.emptyReadyMs}); of ${report.statements} statements of the start and the first turns ${checks.length} check the database and ${scans.length} read a whole table; ${wrong.length} wrong`,
        caught: `whole database checked first: ready after ${broken.readyMs.join(', ')} ms, ${broken.checks.length} checks; statistics made at a stop: ${stale.scans.length} statements read a whole table`,
        good: wrong.length + checks.length + scans.length === 0 && slowestMs < 3_000 && broken.checks.length > 0 && stale.scans.length > 0,
      };
    },
    async r14() {
      const soak = { streams: 100, conversations: 200, watched: false };
      const { failed, loopMs, ...report } = await proveLoopDelay({ ...soak, forMs: 300_000 });
      printFindings(failed.slice(0, 20));
      const broken = await proveLoopDelay({ ...soak, forMs: 5_000, broken: 'query-on-main' });
      return {
        promise: 'The storage never delays the event loop: 99.9 % of delays below 50 ms, none above 200',
        figure: `5 min, ${soak.streams} streams at once: ${report.streams} streams, ${report.searches} searches, ${report.backups} backups, ${report.deletions} deletions, ${failed.length} failed; delay p99.9 ${Math.round(loopMs.p999)} ms, at most ${Math.round(loopMs.max)} ms`,
        caught: `a query on the thread of the loop: p99.9 ${Math.round(broken.loopMs.p999)} ms, at most ${Math.round(broken.loopMs.max)} ms`,
        good: failed.length === 0 && loopMs.p999 < 50 && loopMs.max < 200 && broken.loopMs.p999 > 50,
      };
    },
    async r15() {
      const report = await proveNoGrowth({ requests: 100_000, streams: 2_000, warm: 0.3, settleMs: 20_000 });
      const wrong = growthOf(report);
      printFindings(wrong);
      const broken = growthOf(await proveNoGrowth({ requests: 1_000, streams: 2_000, warm: 0.1, settleMs: 1_000, broken: 'leaking-readers' }));
      const { before, after } = report;
      const grown = after.rssMb / before.rssMb - 1;
      return {
        promise: 'Finished requests and streams leave less than 10 % of memory, no handle and no listener',
        figure: `${report.requests} requests and ${report.streams} streams, heap of 512 MB: resident memory ${Math.round(before.rssMb)} MiB before and ${Math.round(after.rssMb)} after (${(grown * 100).toFixed(1)} %), functions held ${before.closures} and ${after.closures}, handles ${total(before.handles)} and ${total(after.handles)}; ${wrong.length} wrong`,
        caught: `readers that are kept: ${broken.join('; ')}`,
        good: wrong.length === 0 && grown < 0.1 && broken.length > 0,
      };
    },
    async r42() {
      const sources = readPackageSources(root);
      const { wrong, ...report } = lookAtPackages(sources);
      printFindings(wrong);
      const planted = { packages: { 'packages/server': { dependencies: { planted: '1.0.0' } }, 'node_modules/planted': { hasInstallScript: true } } };
      const broken = lookAtPackages({ ...sources, lock: planted });
      return {
        promise:
          'At most 60 packages are always loaded, 200 are in production and 30 in a group on demand; none runs a script, none is known to be bad',
        figure: `${report.always} always loaded, ${report.production} in production, on demand: ${counts(report.groups)}; ${wrong.length} wrong`,
        caught: `a new package with an install script: ${broken.wrong.join('; ')}`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
  };
}
