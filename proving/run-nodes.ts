import { startPostgres } from '@gatehouse/testkit/postgres';
import { takeOverMs } from './lib/nodes.ts';
import { counts, printFindings, total, type ProofOptions, type Proofs } from './lib/proof.ts';
import { randomFrom } from './lib/random.ts';
import type { Death } from './lib/takeover.ts';
import { type R11NodesReport, proveStaleNodes } from './r11-nodes.ts';
import { allNodeCells, fewNodeCells, nodeControls } from './r32-nodes.ts';
import { proveFailover } from './r36-failover.ts';
import { proveFullDatabaseDisk } from './r36-full-disk.ts';
import { provePostgresFaults } from './r36-postgres-faults.ts';
import { mountMissing } from './scarcity.ts';
import { proveTakeoverFrozen } from './takeover-frozen.ts';
import { proveTakeoverKilled } from './takeover-killed.ts';
import { proveTakeoverPromises } from './takeover-promises.ts';

/** Deaths by kill and freeze, with leases that end in their time or at once, some of them in the middle of what they acknowledge. */
function deathsOf(count: number, seed: number): readonly Death[] {
  const random = randomFrom(seed);
  return Array.from({ length: count }, (_, index) => ({
    by: index % 3 === 2 ? ('freeze' as const) : ('kill' as const),
    lapses: index % 2 === 0,
    ...(index % 4 === 3 && { afterMs: 20 + random.int(200) }),
  }));
}

