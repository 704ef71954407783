import { printFindings, type ProofOptions, type Proofs } from './lib/proof.ts';
import { proveReplays } from './r28-replays.ts';
import { ackWithinMs, proveHookLatency } from './r29-hook-latency.ts';

/** The full forms of the proofs on webhooks. */
export function hookProofs({ seed }: ProofOptions): Proofs {
  return {
    async r28() {
      const report = await proveReplays({ honest: 150, forgeries: 5_000, seed });
      const faults = [...report.executed, ...report.unalarmed, ...report.accepted];
      printFindings(faults.slice(0, 20));
      const broken = await proveReplays({ honest: 60, forgeries: 0, seed, broken: 'unsigned-timestamp-trust' });
      return {
        promise: 'A repeated webhook starts no second turn unnoticed, and no forged one is accepted',
        figure: `${report.honest} webhooks sent again ${report.replays} times: ${report.executed.length} executed against their mode, ${report.unalarmed.length} unseen; ${report.forgeries} forgeries: ${report.accepted.length} accepted; seed ${seed}`,
        caught: `unsigned timestamps are trusted: ${broken.unalarmed.length} replays unnoticed`,
        good: faults.length === 0 && broken.unalarmed.length > 0,
      };
    },
    async r29() {
      const report = await proveHookLatency({ hooks: 1_000, perSecond: 50 });
      const broken = await proveHookLatency({ hooks: 50, perSecond: 50, broken: 'await-the-turn' });
      return {
        promise: 'A webhook is answered immediately while fifty turns run',
        figure: `${report.hooks} webhooks during ${report.running} turns: answered after ${report.p50Ms} ms (median), ${report.p99Ms} ms (p99), ${report.maxMs} ms (max); ${report.refused.length} refused`,
        caught: `the answer waits for the turn: p99 ${broken.p99Ms} ms`,
        good: report.refused.length === 0 && report.running === 50 && report.p99Ms < ackWithinMs && broken.p99Ms > ackWithinMs,
      };
    },
  };
}
