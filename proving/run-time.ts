import { counts, printFindings, type ProofOptions, type Proofs, total } from './lib/proof.ts';
import { proveCatchUp } from './r10-catch-up.ts';
import { proveStopUnderLoad } from './r12-stop-under-load.ts';
import { proveSentOnce } from './r2-sent-once.ts';
import { proveClaimedOnce } from './r7-claimed-once.ts';
import { proveOutage } from './r43-outage.ts';
import { proveKilledBooks } from './killed-books.ts';
import { proveVirtualWeek } from './r40-virtual-week.ts';
import { proveMissed } from './r8-missed.ts';
import { killPoints, proveKilledTurns } from './r6-killed-turns.ts';
import { proveClock } from './r9-clock.ts';
import { proveWrongClock } from './wrong-clock.ts';
import { measureReports } from './report-figures.ts';
import { growthOf, lateOf, mib, proveYear, slowerOf } from './year.ts';

/** The full forms of the proofs on time. */
export function timeProofs({ seed, progress }: ProofOptions): Proofs {
  return {
    async r2() {
      const { sent, doubled, missing, untrue, ...report } = await proveSentOnce({ rounds: 200, seed, progress });
      printFindings([...doubled, ...missing, ...untrue].slice(0, 20));
      const until = (soFar: { readonly doubled: readonly string[] }): boolean => soFar.doubled.length > 0;
      const inbox = await proveSentOnce({ rounds: 10, seed, broken: 'resend-on-resume', until, progress });
      const tool = await proveSentOnce({ rounds: 10, seed, broken: 'missing-intent', until, progress });
      return {
        promise: 'Outward messages are sent once; those with an unknown outcome are marked unknown and never sent again',
        figure: `${report.kills} kills, ${total(sent)} sent (${counts(sent)}): ${doubled.length} doubled, ${missing.length} missing, ${untrue.length} said otherwise than they are; ${report.unknown} posts marked unknown; seed ${seed}`,
        caught: `sent again on resume, ${inbox.kills} kills: ${inbox.doubled.length} doubled; no row of intents, ${tool.kills} kills: ${tool.doubled.length} posted twice`,
        good: doubled.length + missing.length + untrue.length === 0 && report.unknown > 0 && inbox.doubled.length > 0 && tool.doubled.length > 0,
      };
    },
    async r6() {
      const { gone, wrong, unannounced, ...report } = await proveKilledTurns({ rounds: 3, progress });
      printFindings([...gone, ...wrong, ...unannounced]);
      const broken = await proveKilledTurns({ points: ['after a tool that runs once'], broken: 'missing-intent', progress });
      return {
        promise: 'A killed turn of durable work is resumed or marked unknown and says so; what runs once never runs twice',
        figure: `${report.kills} kills at ${killPoints.length} points: ${report.resumed} resumed, ${report.unknown} marked unknown, ${gone.length} silently gone, ${wrong.length} done twice or not at all, ${unannounced.length} unannounced`,
        caught: `no row of intents: ${broken.wrong.length} of ${broken.kills} done twice`,
        good: gone.length + wrong.length + unannounced.length === 0 && broken.wrong.length > 0,
      };
    },
    async 'r6-books'() {
      const { wrong, ...report } = await proveKilledBooks();
      printFindings(wrong);
      const broken = await proveKilledBooks({ broken: 'unnoted-calls' });
      return {
        promise: 'Reports count every model call that was answered, once, also those of killed turns',
        figure: `${report.kills} kills, ${report.answered} answers: ${wrong.length} sums that differ from the journal of the provider`,
        caught: `calls not noted: ${broken.wrong.length} sums differ`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async r7() {
      const { wrong, ...report } = await proveClaimedOnce({ jobs: 250, ticks: 40, seed });
      printFindings(wrong.slice(0, 20));
      const broken = await proveClaimedOnce({ jobs: 25, ticks: 8, seed, broken: 'no-unique-occurrence' });
      // Others of its claims fail, so that there may be fewer in total.
      const twice = broken.wrong.filter((line) => /was executed \d+ times/.test(line)).length;
      return {
        promise: 'Each occurrence of a job is executed once, whichever other process claims it and pauses past its lease',
        figure: `${report.occurrences} occurrences, 4 processes, ${report.stops} stops: ${report.executed} executed, ${wrong.length} wrong; seed ${seed}`,
        caught: `without unique key: ${twice} of ${broken.occurrences} occurrences executed more than once`,
        good: wrong.length === 0 && twice > 0,
      };
    },
    async r8() {
      const { wrong, ...report } = await proveMissed({ jobs: 50, seed });
      printFindings(wrong.slice(0, 20));
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
      printFindings(wrong);
      const broken = await proveCatchUp({ jobs: 20, speed: 60, broken: 'replay-all' });
      return {
        promise: 'Overdue jobs start one by one after a start of the daemon, and none is left out',
        figure: `${report.overdue} overdue jobs: at most ${report.burst} within 25 s, ${report.closestMs} ms apart or more, at most ${report.atOnce} running at once; ${wrong.length} wrong`,
        caught: `replay of all at once: ${broken.burst} within 25 s, ${broken.atOnce} running at once`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async r12() {
      const { dropped, wrong, acked, ...report } = await proveStopUnderLoad({ stops: 30, seed, progress });
      printFindings([...dropped, ...wrong].slice(0, 20));
      const broken = await proveStopUnderLoad({ stops: 1, seed, broken: 'exit-at-once', progress });
      return {
        promise: 'A stop under load drops nothing that was acknowledged, and completes within the drain time and 2 s',
        figure: `${report.stops} stops, ${report.running} turns running or more: ${total(acked)} acknowledged (${counts(acked)}, ${report.late} of them webhooks during the stop), ${dropped.length} dropped, ${wrong.length} wrong, ${report.cut} requests beyond the drain answered so; drain ${report.drainMs} ms, gone after ${report.slowestMs} ms at most; seed ${seed}`,
        caught: `immediate exit: ${broken.dropped.length} dropped`,
        good: dropped.length + wrong.length === 0 && report.running >= 45 && broken.dropped.length > 0,
      };
    },
    async r9() {
      const { wrong, refused, stepped, ...report } = await proveClock({ cases: 20_000, clocks: 500, seed, progress });
      printFindings(wrong.slice(0, 20));
      const broken = await proveClock({ cases: 1_000, clocks: 0, seed, broken: 'naive-add', progress });
      return {
        promise: 'The times of schedules match an oracle, and none comes twice when the clock is stepped',
        figure: `${report.cases} schedules in ${report.zones} zones: ${report.times} times and ${total(refused)} refusals (${counts(refused)}) compared, ${stepped.clocks} clocks stepped over ${stepped.times} times: ${wrong.length} wrong; seed ${seed}`,
        caught: `naive addition to the time of day: ${broken.wrong.length} of ${broken.cases} wrong`,
        good: wrong.length === 0 && report.zones >= 20 && stepped.times > 0 && broken.wrong.length > 0,
      };
    },
    async years() {
      const { wrong, repeats } = await proveWrongClock({ each: 50, offDays: [1095, -1095, 30, 10_000], minutes: 70 });
      printFindings(wrong.slice(0, 20));
      const broken = await proveWrongClock({ each: 3, offDays: [1095], minutes: 2, broken: 'ages-by-the-clock' });
      return {
        promise: 'One start with the clock years wrong deletes nothing by age, ends no wait for an approval, and repeats nothing',
        figure: `three years ahead and behind, 30 and 10,000 days ahead: ${repeats} requests and webhooks came again: ${wrong.length} wrong`,
        caught: `ages counted by the clock: ${broken.wrong.length} wrong`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async year() {
      // 5 million calls and 20 million events in a year.
      const pace = { turns: 3_425, callsPerTurn: 4, events: 54_795, subAgents: 40 };
      const report = await proveYear({ days: 365, pace, progress });
      const wrong = [...report.wrong, ...growthOf(report, pace), ...slowerOf(report), ...lateOf(report)];
      printFindings(wrong);
      const broken = await proveYear({ days: 120, pace: { ...pace, turns: 100, events: 0 }, broken: 'sums-deleted-with-calls' });
      const sizes = report.sizes.filter(({ day }) => [30, 120, 240, 365].includes(day));
      const times = (of: typeof report.last) => Object.entries(of).map(([name, { p50, p95 }]) => `${name} ${p50.toFixed(1)} and ${p95.toFixed(1)}`);
      return {
        promise:
          'Old records are deleted for a year: the database stays as small as documented, queries as fast as in the first week, and all sums exact',
        figure: `${report.calls} calls of ${report.turns} turns, ${report.events} events; deleted ${counts(report.deleted)}; database and telemetry ${sizes.map(({ day, mainBytes, telemetryBytes }) => `${mib(mainBytes)} and ${mib(telemetryBytes)} MiB on day ${day}`).join(', ')}; queries (p50 and p95, ms): ${times(report.last).join(', ')} (first week: ${times(report.first).join(', ')}); event loop held ${report.loopMs.toFixed(1)} ms at most; ${wrong.length} wrong`,
        caught: `sums deleted with their calls: ${broken.wrong.length} wrong`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async 'report-figures'() {
      // A million calls in 25 days, all within the time for which traces are kept.
      const { wrong, times, ...report } = await measureReports({ turnsPerDay: 10_000, days: 25 });
      printFindings(wrong);
      const each = Object.entries(times).map(
        ([name, { p50, p95, mainMs }]) => `${name} ${p50.toFixed(1)}, ${p95.toFixed(1)} and ${mainMs.toFixed(1)}`,
      );
      return {
        promise:
          'Over a million calls, `obs.billing.byProvider` takes at most 50 ms and a search by id 20 ms, and neither holds the event loop for 10',
        figure: `${report.calls} calls with ${report.traces} traces, over HTTP (p50 and p95 of 100 calls, and the longest work of the main thread at once, ms): ${each.join('; ')}; at a load of ${report.load.toFixed(1)} for each processor; ${wrong.length} wrong`,
        caught: '-',
        good: wrong.length === 0,
      };
    },
    async r40() {
      const seeds = Array.from({ length: 200 }, (_, index) => (seed + index) >>> 0);
      // A whole week every tenth time, a day otherwise: minutes instead of an hour.
      const { wrong, ...report } = await proveVirtualWeek({ seeds, daysOf: (index) => (index % 10 === 0 ? 7 : 1), progress });
      printFindings(wrong.slice(0, 20));
      const some = seeds.slice(0, 4);
      const missed = await proveVirtualWeek({ seeds: some, daysOf: () => 3, broken: 'next-run-only' });
      const again = await proveVirtualWeek({ seeds: some, daysOf: () => 3, broken: 'missing-intent' });
      return {
        promise: 'Days of jobs, webhooks, chats and heartbeats with all kinds of faults leave one row for each time and do nothing twice',
        figure: `${report.seeds} seeds, ${report.days} virtual days: ${report.crashes} crashes, ${report.stops} stops, ${report.occurrences} occurrences, ${report.orders} webhooks, chats and orders, ${report.modelCalls} model calls, ${report.unknown} unknown: ${wrong.length} wrong; seed ${seed}`,
        caught: `only the next time kept: ${missed.wrong.length} wrong; no row of intents: ${again.wrong.length} wrong`,
        good: wrong.length === 0 && report.crashes > 0 && missed.wrong.length > 0 && again.wrong.length > 0,
      };
    },
    async r43() {
      const load = { webhooks: 200, messages: 50, oneShots: 20, recurring: 5, minutes: 10, patienceMin: 90 };
      const { wrong, ran, ...report } = await proveOutage(load);
      printFindings(wrong.slice(0, 20));
      const few = { webhooks: 20, messages: 5, oneShots: 5, recurring: 2, minutes: 10, patienceMin: 20 };
      const counted = await proveOutage({ ...few, broken: 'wait-as-attempt' });
      const closed = await proveOutage({ ...few, broken: 'breaker-not-transient' });
      return {
        promise: 'Work accepted while its model provider fails runs when it answers again, once each, and no job is paused',
        figure: `${load.minutes} virtual minutes of 500, 503, rubbish, 429 and 401 (${report.refused} requests): ran ${counts(ran)}, all within ${report.recoveredAfterMin} virtual minutes of the first good answer; ${wrong.length} wrong`,
        caught: `waits counted as attempts: ${counted.wrong.length} wrong; an open breaker that ends work: ${closed.wrong.length} wrong`,
        good: wrong.length === 0 && counted.wrong.length > 0 && closed.wrong.length > 0,
      };
    },
  };
}
