import { proveChannelAuthority } from './channel-authority.ts';
import { proveAuthorityChanges } from './channel-authority-changes.ts';
import { proveLostConfirmations, proveQuietMailbox, proveRoutes, proveSilence } from './channel-promises.ts';
import { type OutageReport, proveAway, proveHole, proveLimit, proveSharedAccount } from './channel-outages.ts';
import {
  type ChannelKillPoint,
  channelKillPoints,
  type KilledChannelReport,
  type KilledChannelsReport,
  noKills,
  proveKilledChannels,
} from './killed-channels.ts';
import { type ChannelPlatform, channelPlatforms, missingFor } from './lib/channel-platforms.ts';
import { keepKills, readKills } from './lib/kept-kills.ts';
import { counts, type Proof, printFindings, type ProofOptions, type Proofs } from './lib/proof.ts';

/** A home and its platforms serve that many rounds: conversations do not grow without limit. */
const roundsOfOne = 5;
/** Time after which a message counts as lost in a broken build. */
const brokenMs = 20_000;

interface Caught {
  readonly what: string;
  readonly point: ChannelKillPoint;
  readonly platforms: readonly ChannelPlatform[];
}

/** Faults that the platforms are also proved with. */
const faults: Readonly<Record<string, Caught>> = {
  'channel-acks-early': { what: 'acknowledged before the commit', point: 'received', platforms: ['telegram'] },
  // Nothing is acknowledged to a homeserver; Discord is resumed at a position, which is stored with the messages.
  'channel-position-first': { what: 'position before the messages', point: 'received', platforms: ['matrix', 'discord'] },
  'channel-sends-first': { what: 'marked after the send', point: 'answer read', platforms: ['email', 'inspircd', 'ngircd'] },
  'channel-forgets-events': { what: 'events without keys', point: 'committed', platforms: ['slack'] },
};

/** The cells in which the broken builds of the authority show. */
const fewCells = { origins: ['a paired person, directly', 'anybody in a group'], acts: ['a job'] };

type Outcomes = Readonly<Partial<Record<ChannelPlatform, Pick<Proof, 'figure' | 'caught' | 'good'>>>>;

/** Kills daemons that serve all platforms of this machine, and continues where an earlier run on the same commit ended. */
async function killAll({ kills, under, progress }: ChannelProofOptions): Promise<Outcomes> {
  const platforms = channelPlatforms.filter((platform) => missingFor(platform) === undefined);
  const sum = await readKills(under);
  const rounds = Math.ceil(kills / channelKillPoints.length);
  const roundsOf = (platform: ChannelPlatform) => Math.floor((sum[platform]?.kills ?? 0) / channelKillPoints.length);
  for (;;) {
    const begun = Math.min(...platforms.map(roundsOf));
    if (!(begun < rounds)) break;
    const reports = await proveKilledChannels({ platforms, rounds: Math.min(roundsOfOne, rounds - begun), progress });
    for (const platform of platforms) sum[platform] = added(sum[platform] ?? noKills(), reports[platform] ?? noKills());
    await keepKills(under, sum);
  }
  const found: KilledChannelsReport = {};
  for (const [broken, { point, platforms: shown }] of Object.entries(faults)) {
    const there = shown.filter((platform) => platforms.includes(platform));
    Object.assign(found, await proveKilledChannels({ platforms: there, points: [point], broken, patienceMs: brokenMs, progress }));
  }
  return Object.fromEntries(
    platforms.map((platform) => {
      const { kills: killed, answered, unknown, gone, wrong } = sum[platform] ?? noKills();
      printFindings(wrong);
      const { what = '' } = Object.values(faults).find((fault) => fault.platforms.includes(platform)) ?? {};
      const caught = found[platform]?.wrong.length ?? 0;
      return [
        platform,
        {
          figure: `${killed} kills: ${answered} answered once, ${unknown} unknown with an alert, ${gone} not stored and not offered again, ${wrong.length} lost, doubled or without an alert`,
          caught: `${what}: ${caught} wrong`,
          good: wrong.length === 0 && caught > 0,
        },
      ];
    }),
  );
}

const added = (a: KilledChannelReport, b: KilledChannelReport): KilledChannelReport => ({
  kills: a.kills + b.kills,
  answered: a.answered + b.answered,
  unknown: a.unknown + b.unknown,
  gone: a.gone + b.gone,
  wrong: [...a.wrong, ...b.wrong],
});

interface ChannelProofOptions extends Pick<ProofOptions, 'progress'> {
  /** Kills of daemons, each at one point of one message of every platform. */
  readonly kills: number;
  /** Commit that is proved; undefined when nothing may be kept for a later run. */
  readonly under: string | undefined;
}

