import { containersMissing, proveEndlessProvider, proveTwoContainers } from './exhaustion.ts';
import { mediaDiskMissing, proveFullMediaDisk } from './full-disk-media.ts';
import { printFindings, type ProofOptions, type Proofs } from './lib/proof.ts';
import { proveReplacedData } from './replaced-data.ts';
import { proveReplacedProgram } from './replaced-program.ts';
import { mountMissing, proveFewDescriptors, proveFullDisk } from './scarcity.ts';

/** The full forms of the proofs on resources that run out, and on two daemons. */
export function exhaustionProofs(_options: ProofOptions): Proofs {
  return {
    async endless() {
      const { wrong, ...report } = await proveEndlessProvider({ megabytes: 600 });
      printFindings(wrong);
      const broken = await proveEndlessProvider({ megabytes: 600, broken: 'no-answer-bound' });
      return {
        promise: 'Three streams of 600 MB do not hurt a daemon with a heap of 1 GB',
        figure: `${report.sentMegabytes} MB taken from the provider, at most ${report.peakMegabytes} MB resident: ${wrong.length} wrong`,
        caught: `answers without limit: ${broken.wrong.length} wrong, ${broken.peakMegabytes} MB resident`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async containers() {
      const promise = 'A second daemon on the same home is refused in another container too';
      const missing = containersMissing();
      if (missing !== undefined) return { promise, figure: `not run: ${missing}`, caught: '-', good: false };
      const { wrong } = await proveTwoContainers();
      printFindings(wrong);
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
      printFindings(wrong);
      const broken = await proveFewDescriptors({ sockets: 400, broken: 'no-descriptor-cap' });
      return {
        promise:
          'Four hundred idle sockets under a limit of 256 descriptors do not delay connected clients; connections beyond the limit are refused immediately',
        figure: `${wrong.length} wrong`,
        caught: `connections without limit: ${broken.wrong.length} wrong`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async data() {
      const { wrong, ...report } = await proveReplacedData({ jobs: true });
      printFindings(wrong);
      const broken = await proveReplacedData({ jobs: true, broken: 'blind-to-replaced-files' });
      return {
        promise: 'Nothing is acknowledged into files of data/ that were moved or replaced; work waits and runs once',
        figure: `${report.acked} acknowledged, ${report.refused} refused: ${wrong.length} wrong`,
        caught: `no check of the files: ${broken.wrong.length} wrong`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async program() {
      const { wrong, ...report } = await proveReplacedProgram({ jobs: true });
      printFindings(wrong);
      const broken = await proveReplacedProgram({ jobs: true, broken: true });
      return {
        promise: 'A daemon whose dist/ is removed says so for each missing file, and work waits for the restart',
        figure: `${report.asked} requests, ${report.lacking} answered with the reason: ${wrong.length} wrong`,
        caught: `a missing file is reported as another fault: ${broken.wrong.length} wrong`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async disk() {
      const promise = 'A full disk is reported, at a start too, reads continue, and the daemon recovers when space is free';
      const missing = mountMissing();
      if (missing !== undefined) return { promise, figure: `not run: ${missing}`, caught: '-', good: false };
      const { wrong } = await proveFullDisk();
      printFindings(wrong);
      const broken = await proveFullDisk({ broken: 'blind-to-full-disk' });
      return {
        promise,
        figure: `${wrong.length} wrong`,
        caught: `a full disk goes unnoticed: ${broken.wrong.length} wrong`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async 'disk-media'() {
      const promise =
        'On a full disk downloads, pictures, PDF files, recordings of browsers, speech, images, uploads and knowledge folders name the cause, lose nothing acknowledged, leave nothing cut off, and work again when space is free';
      const missing = mediaDiskMissing();
      if (missing !== undefined) return { promise, figure: `not run: ${missing}`, caught: '-', good: false };
      const whole = await proveFullMediaDisk({ filesOnly: false });
      const files = await proveFullMediaDisk({ filesOnly: true });
      const wrong = [...whole.wrong, ...files.wrong];
      printFindings(wrong);
      const broken = await proveFullMediaDisk({ filesOnly: true, broken: 'unnamed-full-disk' });
      return {
        promise,
        figure: `${whole.acked + files.acked} files acknowledged, ${whole.refused + files.refused} attempts refused with the cause, with the databases on the full disk and on another one: ${wrong.length} wrong`,
        caught: `a full disk taken for a defect: ${broken.wrong.length} wrong`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
  };
}
