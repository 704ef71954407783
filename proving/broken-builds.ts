import { measureChatPage } from './chat-page.ts';
import { proveChannelAuthority } from './channel-authority.ts';
import { proveAway, proveLimit } from './channel-outages.ts';
import { proveLostConfirmations, proveQuietMailbox, proveRoutes, proveSilence } from './channel-promises.ts';
import { proveConfigChanges } from './config-changes.ts';
import { proveConnectedClients } from './connected-clients.ts';
import { proveDocumentBombs } from './document-bombs.ts';
import { proveKnowledgeFolder } from './knowledge-folder.ts';
import { proveBrowserCrashes } from './browser-crashes.ts';
import { proveTerminalDrives } from './terminal-drives.ts';
import { proveDoctorRuns } from './doctor-runs.ts';
import { proveResetRace } from './e19-reset-race.ts';
import { proveArrivalOrder } from './e21-arrival-order.ts';
import { proveEndlessProvider, proveTwoContainers } from './exhaustion.ts';
import { proveFullMediaDisk } from './full-disk-media.ts';
import { proveHammer } from './hammer.ts';
import { killedOn } from './killed-channels.ts';
import { proveAckedSurvives } from './r1-acked-survives.ts';
import { proveCatchUp } from './r10-catch-up.ts';
import { proveStaleOwners } from './r11-stale-owners.ts';
import { proveStopUnderLoad } from './r12-stop-under-load.ts';
import { proveStartAfterCrash } from './r13-start-after-crash.ts';
import { proveLoopDelay } from './r14-loop-delay.ts';
import { growthOf, proveNoGrowth } from './r15-no-growth.ts';
import { proveStalledReaders } from './r16-stalled-readers.ts';
import { proveSlowLinks } from './r17-slow-links.ts';
import { proveSlowClients } from './r18-slow-clients.ts';
import { faultsOf, proveOverload } from './r19-overload.ts';
import { proveSentOnce } from './r2-sent-once.ts';
import { isFair, proveFairness } from './r20-fairness.ts';
import { proveMalformed } from './r21-malformed.ts';
import { proveFrames } from './r22-frames.ts';
import { proveAuthorityMatrix } from './r23-authority-matrix.ts';
import { proveCrossOwner } from './r24-cross-owner.ts';
import { proveOutwardRequests } from './r25-outward-requests.ts';
import { provePaths } from './r26-paths.ts';
import { proveSpecialFiles } from './r26-special-files.ts';
import { proveCanaries } from './r27-canaries.ts';
import { proveReplays } from './r28-replays.ts';
import { ackWithinMs, proveHookLatency } from './r29-hook-latency.ts';
import { proveSyncBeforeAck } from './r3-sync-before-ack.ts';
import { proveBrowserAttacks } from './r30-browser-attacks.ts';
import { proveGuessing } from './r31-guessing.ts';
import { proveStopCells } from './r32-cells.ts';
import { proveStops } from './r32-stops.ts';
import { proveJailEscapes } from './r33-jail-escapes.ts';
import { channels, proveHostileModel } from './r34-hostile-model.ts';
import { proveSkillVetting } from './r35-skill-vetting.ts';
import { proveUpgrade } from './r38-upgrade.ts';
import { proveBackup } from './r39-backup.ts';
import { proveStorageFaults } from './r4-storage-faults.ts';
import { proveFullDatabaseDisk } from './r36-full-disk.ts';
import { provePostgresFaults } from './r36-postgres-faults.ts';
import { proveOutage } from './r43-outage.ts';
import { proveKilledBooks } from './killed-books.ts';
import { proveKilledDelegation } from './r6-killed-delegation.ts';
import { proveKilledTurns } from './r6-killed-turns.ts';
import { proveClaimedOnce } from './r7-claimed-once.ts';
import { proveMissed } from './r8-missed.ts';
import { proveClock } from './r9-clock.ts';
import { proveReplacedData } from './replaced-data.ts';
import { proveFewDescriptors, proveFullDisk } from './scarcity.ts';
import { fewNodeCells } from './r32-nodes.ts';
import { proveTakeoverFrozen } from './takeover-frozen.ts';
import { proveTakeoverPromises } from './takeover-promises.ts';
import { proveWrongClock } from './wrong-clock.ts';
import { proveYear } from './year.ts';

type Findings = readonly string[];
interface Wrong {
  readonly wrong: Findings;
}
/** Findings that show the fault; others may come from the load of the machine. */
const wrongOf = async (proof: Promise<Wrong>, shows = /./): Promise<Findings> => (await proof).wrong.filter((line) => shows.test(line));
const proveHammered = (broken: string, seed: number, only: readonly string[], shows: RegExp): Promise<Findings> =>
  wrongOf(proveHammer({ engine: 'postgres', rounds: 5, seed, broken, only, untilFound: true }), shows);
