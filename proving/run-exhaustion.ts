import { containersMissing, proveEndlessProvider, proveTwoContainers } from './exhaustion.ts';
import { type ProofOptions, type Proofs, tell } from './lib/proof.ts';
import { proveReplacedData } from './replaced-data.ts';
import { proveReplacedProgram } from './replaced-program.ts';
import { mountMissing, proveFewDescriptors, proveFullDisk } from './scarcity.ts';

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
    async descriptors() {
      const { wrong } = await proveFewDescriptors({ sockets: 400 });
      tell(wrong);
      const broken = await proveFewDescriptors({ sockets: 400, broken: 'no-descriptor-cap' });
      return {
        promise:
          'Four hundred idle sockets under a limit of 256 descriptors keep nobody from being answered who is connected; who comes beyond is refused at once',
        figure: `${wrong.length} wrong`,
        caught: `connections without bound: ${broken.wrong.length} wrong`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async data() {
      const { wrong, ...report } = await proveReplacedData({ jobs: true });
      tell(wrong);
      const broken = await proveReplacedData({ jobs: true, broken: 'blind-to-replaced-files' });
      return {
        promise: 'Nothing is acknowledged into files of data/ that were moved away or replaced; work waits and runs once',
        figure: `${report.acked} acknowledged, ${report.refused} refused: ${wrong.length} wrong`,
        caught: `nobody looks at the files: ${broken.wrong.length} wrong`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async program() {
      const { wrong, ...report } = await proveReplacedProgram({ jobs: true });
      tell(wrong);
      const broken = await proveReplacedProgram({ jobs: true, broken: true });
      return {
        promise: 'A daemon whose dist/ is removed says so for each part that it lacks, and work waits for the restart',
        figure: `${report.asked} requests, ${report.lacking} answered with the reason: ${wrong.length} wrong`,
        caught: `a missing part is taken for another fault: ${broken.wrong.length} wrong`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async disk() {
      const promise = 'A full disk is told, at a start too, reads go on, and it is over once there is room';
      const missing = mountMissing();
      if (missing !== undefined) return { promise, figure: `not run: ${missing}`, caught: '-', good: false };
      const { wrong } = await proveFullDisk();
      tell(wrong);
      const broken = await proveFullDisk({ broken: 'blind-to-full-disk' });
      return {
        promise,
        figure: `${wrong.length} wrong`,
        caught: `a refusal of the disk that nobody notices: ${broken.wrong.length} wrong`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
  };
}