async function staleNodes(options: Omit<Parameters<typeof proveStaleNodes>[0], 'url'>): Promise<R11NodesReport> {
  await using server = await startPostgres();
  return await proveStaleNodes({ ...options, url: server.url() });
}

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
    async r36() {
      // Each has a server and a daemon; the slow ones wait most of the time.
      const reports = await Promise.all(
        [{ cut: 50, restarted: 50, 'read-only': 50 }, { stalled: 50 }, { 'half open': 50 }].map((rounds) =>
          provePostgresFaults({ rounds, seed, progress }),
        ),
      );
      printFindings(reports.flatMap((report) => report.wrong));
      const failover = await proveFailover({ rounds: 5, seed, progress });
      printFindings(failover.wrong);
      const all = [...reports, failover];
      const wrong = all.flatMap((report) => report.wrong);
      const sum = (of: (report: (typeof all)[number]) => number) => total(Object.fromEntries(all.map((report, index) => [index, of(report)])));
      const caught = {
        'an in-doubt commit counts as done': await provePostgresFaults({ rounds: { cut: 30 }, seed, broken: 'doubt-commits' }),
        'an in-doubt commit fails': await provePostgresFaults({ rounds: { cut: 30 }, seed, broken: 'doubt-fails' }),
        'it is repeated blindly': await provePostgresFaults({ rounds: { cut: 30 }, seed, broken: 'doubt-repeats' }),
        'a write without its connection fails': await provePostgresFaults({ rounds: { cut: 30 }, seed, broken: 'lost-fails' }),
        'no limit for an answer': await provePostgresFaults({ rounds: { 'half open': 1 }, seed, broken: 'no-deadline' }),
      };
      return {
        promise:
          'Whatever happens to PostgreSQL and its connections, nothing acknowledged is lost or done twice, nothing refused is kept, callers learn when to retry, and answers come again within 10 s, after a failover within 15 s',
        figure: `50 times each: ${counts(Object.assign({}, ...reports.map(({ slowestMs }) => slowestMs)))} ms until answers at most; 5 primaries killed, ${failover.slowestMs} ms at most; ${sum(({ answers }) => answers.acknowledged)} acknowledged, ${sum(({ answers }) => answers.refused)} refused, ${sum(({ answers }) => answers.unknown)} answered as unknown: ${sum(({ lost }) => lost)} lost, ${sum(({ doubled }) => doubled)} doubled, ${wrong.length} wrong; seed ${seed}`,
        caught: Object.entries(caught)
          .map(([fault, report]) => `${fault}: ${report.wrong.length} wrong`)
          .join('; '),
        good: wrong.length === 0 && Object.values(caught).every((report) => report.wrong.length > 0),
      };
    },
    async 'r11-nodes'() {
      const { wrong, tried, ...report } = await staleNodes({ freezes: { work: 75, node: 50 }, seed, progress });
      const frozen = await proveTakeoverFrozen({ frozenMs: 20_000 });
      printFindings([...wrong.slice(0, 20), ...frozen.wrong]);
      const broken = await staleNodes({ freezes: { work: 1, node: 1 }, seed, broken: ['no-fence', 'no-lease-fence'] });
      return {
        promise: 'A process that is frozen past its lease writes nothing when the other one of the same PostgreSQL has taken over',
        figure: `${report.freezes} processes stopped and continued, with ${counts(tried)}; ${report.writes} writes tried: ${wrong.length} accepted or with an effect; a daemon frozen for 20 s during turns of ${frozen.kinds.join(', ')}: ${frozen.wrong.length} wrong; seed ${seed}`,
        caught: `neither leases nor claims checked: ${broken.wrong.length} accepted or with an effect`,
        good: wrong.length + frozen.wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async 'r28-nodes'() {
      const deaths = deathsOf(6, seed);
      const report = await proveTakeoverPromises({ deaths, replays: { honest: 12, forgeries: 300 }, seed, progress });
      printFindings(report.wrong.slice(0, 20));
      const broken = await proveTakeoverPromises({
        deaths: deaths.slice(0, 1),
        replays: { honest: 3, forgeries: 0 },
        seed,
        broken: 'deliveries-of-one-process',
      });
      return {
        promise: 'A webhook that is sent again to the daemon that takes over starts no second turn unnoticed; both daemons refuse forged ones',
        figure: `${deaths.length} take-overs, ${report.honest} webhooks, half of them cut off by the death of the daemon, sent again ${report.replays} times, and ${report.forgeries} forgeries: ${report.wrong.length} executed twice, lost, not reported or accepted; seed ${seed}`,
        caught: `deliveries that one process remembers: ${broken.wrong.length} wrong`,
        good: report.wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async 'r32-nodes'() {
      const deaths = deathsOf(8, seed);
      const { wrong, slowestMs, ...report } = await proveTakeoverPromises({ deaths, stops: { cells: allNodeCells }, seed, progress });
      printFindings(wrong);
      const cells = fewNodeCells.filter(({ work }) => work.startsWith('looping'));
      const broken = await proveTakeoverPromises({ deaths: deaths.slice(0, 1), stops: { cells, controls: [] }, seed, broken: 'stops-in-memory' });
      return {
        promise: 'A stop that the active daemon acknowledged just before it died is in force on the one that takes over',
        figure: `${deaths.length} take-overs, ${report.stops} of ${allNodeCells.length} stops acknowledged: in force at most ${counts(slowestMs)} ms after the take-over, ${wrong.length} late, resumed or undone; ${report.resumed} of ${deaths.length * nodeControls.length} other works resumed; seed ${seed}`,
        caught: `stops that are not stored: ${broken.wrong.length} wrong`,
        good: wrong.length === 0 && report.stops > 0 && broken.wrong.length > 0,
      };
    },
    async 'r36-disk'() {
      const promise =
        'On a full disk of PostgreSQL the daemon keeps reading and says which disk is full; nothing acknowledged is lost, and it accepts writes again when space is free, also when the server had ended';
      const missing = mountMissing();
      if (missing !== undefined) return { promise, figure: `not run: ${missing}`, caught: '-', good: false };
      const full = await proveFullDatabaseDisk({ forMs: 30_000 });
      const ended = await proveFullDatabaseDisk({ forMs: 5_000, endsServer: true });
      printFindings([...full.wrong, ...ended.wrong].slice(0, 20));
      const broken = await proveFullDatabaseDisk({ forMs: 500, onlyBound: true, broken: 'blind-to-full-disk' });
      return {
        promise,
        figure: `full for 30 s, and until the server ended: ${full.acknowledged + ended.acknowledged} acknowledged, ${full.refused + ended.refused} refused, ${full.checks + ended.checks} checks of /health; writes again ${full.recoveredMs} and ${ended.recoveredMs} ms after space was free; ${full.wrong.length + ended.wrong.length} wrong`,
        caught: `a full disk goes unnoticed: ${broken.wrong.length} wrong`,
        good: full.wrong.length + ended.wrong.length === 0 && broken.wrong.length > 0,
      };
    },
  };
}
