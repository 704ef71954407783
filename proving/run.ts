import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { brokenBuilds } from './broken-builds.ts';
import { setup as useBrokenBundle } from './lib/broken-bundle.ts';
import { freezeBundle, root } from './lib/daemon.ts';
import { makeHome, removeHome } from './lib/home.ts';
import { keep, type Outcome, readKept } from './lib/kept-outcomes.ts';
import { counts, printFindings, type Proofs, total } from './lib/proof.ts';
import { freshSeed } from './lib/random.ts';
import { readResults, writeResults } from './lib/results.ts';
import { straceMissing } from './lib/strace.ts';
import { proveAckedSurvives, type R1Report } from './r1-acked-survives.ts';
import { proveAuthorityMatrix } from './r23-authority-matrix.ts';
import { proveSyncBeforeAck } from './r3-sync-before-ack.ts';
import { channelProofs } from './run-channels.ts';
import { transportProofs } from './run-transports.ts';
import { exhaustionProofs } from './run-exhaustion.ts';
import { hookProofs } from './run-hooks.ts';
import { loadProofs } from './run-load.ts';
import { nodeProofs } from './run-nodes.ts';
import { ownerProofs } from './run-owners.ts';
import { storageProofs } from './run-storage.ts';
import { delegationProofs } from './run-delegation.ts';
import { timeProofs } from './run-time.ts';

/**
 * `npm run prove`: the full forms one after the other, each with its broken build; each figure goes to its row of proving/RESULTS.md. A proof
 * that has held on the same commit, or on one of `--accept a1b2c3d4e5f6,…`, is not run again, unless with `--fresh`, a seed, or by name (`--only r1,r3`);
 * so proofs that measure no time may run at the same time as others.
 *
 * `npm run prove -- --broken` lists every broken build instead, and whether its proof catches it in its short form; the whole list is the row R41.
 */

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    /** Number for R1, otherwise 200, and for channels, of daemons with all platforms, otherwise 900; an interrupted run continues. */
    kills: { type: 'string' },
    seed: { type: 'string' },
    'no-write': { type: 'boolean', default: false },
    fresh: { type: 'boolean', default: false },
    /** Commits of twelve digits whose outcomes still count: nothing that they prove has changed since. */
    accept: { type: 'string' },
    broken: { type: 'boolean', default: false },
  },
});
const changed = ', with changes';
const seed = values.seed === undefined ? freshSeed() : Number(values.seed);
const wanted = values.only?.toLowerCase().split(',');
const progress = (line: string): void => console.log(line);

const under = commit();
const mayKeep = values.seed === undefined && !under.endsWith(changed) && under !== 'unknown';

const proofs: Proofs = {
  async r1() {
    const report = await proveAckedSurvives({ rounds: Number(values.kills ?? 200), seed, progress });
    printFindings(problems(report));
    const broken = await proveAckedSurvives({ rounds: 10, seed, broken: 'ack-before-commit', progress });
    return {
      promise: 'Acknowledged writes survive kill -9, whole and once',
      figure: `${report.kills} kills, 9 clients, ${total(report.acked)} acknowledged of ${report.sent} sent (${counts(report.acked)}): ${report.lost.length} lost, ${report.doubled.length} doubled, ${report.torn.length} torn, ${report.unexpected.length} unexpected answers; ready again after ${report.restartMs.median} ms (median), ${report.restartMs.max} ms (max); seed ${seed}`,
      caught: `acknowledged before the commit, ${broken.kills} kills: ${broken.lost.length} lost`,
      good: problems(report).length === 0 && broken.lost.length > 0,
    };
  },
  async r3() {
    const missing = straceMissing(progress);
    if (missing !== undefined)
      return { promise: 'No acknowledgement leaves before its bytes are synced', figure: `not run: ${missing}`, caught: '-', good: false };
    const report = await proveSyncBeforeAck({ each: 100, progress });
    printFindings([...report.early, ...report.unseen]);
    const broken = await proveSyncBeforeAck({ each: 20, broken: 'synchronous-normal', progress });
    return {
      promise: 'No acknowledgement leaves before its bytes are synced',
      figure: `${report.acks} acknowledgements (${counts(report.byKind)}), ${report.syncs} syncs: ${report.early.length} before the sync, ${report.unseen.length} not seen in the trace`,
      caught: `synchronous=NORMAL: ${broken.early.length} of ${broken.acks} before the sync`,
      good: report.early.length === 0 && report.unseen.length === 0 && broken.early.length >= broken.acks * 0.9,
    };
  },
  async r23() {
    const report = await proveAuthorityMatrix({ progress });
    printFindings(report.wrong);
    const broken = await proveAuthorityMatrix({ broken: 'method-without-scope', progress });
    return {
      promise: 'Every method and route allows each token exactly what its scopes grant',
      figure: `${total(report.cells)} cells (${counts(report.cells)}): ${report.wrong.length} wrong`,
      caught: `one method without scope check: ${broken.wrong.length} cells wrong`,
      good: report.wrong.length === 0 && broken.wrong.length > 0,
    };
  },
  ...exhaustionProofs({ seed, progress }),
  ...transportProofs({ seed, progress }),
  ...loadProofs({ seed, progress }),
  ...hookProofs({ seed, progress }),
  ...ownerProofs({ seed, progress }),
  ...nodeProofs({ seed, progress }),
  ...timeProofs({ seed, progress }),
  ...delegationProofs({ seed, progress }),
  ...channelProofs({ kills: Number(values.kills ?? 900), under: mayKeep && !values.fresh ? under : undefined, progress }),
  ...storageProofs({ seed, progress }),
};