/** The full forms of the proofs of chat channels. The first of a platform kills for all of them. */
export function channelProofs(options: ChannelProofOptions): Proofs {
  let killed: Promise<Outcomes> | undefined;
  const provePlatform = async (platform: ChannelPlatform): Promise<Proof> => {
    const promise = `Killed at ${channelKillPoints.length} points of a message of ${platform}, the daemon answers it once after a restart, or says that it may have`;
    const outcome = (await (killed ??= killAll(options)))[platform];
    return { promise, ...(outcome ?? { figure: `not run: ${missingFor(platform)}`, caught: '-', good: false }) };
  };
  return {
    ...Object.fromEntries(channelPlatforms.map((platform) => [`channels-${platform}`, () => provePlatform(platform)])),
    async 'channels-authority'() {
      const all = await proveChannelAuthority({ progress: options.progress });
      const { acts, wrong: changed } = await proveAuthorityChanges();
      const wrong = [...all.wrong, ...changed];
      printFindings(wrong);
      const author = await proveChannelAuthority({ ...fewCells, broken: 'channel-author-approves' });
      const guests = await proveChannelAuthority({ ...fewCells, broken: 'channel-guests-act' });
      const shown = Object.entries(all.cells).map(([verdict, count]) => `${count} ${verdict}`);
      return {
        promise:
          'Over a channel owners act, an owner decides about what others ask for, and strangers are refused or not seen, also when people lose or gain that meanwhile',
        figure: `cells of who, where and what: ${shown.join(', ')}; ${all.tries} approvals tried with the right code by others; ${Object.keys(acts).length} changes meanwhile; ${wrong.length} wrong`,
        caught: `the author approves: ${author.wrong.length}; strangers act: ${guests.wrong.length} wrong`,
        good: wrong.length === 0 && [author, guests].every((one) => one.wrong.length > 0),
      };
    },
    async 'channels-promises'() {
      const lost = await proveLostConfirmations({ each: 20 });
      const routes = await proveRoutes({ each: 10 });
      const silence = await proveSilence();
      const quiet = await proveQuietMailbox();
      const wrong = [...lost.wrong, ...routes.wrong, ...silence.wrong, ...quiet.wrong];
      printFindings(wrong);
      const again = await proveLostConfirmations({ broken: 'channel-second-retry' });
      const last = await proveRoutes({ broken: 'channel-last-route' });
      const deaf = await proveSilence({ broken: 'health-from-outbound' });
      const star = await proveQuietMailbox({ broken: 'imap-star' });
      const caught = [again, last, deaf, star];
      return {
        promise: 'A lost confirmation never doubles an answer, each answer goes to where its message came from, and a silent connection is noticed',
        figure: `20 lost confirmations, 10 pairs of conversations, a silent connection and a quiet mailbox: ${wrong.length} wrong`,
        caught: `a second retry: ${again.wrong.length}; the last route: ${last.wrong.length}; health from sends: ${deaf.wrong.length}; the last mail again: ${star.wrong.length} wrong`,
        good: wrong.length === 0 && caught.every((one) => one.wrong.length > 0),
      };
    },
    async 'channels-outages'() {
      const refused = await proveAway({ as: 'refused' });
      const hole = await proveAway({ as: 'hole' });
      const short = await proveHole();
      const limit = await proveLimit();
      const shared = await proveSharedAccount();
      const wrong = [...refused.wrong, ...hole.wrong, ...short.wrong, ...limit.wrong, ...shared.wrong];
      printFindings(wrong);
      const storm = await proveAway({ as: 'refused', broken: 'channel-connects-at-once' });
      const holeStorm = await proveAway({ as: 'hole', broken: 'channel-connects-at-once' });
      const early = await proveLimit({ broken: 'channel-ignores-limit' });
      const quarrel = await proveSharedAccount({ broken: 'channel-connects-at-once' });
      const shown = (report: OutageReport) => `connects ${counts(report.tries)}, connections ${counts(report.connections)}`;
      return {
        promise:
          'Platforms that are away, silent, limiting or shared with another client are asked ever less often, and each message is answered once afterwards',
        figure: `an hour refused: ${shown(refused)}; an hour of silence: ${shown(hole)}; three minutes of silence, in s: noticed after ${counts(short.noticed)}, connected again after ${counts(short.back)}; 50 answers behind a limit of 40 s; two daemons with one account: ${shared.tries} connects in 10 minutes; ${wrong.length} wrong`,
        caught: `connected at once: ${storm.wrong.length} refused, ${holeStorm.wrong.length} silent, ${quarrel.wrong.length} shared; the named time ignored: ${early.wrong.length} wrong`,
        good: wrong.length === 0 && [storm, holeStorm, early, quarrel].every((one) => one.wrong.length > 0),
      };
    },
  };
}