const takenOver = [{ by: 'kill', lapses: true }] as const;
const finding = (is: boolean, what: string): Findings => (is ? [what] : []);
const fewJobs = { webhooks: 20, messages: 5, oneShots: 5, recurring: 2, minutes: 10, patienceMin: 20 };

/** Files of broken/ that are not faults: the hook itself, kills, and aids of other proofs. */
export const aids = [
  'patch',
  'killed-in-channel',
  'killed-in-config',
  'killed-in-delegation',
  'killed-in-migration',
  'killed-in-turn',
  'pausing-doctor',
  'virtual-clock',
];

/** Each broken build, and what its proof finds in it, in the shortest form that does; nothing means that it is not caught. */
export const brokenBuilds: Readonly<Record<string, (seed: number) => Promise<Findings>>> = {
  'ack-before-commit': async (seed) =>
    (await proveAckedSurvives({ rounds: 1, seed, broken: 'ack-before-commit', killAtAck: true, until: ({ lost }) => lost > 0 })).lost,
  'ages-by-the-clock': () => wrongOf(proveWrongClock({ each: 1, offDays: [1095], minutes: 2, broken: 'ages-by-the-clock' }), /ran 2 times/),
  'any-bearer': () => wrongOf(proveJailEscapes({ asScripts: true, broken: 'any-bearer', only: ['forges a bearer'] }), /it was given forged/),
  async 'await-the-turn'() {
    const { p99Ms } = await proveHookLatency({ hooks: 20, perSecond: 50, broken: 'await-the-turn' });
    return finding(p99Ms > ackWithinMs, `p99 ${p99Ms} ms`);
  },
  async 'blind-to-full-disk'() {
    const own = await wrongOf(proveFullDisk({ broken: 'blind-to-full-disk' }));
    const remote = await wrongOf(proveFullDatabaseDisk({ forMs: 500, onlyBound: true, broken: 'blind-to-full-disk' }), /^\/health/);
    return own.length > 0 && remote.length > 0 ? [...own, ...remote] : [];
  },
  'blind-to-replaced-files': () => wrongOf(proveReplacedData({ jobs: false, broken: 'blind-to-replaced-files' })),
  'breaker-not-transient': () => wrongOf(proveOutage({ ...fewJobs, broken: 'breaker-not-transient' })),
  'cached-tokens': (seed) => wrongOf(proveStops({ rounds: 1, seed, kinds: ['tokens.revoke'], broken: 'cached-tokens' })),
  'channel-acks-early': () =>
    wrongOf(killedOn('telegram', { points: ['received'], patienceMs: 20_000, broken: 'channel-acks-early' }), /not answered, seen 0 times/),
  'channel-author-approves': () =>
    wrongOf(
      proveChannelAuthority({ origins: ['a paired person, directly'], acts: ['a job'], broken: 'channel-author-approves' }),
      /was decided by Ada/,
    ),
  'channel-connects-at-once': () => wrongOf(proveAway({ as: 'refused', broken: 'channel-connects-at-once' }), /times in an hour/),
  'channel-forgets-events': () =>
    wrongOf(killedOn('slack', { points: ['committed'], broken: 'channel-forgets-events' }), /2 answers|answered 2 times/),
  'channel-guests-act': () =>
    wrongOf(proveChannelAuthority({ origins: ['anybody in a group'], acts: ['a job'], broken: 'channel-guests-act' }), /expected refused/),
  'channel-ignores-limit': () => wrongOf(proveLimit({ broken: 'channel-ignores-limit' }), /before the end of its limit/),
  'channel-last-route': () => wrongOf(proveRoutes({ broken: 'channel-last-route' }), /was sent to a group/),
  'channel-position-first': () =>
    wrongOf(killedOn('matrix', { points: ['received'], patienceMs: 20_000, broken: 'channel-position-first' }), /not answered, seen 0 times/),
  'channel-second-retry': () => wrongOf(proveLostConfirmations({ broken: 'channel-second-retry' }), /seen 2 times/),
  'channel-sends-first': () => wrongOf(killedOn('telegram', { points: ['answer read'], broken: 'channel-sends-first' }), /answered 2 times/),
  'check-at-start': async () => (await proveStartAfterCrash({ megabytes: 8, kills: 0, broken: 'check-at-start' })).checks,
  'commands-outlive-stops': (seed) =>
    wrongOf(proveStopCells({ seed, cells: [{ stop: 'run.kill', work: 'command' }], broken: 'commands-outlive-stops' })),
  'compat-of-the-gateway-only': () => wrongOf(proveConnectedClients({ only: ['pi'], broken: 'compat-of-the-gateway-only' })),
  'config-in-place': (seed) =>
    wrongOf(
      proveConfigChanges({ patches: 20, seed, broken: 'config-in-place', only: 'before the rename' }),
      /cannot be used|is missing in the history/,
    ),
  'config-row-after-file': (seed) =>
    wrongOf(proveConfigChanges({ patches: 20, seed, broken: 'config-row-after-file', only: 'before the version' }), /counts as an edit by hand/),
  'copy-of-a-live-file': (seed) => wrongOf(proveBackup({ rounds: 1, fillMb: 0, seed, broken: 'copy-of-a-live-file' })),
  async 'cut-at-high-water'() {
    const { cut } = await proveSlowLinks({ readers: 10, forMs: 2_000, broken: 'cut-at-high-water' });
    return finding(cut > 0, `${cut} of 10 readers cut`);
  },
  async 'default-timeouts'() {
    const { header, body } = await proveSlowClients({ each: 10, broken: 'default-timeouts' });
    return finding(header.left + body.left > 0, `${header.left} slow headers and ${body.left} slow bodies left`);
  },
  'deliveries-of-one-process': (seed) =>
    wrongOf(
      proveTakeoverPromises({ deaths: takenOver, replays: { honest: 3, forgeries: 0 }, seed, broken: 'deliveries-of-one-process' }),
      /turns instead of/,
    ),
  'digest-without-files': () => wrongOf(proveHostileModel({ injections: 2 * channels.length, broken: 'digest-without-files' }), /^script/),
  'doubt-commits': (seed) => wrongOf(provePostgresFaults({ rounds: { cut: 30 }, seed, broken: 'doubt-commits' }), /is there 0 times|Internal error/),
  'doubt-fails': (seed) => wrongOf(provePostgresFaults({ rounds: { cut: 30 }, seed, broken: 'doubt-fails' }), /calls were refused/),
  'doubt-repeats': (seed) =>
    wrongOf(provePostgresFaults({ rounds: { cut: 30 }, seed, broken: 'doubt-repeats' }), /already exists|Internal error|is there|were refused/),
  'environment-in-pages': async (seed) =>
    (await proveCanaries({ seed, onlyPages: true, broken: 'environment-in-pages' })).found.filter((line) => line.startsWith('the page ')),
  'every-file-clean': () => wrongOf(proveHostileModel({ injections: 2 * channels.length, broken: 'every-file-clean' }), /^(file|text in files)/),
  'exit-at-once': async (seed) => (await proveStopUnderLoad({ stops: 1, seed, broken: 'exit-at-once' })).dropped,
  'fence-without-policy': () =>
    wrongOf(proveHostileModel({ injections: 2 * channels.length, broken: 'fence-without-policy' }), /ran without an approval/),
  'fifo-lanes': async (seed) =>
    finding(!isFair(await proveFairness({ turns: 2, rounds: 1, clients: 100, seed, broken: 'fifo-lanes' })), 'a flood delays another principal'),
  'health-from-outbound': () => wrongOf(proveSilence({ broken: 'health-from-outbound' })),
  'imap-star': () => wrongOf(proveQuietMailbox({ broken: 'imap-star' }), /was not answered/),
  'kill-without-stop': (seed) =>
    wrongOf(proveStops({ rounds: 1, seed, kinds: ['run.kill'], broken: 'kill-without-stop' }), /(continue|are left) after/),
  'leaking-readers': async () => growthOf(await proveNoGrowth({ requests: 300, streams: 200, warm: 0.5, settleMs: 100, broken: 'leaking-readers' })),
  'locked-address': (seed) => wrongOf(proveGuessing({ guesses: 60, seed, broken: 'locked-address' })),
  'lost-fails': (seed) => wrongOf(provePostgresFaults({ rounds: { cut: 30 }, seed, broken: 'lost-fails' }), /calls were refused/),
  'lookup-only-guard': () => wrongOf(proveOutwardRequests({ statuses: 1, broken: 'lookup-only-guard' })),
  'method-without-scope': () => wrongOf(proveAuthorityMatrix({ broken: 'method-without-scope' }), /tokens\.create × rpc/),
  async 'missing-intent'(seed) {
    const remembered = await wrongOf(proveKilledTurns({ points: ['after a tool that runs once'], broken: 'missing-intent' }), /remembered 2 times/);
    const { doubled } = await proveSentOnce({ rounds: 1, seed, broken: 'missing-intent', until: (soFar) => soFar.doubled.length > 0 });
    const posted = doubled.filter((line) => /was posted [2-9] times/.test(line));
    return remembered.length > 0 && posted.length > 0 ? [...remembered, ...posted] : [];
  },
  'missing-owner-check': (seed) =>
    wrongOf(proveCrossOwner({ pairs: 0, only: 'session.h', seed, broken: 'missing-owner-check' }), /^session\.history conversationRef × rpc/),
  'naive-add': (seed) => wrongOf(proveClock({ cases: 400, clocks: 0, seed, broken: 'naive-add' })),
  'next-run-only': (seed) => wrongOf(proveMissed({ jobs: 3, seed, broken: 'next-run-only' }), /has 0 rows/),
  'no-answer-bound': () => wrongOf(proveEndlessProvider({ megabytes: 100, broken: 'no-answer-bound' })),
  'no-deadline': (seed) => wrongOf(provePostgresFaults({ rounds: { 'half open': 1 }, seed, broken: 'no-deadline' }), /no answers/),
  'no-descriptor-cap': () => wrongOf(proveFewDescriptors({ sockets: 400, broken: 'no-descriptor-cap' })),
  async 'no-fence'(seed) {
    const stale = await wrongOf(proveStaleOwners({ pauses: 50, seed, broken: 'no-fence' }), /has changed/);
    const late = await proveHammered('no-fence', seed, ['take-overs'], /was not there/);
    return stale.length > 0 && late.length > 0 ? [...stale, ...late] : [];
  },
  'no-jail': () => wrongOf(proveJailEscapes({ broken: 'no-jail' })),
  'browser-unwatched': (seed) => wrongOf(proveBrowserCrashes({ crashes: 1, seed, hangs: true, broken: 'browser-unwatched' })),
  'documents-in-the-daemon': () => wrongOf(proveDocumentBombs({ rounds: 1, broken: 'documents-in-the-daemon' })),
  'terminal-without-mark': () => wrongOf(proveTerminalDrives({ rounds: 1, programs: ['python3'], broken: 'terminal-without-mark' })),
  'no-keep-alive': () => wrongOf(proveDoctorRuns({ runs: 1, atOnce: 1, broken: ['pausing-doctor', 'no-keep-alive'] })),
  'no-lanes': () => wrongOf(proveArrivalOrder({ conversations: 1, broken: 'no-lanes' }), /ran at once/),
  'no-lease-fence': () => wrongOf(proveTakeoverFrozen({ frozenMs: 0, broken: 'no-lease-fence' }), /after the take-over/),
  'no-max-payload': (seed) =>
    wrongOf(proveFrames({ sequences: 6, seed, broken: 'no-max-payload', kinds: ['huge length', 'fragments that are too much together'] })),
  'no-origin-check': () => wrongOf(proveBrowserAttacks({ broken: 'no-origin-check' }), /was answered with 200/),
  async 'no-reader-cap'() {
    const load = { eventsPerSecond: 400, warmMs: 2_000, readersMs: 9_000, turnsMs: 0, resumes: false };
    const { grown } = await proveStalledReaders({ ...load, broken: 'no-reader-cap' });
    return finding(grown.heldMb > 16, `${grown.heldMb} MiB held`);
  },
  'no-retries': (seed) => proveHammered('no-retries', seed, ['deliveries', 'waits', 'stops'], /kept changing the same rows/),
  'no-run-key': (seed) =>
    wrongOf(proveKilledDelegation({ points: ['after a node has begun a run'], randomKills: 0, seed, broken: 'no-run-key' }), /twice: node/),
  'no-seccomp': () => wrongOf(proveJailEscapes({ broken: 'no-seccomp', only: ['calls what no namespace covers', 'calls by other tables'] })),
  'no-unique-occurrence': (seed) =>
    wrongOf(proveClaimedOnce({ jobs: 25, ticks: 4, seed, broken: 'no-unique-occurrence' }), /was executed [2-9] times/),
  'non-transactional-step': (seed) =>
    wrongOf(proveUpgrade({ from: [], killFrom: 14, kills: 2, begun: true, seed, broken: 'non-transactional-step' }), /killed in \d+/),
  'pages-uncompressed': () => wrongOf(measureChatPage({ runs: 1, only: ['a new chat'], broken: 'pages-uncompressed' }), /^performance/),
  'path-by-prefix': () => wrongOf(provePaths({ swaps: 0, only: ['workspace.readFile', 'ls'], broken: 'path-by-prefix' }), /reveals/),
  'pid-lock': () => wrongOf(proveTwoContainers({ broken: 'pid-lock' })),
  'pipes-for-git': () => wrongOf(proveSpecialFiles({ rounds: 1, raced: 0, broken: 'pipes-for-git' })),
  'query-on-main': async () => (await proveLoopDelay({ streams: 10, forMs: 200, conversations: 3, watched: true, broken: 'query-on-main' })).onMain,
  'raw-address-key': (seed) => wrongOf(proveGuessing({ guesses: 60, seed, broken: 'raw-address-key' })),
  'differences-as-they-are': async (seed) => (await proveCanaries({ seed, failures: false, brief: true, broken: 'differences-as-they-are' })).found,
  'redactor-with-a-limit': async (seed) => (await proveCanaries({ seed, failures: false, broken: 'redactor-with-a-limit' })).found,
  'replay-all': () => wrongOf(proveCatchUp({ jobs: 12, speed: 30, broken: 'replay-all' }), /began within/),
  'resend-on-resume': async (seed) =>
    (await proveSentOnce({ rounds: 6, seed, broken: 'resend-on-resume', until: ({ doubled }) => doubled.length > 0 })).doubled,
  'reset-outside-the-lane': (seed) =>
    wrongOf(proveResetRace({ rounds: 2, messages: 100, seed, broken: 'reset-outside-the-lane' }), /which was erased/),
  'revoke-closes-streams': (seed) =>
    wrongOf(proveStopCells({ seed, cells: [{ stop: 'tokens.revoke', work: '/rpc' }], broken: 'revoke-closes-streams' })),
  'runs-for-anyone': (seed) =>
    wrongOf(proveCrossOwner({ pairs: 0, only: 'session.run', seed, broken: 'runs-for-anyone' }), /^session\.run_status runId × rpc /),
  'scans-what-is-shown': () => wrongOf(proveSkillVetting({ each: 4, broken: 'scans-what-is-shown' }), /: written$/),
  'slow-for-strangers': (seed) => wrongOf(proveCrossOwner({ pairs: 25, only: 'session.e', seed, broken: 'slow-for-strangers' }), /foreign takes/),
  'statistics-at-stop': async () => (await proveStartAfterCrash({ megabytes: 8, kills: 0, broken: 'statistics-at-stop' })).scans,
  'stops-in-memory': (seed) => {
    const cells = fewNodeCells.filter(({ stop }) => stop === 'tokens.revoke');
    return wrongOf(proveTakeoverPromises({ deaths: takenOver, stops: { cells, controls: [] }, seed, broken: 'stops-in-memory' }), /opens something/);
  },
  'sums-deleted-with-calls': () =>
    wrongOf(proveYear({ days: 95, pace: { turns: 6, callsPerTurn: 4, events: 0, subAgents: 1 }, broken: 'sums-deleted-with-calls' })),
  'subfolders-unwatched': () => wrongOf(proveKnowledgeFolder({ files: 60, broken: 'subfolders-unwatched' }), /change in a subfolder/),
  'swallowed-error': () => wrongOf(proveStorageFaults({ calls: [15, 25, 35], commits: 8, broken: 'swallowed-error' })),
  'synchronous-normal': async () => (await proveSyncBeforeAck({ each: 4, broken: 'synchronous-normal' })).early,
  'unbounded-queue': async (seed) => faultsOf(await proveOverload({ forMs: 800, looks: 1, seed, broken: 'unbounded-queue' })),
  'unguarded-parse': (seed) => wrongOf(proveMalformed({ raw: 90, json: 300, seed, broken: 'unguarded-parse' }), /: 500 /),
  'unlocked-boot': (seed) => proveHammered('unlocked-boot', seed, ['boots'], /which was claimed after/),
  'unlocked-claims': (seed) => proveHammered('unlocked-claims', seed, ['claims', 'take-overs'], /at the same fence|instead of 1/),
  'unlocked-fence': (seed) => proveHammered('unlocked-fence', seed, ['slow owners'], /was taken over, and then/),
  'unnamed-full-disk': () => wrongOf(proveFullMediaDisk({ filesOnly: true, broken: 'unnamed-full-disk' }), /on a full disk/),
  'unnoted-calls': () => wrongOf(proveKilledBooks({ broken: 'unnoted-calls' }), /^after the kills/),
  'unsigned-timestamp-trust': async (seed) => (await proveReplays({ honest: 30, forgeries: 0, seed, broken: 'unsigned-timestamp-trust' })).unalarmed,
  'wait-as-attempt': () => wrongOf(proveOutage({ ...fewJobs, broken: 'wait-as-attempt' })),
};