/** Rows of the report, in their order. */
const ids = [...Object.keys(proofs), 'r41'];

function problems(report: R1Report): string[] {
  return [
    ...report.lost.map((line) => `lost: ${line}`),
    ...report.doubled.map((line) => `doubled: ${line}`),
    ...report.torn.map((line) => `torn: ${line}`),
    ...report.unexpected.map((line) => `unexpected: ${line}`),
  ];
}

function commit(): string {
  try {
    const id = execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim();
    const isChanged =
      execFileSync('git', ['status', '--porcelain', '--untracked-files=no', '--', '.', ':!proving/RESULTS.md'], {
        cwd: root,
        encoding: 'utf8',
      }).trim() !== '';
    return isChanged ? `${id}${changed}` : id;
  } catch {
    return 'unknown';
  }
}

/** Runs the proof of every broken build against it; what was caught on the same commit is not run again. */
async function checkBrokenBuilds(): Promise<boolean> {
  const known = values.fresh || !mayKeep ? [] : await readKept(under);
  const missed: string[] = [];
  let seconds = 0;
  const chosen = Object.entries(brokenBuilds).filter(([name]) => wanted?.includes(name) ?? true);
  for (const [name, prove] of chosen) {
    const id = `broken-${name}`;
    const earlier = known.find((outcome) => outcome.id === id);
    const startedAt = performance.now();
    // A broken build may make its harness fail instead of finding something.
    const found = earlier === undefined ? await prove(seed).catch((error: unknown) => `not run: ${String(error)}`) : [earlier.caught];
    const took = Math.round((performance.now() - startedAt) / 1000);
    seconds += earlier?.seconds ?? took;
    const caught = typeof found === 'string' ? found : (found[0] ?? 'nothing found');
    const good = typeof found !== 'string' && found.length > 0;
    if (!good) missed.push(name);
    else if (mayKeep && earlier === undefined) await keep({ id, promise: '', figure: '', caught, good, seconds: took, commit: under });
    console.log(`${good ? 'caught' : 'MISSED'}  ${name.padEnd(26)} ${earlier === undefined ? `${took} s` : 'before'}: ${caught}`);
  }
  console.log(
    `${chosen.length - missed.length} of ${chosen.length} broken builds are caught${missed.length > 0 ? `; not caught: ${missed.join(', ')}` : ''}`,
  );
  if (wanted === undefined && !values['no-write']) {
    const figure = `${chosen.length} broken builds: ${missed.length} not caught${missed.length > 0 ? ` (${missed.join(', ')})` : ''}`;
    await writeResults(
      [
        {
          id: 'r41',
          promise: 'The shortest form of each proof finds its fault',
          figure,
          caught: '-',
          good: missed.length === 0,
          seconds,
          commit: under,
        },
      ],
      ids,
    );
  }
  return missed.length === 0;
}

/** Runs the full forms and writes their report. */
async function proveAll(): Promise<boolean> {
  const commits = [under, ...(values.accept?.split(',') ?? [])];
  const mayReuse = mayKeep && wanted === undefined && !values.fresh;
  const reported = (await readResults()).filter(({ good, commit: on }) => good && commits.includes(on));
  const kept = mayReuse ? [...(await Promise.all(commits.map(readKept))).flat(), ...reported] : [];
  const outcomes: Outcome[] = [];
  for (const [id, prove] of Object.entries(proofs)) {
    if (wanted !== undefined && !wanted.includes(id)) continue;
    const earlier = kept.find((outcome) => outcome.id === id);
    if (earlier !== undefined) {
      outcomes.push(earlier);
      console.log(`${id.toUpperCase()} has held on ${earlier.commit}: ${earlier.figure}`);
      continue;
    }
    console.log(`${id.toUpperCase()} begins (seed ${seed})`);
    const startedAt = performance.now();
    // A harness that fails must not keep the others from running.
    const result = await prove().catch((error: unknown) => {
      console.error(error);
      return { promise: '', figure: `not run: ${String(error)}`, caught: '-', good: false };
    });
    const outcome = { id, ...result, seconds: Math.round((performance.now() - startedAt) / 1000), commit: under };
    outcomes.push(outcome);
    if (mayKeep && outcome.good) await keep(outcome);
    if (!values['no-write']) await writeResults([outcome], ids);
    console.log(`${id.toUpperCase()} ${outcome.good ? 'holds' : 'FAILS'}: ${outcome.figure}\n   broken build: ${outcome.caught}`);
  }
  if (!values['no-write']) await writeResults(outcomes, ids);
  return outcomes.every((outcome) => outcome.good);
}

const frozen = await makeHome();
await freezeBundle(frozen);
await useBrokenBundle();
const isGood = values.broken ? await checkBrokenBuilds() : await proveAll();
await removeHome(frozen);
process.exitCode = isGood ? 0 : 1;
