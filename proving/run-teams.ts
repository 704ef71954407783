import { counts, type ProofOptions, type Proofs, tell } from './lib/proof.ts';
import { proveStaleOwners } from './r11-stale-owners.ts';
import type { WorkName } from './lib/stop-work.ts';
import { type CellStop, proveStopCells, proveStopsOverRestart } from './r32-cells.ts';
import { proveStops } from './r32-stops.ts';
import { proveJailEscapes } from './r33-jail-escapes.ts';
import { proveKilledTeams, teamKillPoints } from './r6-killed-teams.ts';

/** The full forms of what agents set going beyond their own turns. */
export function teamProofs({ seed, progress }: ProofOptions): Proofs {
  return {
    async 'r6-teams'() {
      const { wrong, ...report } = await proveKilledTeams({ points: teamKillPoints, randomKills: 40, seed, progress });
      tell(wrong);
      const broken = await proveKilledTeams({ points: ['after a node has begun a run'], randomKills: 0, seed, broken: 'no-run-key', progress });
      return {
        promise: 'Killed under parents, children, graphs and messages, each of them has one true end and is told once',
        figure: `${report.kills} kills, at ${teamKillPoints.length} points and at moments of chance: ${report.runs} runs, ${report.graphs} graphs, ${report.messages} messages, ${wrong.length} lost, open, orphaned, untrue, doubled or untold; seed ${seed}`,
        caught: `steps of graphs without a key: ${broken.wrong.length} begun twice`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async r11() {
      const { wrong, tried, ...report } = await proveStaleOwners({ pauses: 1_000, seed });
      tell(wrong.slice(0, 20));
      const broken = await proveStaleOwners({ pauses: 50, seed, broken: 'no-fence' });
      return {
        promise: 'Whoever comes back to work of agents after its lease was over writes nothing any more',
        figure: `${report.pauses} pauses (${counts(tried)}), ${report.writes} writes tried by stale owners: ${wrong.length} with an effect; seed ${seed}`,
        caught: `no look at the fence: ${broken.wrong.length} with an effect`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async r32() {
      const { wrong, slowestMs, ...report } = await proveStops({ rounds: 20, seed, progress });
      tell(wrong);
      const deaf = await proveStops({ rounds: 1, seed, kinds: ['run.kill'], broken: 'kill-without-stop', progress });
      const cached = await proveStops({ rounds: 1, seed, kinds: ['tokens.revoke'], broken: 'cached-tokens', progress });
      return {
        promise: 'A kill has its effect within 2 s and a revocation within 5 s, and nothing is left of what it ends (one node)',
        figure: `${report.rounds} rounds, ${report.runs} runs at work and ${report.processes} processes: at most ${counts(slowestMs)} ms; ${wrong.length} late, left or begun afterwards; seed ${seed}`,
        caught: `kills that are written down alone: ${deaf.wrong.length} wrong; tokens kept in mind: ${cached.wrong.length} wrong`,
        good: wrong.length === 0 && deaf.wrong.length > 0 && cached.wrong.length > 0,
      };
    },
    async 'r32-cells'() {
      const { cells, slowestMs, wrong } = await proveStopCells({ seed, progress });
      const restarts = await proveStopsOverRestart({ seed });
      tell([...wrong, ...restarts.wrong]);
      const some = (stop: CellStop, work: WorkName, broken: string) => proveStopCells({ seed, cells: [{ stop, work }], broken });
      const commands = await some('run.kill', 'command', 'commands-outlive-stops');
      const streams = await some('tokens.revoke', '/rpc', 'revoke-closes-streams');
      return {
        promise: 'Each stop ends each kind of work that it means, over every route and over a restart, and its caller is answered',
        figure: `${cells} cells: at most ${counts(slowestMs)} ms; ${wrong.length + restarts.wrong.length} late, left or begun afterwards; seed ${seed}`,
        caught: `commands that hear of no stop: ${commands.wrong.length} wrong; a revocation that closes streams alone: ${streams.wrong.length} wrong`,
        good: wrong.length + restarts.wrong.length === 0 && commands.wrong.length > 0 && streams.wrong.length > 0,
      };
    },
    async 'r33-scripts'() {
      const report = await proveJailEscapes({ asScripts: true, progress });
      tell(report.wrong);
      const broken = await proveJailEscapes({ asScripts: true, broken: 'any-bearer', only: ['forges a bearer'], progress });
      return {
        promise: 'A script of an agent reaches nothing outside of its jail, and misuses nothing that it is given',
        figure: `${report.programs} programs: ${report.wrong.length} effects outside or things given; the last ended ${report.latestMs} ms after its limit; the daemon held ${report.grownMb} MiB more at the highest`,
        caught: `a socket that looks at no bearer: ${broken.wrong.length} given`,
        good: report.wrong.length === 0 && report.programs >= 40 && broken.wrong.length > 0,
      };
    },
  };
}
