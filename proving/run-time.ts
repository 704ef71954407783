import { counts, type ProofOptions, type Proofs, tell, total } from './lib/proof.ts';
import { proveCatchUp } from './r10-catch-up.ts';
import { proveClaimedOnce } from './r7-claimed-once.ts';
import { proveMissed } from './r8-missed.ts';
import { killPoints, proveKilledTurns } from './r6-killed-turns.ts';
import { proveClock } from './r9-clock.ts';

/** The full forms of what happens by the clock. */
export function timeProofs({ seed, progress }: ProofOptions): Proofs {
  return {
    async r6() {
      const { gone, wrong, untold, ...report } = await proveKilledTurns({ rounds: 3, progress });
      tell([...gone, ...wrong, ...untold]);
      const broken = await proveKilledTurns({ points: ['after a tool that runs once'], broken: 'missing-intent', progress });
      return {
        promise: 'A turn of durable work that is killed goes on or is marked unknown and says so; what runs once never runs twice',
        figure: `${report.kills} kills at ${killPoints.length} points: ${report.resumed} resumed, ${report.unknown} marked unknown, ${gone.length} silently gone, ${wrong.length} done twice or not at all, ${untold.length} untold`,
        caught: `no row of intents: ${broken.wrong.length} of ${broken.kills} done twice`,
        good: gone.length + wrong.length + untold.length === 0 && broken.wrong.length > 0,
      };
    },
    async r7() {
      const { wrong, ...report } = await proveClaimedOnce({ jobs: 250, ticks: 40, seed });
      tell(wrong.slice(0, 20));
      const broken = await proveClaimedOnce({ jobs: 25, ticks: 8, seed, broken: 'no-unique-occurrence' });
      return {
        promise: 'Each occurrence of a job is executed once, whoever else claims it and is stopped past its lease',
        figure: `${report.occurrences} occurrences, 4 processes, ${report.stops} stops: ${report.executed} executed, ${wrong.length} wrong; seed ${seed}`,
        caught: `without unique key: ${broken.executed} executions of ${broken.occurrences} occurrences`,
        good: wrong.length === 0 && broken.executed > broken.occurrences,
      };
    },
    async r8() {
      const { wrong, ...report } = await proveMissed({ jobs: 50, seed });
      tell(wrong.slice(0, 20));
      const broken = await proveMissed({ jobs: 10, seed, broken: 'next-run-only' });
      return {
        promise: 'Each time of a job that passes while the daemon is down has a row',
        figure: `${report.jobs} jobs, 3 hours: ${report.missed} times passed, ${wrong.length} wrong; seed ${seed}`,
        caught: `only the next time kept: ${broken.wrong.length} wrong`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async r10() {
      const { wrong, ...report } = await proveCatchUp({ jobs: 200, speed: 60 });
      tell(wrong);
      const broken = await proveCatchUp({ jobs: 20, speed: 60, broken: 'replay-all' });
      return {
        promise: 'What is overdue at a start begins one by one, and none is left out',
        figure: `${report.overdue} overdue jobs: at most ${report.burst} within 25 s, ${report.closestMs} ms apart or more; ${wrong.length} wrong`,
        caught: `replay of all at once: ${broken.burst} within 25 s`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async r9() {
      const { wrong, refused, stepped, ...report } = await proveClock({ cases: 20_000, clocks: 500, seed, progress });
      tell(wrong.slice(0, 20));
      const broken = await proveClock({ cases: 1_000, clocks: 0, seed, broken: 'naive-add', progress });
      return {
        promise: 'The times of schedules are those of an oracle, and none comes twice when the clock is stepped',
        figure: `${report.cases} schedules in ${report.zones} zones: ${report.times} times and ${total(refused)} refusals (${counts(refused)}) compared, ${stepped.clocks} clocks stepped over ${stepped.times} times: ${wrong.length} wrong; seed ${seed}`,
        caught: `naive addition to the time of day: ${broken.wrong.length} of ${broken.cases} wrong`,
        good: wrong.length === 0 && report.zones >= 20 && stepped.times > 0 && broken.wrong.length > 0,
      };
    },
  };
}
