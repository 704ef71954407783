import { takeOverMs } from './lib/nodes.ts';
import { printFindings, type ProofOptions, type Proofs } from './lib/proof.ts';
import { proveTakeoverFrozen } from './takeover-frozen.ts';
import { proveTakeoverKilled } from './takeover-killed.ts';

/** The full forms of the proofs of two daemons on one PostgreSQL. */
export function nodeProofs({ seed, progress }: ProofOptions): Proofs {
  return {
    async takeover() {
      const { wrong, ...report } = await proveTakeoverKilled({
        rounds: 30,
        load: { turns: 50, items: 200, graphs: 20, jobs: 20 },
        seed,
        withinMs: takeOverMs,
        progress,
      });
      const frozen = await proveTakeoverFrozen({ frozenMs: 30_000 });
      printFindings([...wrong, ...frozen.wrong]);
      const broken = await proveTakeoverFrozen({ frozenMs: 0, broken: 'no-lease-fence' });
      return {
        promise:
          'A standby takes over from a killed or frozen daemon within 15 s, continues everything acknowledged once, and nothing of the other one is kept',
        figure: `30 kills: ${report.acknowledged} acknowledged, ${report.lost} lost, ${report.doubled} doubled, ready after ${report.slowestMs} ms at most; frozen for 30 s: ${frozen.late} late writes, ${wrong.length + frozen.wrong.length} wrong; seed ${seed}`,
        caught: `fences not compared: ${broken.wrong.length} faults`,
        good: wrong.length + frozen.wrong.length + report.lost + report.doubled === 0 && report.acknowledged > 0 && broken.wrong.length > 0,
      };
    },
  };
}
