import { counts, printFindings, type ProofOptions, type Proofs } from './lib/proof.ts';
import { proveStaleOwners } from './r11-stale-owners.ts';
import type { CellStop } from './lib/stop-cell.ts';
import type { WorkName } from './lib/stop-work.ts';
import { proveStopCells, proveStopsOverRestart } from './r32-cells.ts';
import { proveStops } from './r32-stops.ts';
import { proveJailEscapes } from './r33-jail-escapes.ts';
import { proveKilledDelegation, delegationKillPoints } from './r6-killed-delegation.ts';

/** The full forms of the proofs of delegated work. */
export function delegationProofs({ seed, progress }: ProofOptions): Proofs {
  return {
    async 'r6-delegation'() {
      const { wrong, ...report } = await proveKilledDelegation({ points: delegationKillPoints, randomKills: 40, seed, progress });
      printFindings(wrong);
      const broken = await proveKilledDelegation({ points: ['after a node has begun a run'], randomKills: 0, seed, broken: 'no-run-key', progress });
      return {
        promise: 'Parents, children, graphs and messages that are killed have one correct end each, and are announced once',
        figure: `${report.kills} kills, at ${delegationKillPoints.length} points and at random moments: ${report.runs} runs, ${report.graphs} graphs, ${report.messages} messages, ${wrong.length} lost, open, orphaned, wrong, duplicated or not announced; seed ${seed}`,
        caught: `graph steps without a key: ${broken.wrong.length} started twice`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async r11() {
      const { wrong, tried, ...report } = await proveStaleOwners({ pauses: 1_000, seed });
      printFindings(wrong.slice(0, 20));
      const broken = await proveStaleOwners({ pauses: 50, seed, broken: 'no-fence' });
      return {
        promise: 'A process whose lease of agent work has expired cannot write any more',
        figure: `${report.pauses} pauses (${counts(tried)}), ${report.writes} writes tried by stale owners: ${wrong.length} with an effect; seed ${seed}`,
        caught: `no check of the fence: ${broken.wrong.length} with an effect`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async r32() {
      const { wrong, slowestMs, ...report } = await proveStops({ rounds: 20, seed, progress });
      printFindings(wrong);
      const deaf = await proveStops({ rounds: 1, seed, kinds: ['run.kill'], broken: 'kill-without-stop', progress });
      const cached = await proveStops({ rounds: 1, seed, kinds: ['tokens.revoke'], broken: 'cached-tokens', progress });
      return {
        promise: 'A kill has its effect within 2 s and a revocation within 5 s, and nothing of the stopped work remains (one node)',
        figure: `${report.rounds} rounds, ${report.runs} active runs and ${report.processes} processes: at most ${counts(slowestMs)} ms; ${wrong.length} late, remaining or started afterwards; seed ${seed}`,
        caught: `kills that are only recorded: ${deaf.wrong.length} wrong; cached tokens: ${cached.wrong.length} wrong`,
        good: wrong.length === 0 && deaf.wrong.length > 0 && cached.wrong.length > 0,
      };
    },
    async 'r32-cells'() {
      const { cells, slowestMs, wrong } = await proveStopCells({ seed, progress });
      const restarts = await proveStopsOverRestart({ seed });
      printFindings([...wrong, ...restarts.wrong]);
      const some = (stop: CellStop, work: WorkName, broken: string) => proveStopCells({ seed, cells: [{ stop, work }], broken });
      const commands = await some('run.kill', 'command', 'commands-outlive-stops');
      const streams = await some('tokens.revoke', '/rpc', 'revoke-closes-streams');
      return {
        promise: 'Each stop ends each kind of work in its scope, over every route and across a restart, and its caller gets an answer',
        figure: `${cells} cells: at most ${counts(slowestMs)} ms; ${wrong.length + restarts.wrong.length} late, remaining or started afterwards; seed ${seed}`,
        caught: `commands that ignore stops: ${commands.wrong.length} wrong; a revocation that only closes streams: ${streams.wrong.length} wrong`,
        good: wrong.length + restarts.wrong.length === 0 && commands.wrong.length > 0 && streams.wrong.length > 0,
      };
    },
    async 'r33-scripts'() {
      const report = await proveJailEscapes({ asScripts: true, progress });
      printFindings(report.wrong);
      const broken = await proveJailEscapes({ asScripts: true, broken: 'any-bearer', only: ['forges a bearer'], progress });
      return {
        promise: 'A script of an agent reaches nothing outside its jail, and cannot misuse what it is given',
        figure: `${report.programs} programs: ${report.wrong.length} outside effects or disclosures; the last ended ${report.latestMs} ms after its limit; the daemon held ${report.grownMb} MiB more at its peak`,
        caught: `a socket that checks no bearer: ${broken.wrong.length} served`,
        good: report.wrong.length === 0 && report.programs >= 40 && broken.wrong.length > 0,
      };
    },
  };
}
