import { lookAtPackages, readPackageSources } from '../tools/packages.ts';
import { root } from './lib/daemon.ts';
import { counts, type ProofOptions, type Proofs, tell } from './lib/proof.ts';
import { proveStartAfterCrash } from './r13-start-after-crash.ts';
import { proveStorageFaults } from './r4-storage-faults.ts';

/** The full forms of what a failing storage, a large database and a long life do, and of what is installed. */
export function storageProofs({ progress }: ProofOptions): Proofs {
  return {
    async r4() {
      const { wrong, ...report } = await proveStorageFaults({ calls: Array.from({ length: 400 }, (_, index) => index + 1), progress });
      tell(wrong.slice(0, 20));
      const broken = await proveStorageFaults({ calls: [15, 25, 35], commits: 8, broken: 'swallowed-error' });
      return {
        promise:
          'A call of the storage that fails damages nothing, and nothing is acknowledged that is not kept; the daemon goes on or ends in words',
        figure: `400 daemons with EIO, ENOSPC or BUSY in the n-th call each: ${report.refusedStarts} starts refused in words and made good by the next one, ${report.late} faults under load: ${report.acked} acknowledged, ${report.refused} refused, ${wrong.length} wrong`,
        caught: `errors swallowed: ${broken.wrong.length} of ${broken.acked} acknowledged wrong`,
        good: wrong.length === 0 && report.late > 300 && broken.wrong.length > 0,
      };
    },
    async r13() {
      const { wrong, checks, scans, ...report } = await proveStartAfterCrash({ megabytes: 1024, kills: 5 });
      tell([...wrong, ...checks, ...scans]);
      const broken = await proveStartAfterCrash({ megabytes: 1024, kills: 1, broken: 'check-at-start' });
      const slowestMs = Math.max(...report.readyMs);
      return {
        promise: 'After a kill under load the daemon is ready again within 3 s, whatever its database holds',
        figure: `${report.megabytes} MiB: ready after ${report.readyMs.join(', ')} ms (with an empty home ${report.emptyReadyMs}); of ${report.statements} statements before it ${checks.length} check the database and ${scans.length} read a whole table; ${wrong.length} wrong`,
        caught: `whole database checked first: ready after ${broken.readyMs.join(', ')} ms, ${broken.checks.length} checks`,
        good: wrong.length + checks.length + scans.length === 0 && slowestMs < 3_000 && broken.checks.length > 0,
      };
    },
    async r42() {
      const sources = readPackageSources(root);
      const { wrong, ...report } = lookAtPackages(sources);
      tell(wrong);
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
