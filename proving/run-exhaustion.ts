import { containersMissing, proveEndlessProvider, proveTwoContainers } from './exhaustion.ts';
import { type ProofOptions, type Proofs, tell } from './lib/proof.ts';

/** The full forms of what runs out, or is there twice. */
export function exhaustionProofs(_options: ProofOptions): Proofs {
  return {
    async endless() {
      const { wrong, ...report } = await proveEndlessProvider({ megabytes: 600 });
      tell(wrong);
      const broken = await proveEndlessProvider({ megabytes: 600, broken: 'no-answer-bound' });
      return {
        promise: 'Three streams of 600 MB do not hurt a daemon with a heap of 1 GB',
        figure: `${report.sentMegabytes} MB taken from the provider, at most ${report.peakMegabytes} MB resident: ${wrong.length} wrong`,
        caught: `answers without bound: ${broken.wrong.length} wrong, ${broken.peakMegabytes} MB resident`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async containers() {
      const promise = 'A second daemon on the same home is refused in another container too';
      const missing = containersMissing();
      if (missing !== undefined) return { promise, figure: `not run: ${missing}`, caught: '-', good: false };
      const { wrong } = await proveTwoContainers();
      tell(wrong);
      const broken = await proveTwoContainers({ broken: 'pid-lock' });
      return {
        promise,
        figure: `${wrong.length} wrong`,
        caught: `a lock that is a process id: ${broken.wrong.length} wrong`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
  };
}
