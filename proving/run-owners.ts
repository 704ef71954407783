import { proveResetRace } from './e19-reset-race.ts';
import { proveArrivalOrder } from './e21-arrival-order.ts';
import { counts, printFindings, type ProofOptions, type Proofs, total } from './lib/proof.ts';
import { findPostgres } from '@gatehouse/testkit/postgres';
import { proveHammer } from './hammer.ts';
import { proveCrossOwner } from './r24-cross-owner.ts';
import { proveCanaries } from './r27-canaries.ts';
import { proveJailEscapes } from './r33-jail-escapes.ts';
import { proveHostileModel } from './r34-hostile-model.ts';
import { proveUpgrade } from './r38-upgrade.ts';
import { proveBackup } from './r39-backup.ts';

/** The full forms of the proofs that guard an owner's things: from others, from leaking, through upgrades and backups, and from each other. */
export function ownerProofs({ seed, progress }: ProofOptions): Proofs {
  return {
    async r24() {
      const { wrong, cells, controls, timed } = await proveCrossOwner({ pairs: 400, seed });
      printFindings(wrong);
      const owners = await proveCrossOwner({ pairs: 0, seed, broken: 'missing-owner-check' });
      const times = await proveCrossOwner({ pairs: 100, only: 'session.', seed, broken: 'slow-for-strangers' });
      const slow = times.wrong.filter((line) => line.includes('foreign takes')).length;
      return {
        promise: 'Foreign things are answered like nonexistent ones, byte for byte and as fast',
        figure: `${total(cells)} answers compared (${counts(cells)}) and ${controls} that must reach; ${timed.inputs} inputs timed with ${timed.pairs} pairs: medians at most ${timed.widestMs.toFixed(2)} ms apart (t ${timed.widestT.toFixed(1)}); ${wrong.length} wrong; seed ${seed}`,
        caught: `no check of the owner: ${owners.wrong.length} wrong; 3 ms more for hidden things: ${slow} inputs distinguishable by time`,
        good: wrong.length === 0 && owners.wrong.length > 0 && slow > 0,
      };
    },
    async r27() {
      const { found, unprovoked, dashboard, ...report } = await proveCanaries({ seed, allPages: true });
      const shown =
        dashboard === undefined
          ? 'no browser'
          : `${dashboard.pages} pages in Chromium, ${dashboard.texts} texts of the owner not shown to somebody else`;
      printFindings([...found, ...unprovoked]);
      const broken = await proveCanaries({ seed, failures: false, broken: 'redactor-with-a-limit' });
      const pages = dashboard === undefined ? undefined : await proveCanaries({ seed, onlyPages: true, broken: 'environment-in-pages' });
      return {
        promise: 'No secret leaks, however it is padded or cut',
        figure: `${report.canaries} secrets, ${report.surfaces} surfaces, ${report.megabytes} MiB, ${shown}: ${found.length} found; ${unprovoked.length} provocations failed; seed ${seed}`,
        caught: `a redactor that skips long texts: ${broken.found.length} found; the environment in pages alone: ${pages?.found.length ?? 'no browser'}${pages === undefined ? '' : ' found'}`,
        good: found.length === 0 && unprovoked.length === 0 && report.canaries >= 30 && broken.found.length > 0 && pages?.found.length !== 0,
      };
    },
    async r33() {
      const { wrong, ...report } = await proveJailEscapes({ progress });
      printFindings(wrong);
      const broken = await proveJailEscapes({ broken: 'no-jail', progress });
      const open = await proveJailEscapes({ broken: 'no-seccomp', only: ['calls what no namespace covers', 'calls by other tables'], progress });
      return {
        promise: 'A command reaches nothing outside of its jail, and uses no more than its limits',
        figure: `${report.programs} programs that escape or exhaust: ${wrong.length} effects outside; the last ended ${report.latestMs} ms after its limit, the daemon held ${report.grownMb} MiB more at most`,
        caught: `no jail: ${broken.wrong.length} effects of ${broken.programs} programs; no filter of system calls: ${open.wrong.length} of ${open.programs}`,
        good: wrong.length === 0 && report.programs >= 40 && broken.wrong.length > 0 && open.wrong.length === open.programs,
      };
    },
    async r34() {
      const { wrong, ...report } = await proveHostileModel({ injections: 200 });
      printFindings(wrong);
      const broken = await proveHostileModel({ injections: 40, broken: 'fence-without-policy' });
      const free = broken.wrong.filter((line) => line.includes('ran without an approval')).length;
      const cleaned = await proveHostileModel({ injections: 36, broken: 'every-file-clean' });
      const unbound = await proveHostileModel({ injections: 36, broken: 'digest-without-files' });
      return {
        promise: 'A model that obeys every instruction it reads runs no call that changes something or reaches out without an approval of that call',
        figure: `${report.injections} instructions, ${total(report.attempts)} obeyed (${counts(report.attempts)}), ${report.approved} approved of which ${report.ran} ran: ${wrong.length} faults`,
        caught: `fences alone: ${free} of ${broken.injections} ran without an approval; every file clean: ${cleaned.wrong.length} faults; approvals without files: ${unbound.wrong.length} faults`,
        good: wrong.length === 0 && total(report.attempts) > 0 && report.ran > 0 && free > 0,
      };
    },
    async r38() {
      const { wrong, ...report } = await proveUpgrade({ from: [10, 11, 12, 13, 14, 15, 16, 17, 24], killFrom: 10, seed });
      printFindings(wrong);
      const broken = await proveUpgrade({ from: [], killFrom: 14, kills: 6, begun: true, seed, broken: 'non-transactional-step' });
      return {
        promise: 'Data of earlier releases survive whole, also a kill during a migration; those of a newer program are refused',
        figure: `${report.upgrades} schemas, ${report.rows} rows, ${report.backups} copies made before; ${report.kills} kills, at three points of each migration: ${wrong.length} faults`,
        caught: `statements run one by one: ${broken.wrong.length} faults after ${broken.kills} kills`,
        good: wrong.length === 0 && broken.wrong.length > 0,
      };
    },
    async r39() {
      const { wrong, ...report } = await proveBackup({ rounds: 5, fillMb: 30, seed });
      printFindings(wrong);
      const broken = await proveBackup({ rounds: 1, fillMb: 0, seed, broken: 'copy-of-a-live-file' });
      return {
        promise: 'A backup made under load holds all writes acknowledged before it, whole and in order, no secret, and can be restored',
        figure: `${report.rounds} rounds, ${report.before} writes acknowledged before and ${report.meanwhile} while the backup was made, ${report.megabytes} MiB: ${wrong.length} faults; seed ${seed}`,
        caught: `a plain copy of the live file: ${broken.wrong.length} faults`,
        good: wrong.length === 0 && report.meanwhile > 0 && broken.wrong.length > 0,
      };
    },
    async hammer() {
      const promise = 'Every write operation can be run by two processes against the same rows: each acknowledged write is there, once';
      if (findPostgres() === undefined) return { promise, figure: 'not run: PostgreSQL is not installed', caught: '-', good: false };
      const { wrong, driven, ...report } = await proveHammer({ engine: 'postgres', rounds: 20, seed, progress });
      printFindings(wrong);
      const faults = ['no-retries', 'unlocked-claims', 'unlocked-fence', 'unlocked-boot', 'no-fence'] as const;
      const found: Record<string, number> = {};
      for (const broken of faults)
        found[broken] = (await proveHammer({ engine: 'postgres', rounds: 5, seed, broken, untilFound: true })).wrong.length;
      return {
        promise,
        figure: `${driven.length} operations, ${report.rounds} rounds on PostgreSQL: ${wrong.length} faults; seed ${seed}`,
        caught: `faults in builds without retries, locks of claims, fences and boots, and fences: ${counts(found)}`,
        good: wrong.length === 0 && Object.values(found).every((some) => some > 0),
      };
    },
    async e19() {
      const { wrong, memories, ...report } = await proveResetRace({ rounds: 20, messages: 100, seed });
      printFindings(wrong);
      const broken = await proveResetRace({ rounds: 3, messages: 100, seed, broken: 'reset-outside-the-lane' });
      return {
        promise: 'Messages that race an erasure are gone or kept whole (E19); memories survive a deletion (E20)',
        figure: `${report.rounds} erasures among 100 messages each: ${report.gone} gone, ${report.kept} kept, ${wrong.length} faults; memories ${memories.before} before, ${memories.afterDelete} after the deletion, ${memories.afterErasure} after the erasure by name; seed ${seed}`,
        caught: `erased during a running turn: ${broken.wrong.length} faults`,
        good: wrong.length === 0 && report.gone > 0 && report.kept > 0 && broken.wrong.length > 0,
      };
    },
    async e21() {
      const { wrong, ...report } = await proveArrivalOrder({ conversations: 10 });
      printFindings(wrong);
      const broken = await proveArrivalOrder({ conversations: 2, broken: 'no-lanes' });
      return {
        promise: 'Messages sent to one conversation at once are answered one after the other, in the order of arrival',
        figure: `50 messages at once to each of 10 conversations: ${report.turns} turns, ${report.atOnce} at once in a conversation, ${wrong.length} faults`,
        caught: `turns that do not wait for each other: ${broken.atOnce} at once, ${broken.wrong.length} faults`,
        good: wrong.length === 0 && report.turns === 500 && broken.wrong.length > 0,
      };
    },
  };
}
