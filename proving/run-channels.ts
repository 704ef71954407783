import { proveLostConfirmations, proveQuietMailbox, proveRoutes, proveSilence } from './channel-promises.ts';
import { type ChannelKillPoint, channelKillPoints, type KilledChannelsReport, proveKilledChannels } from './killed-channels.ts';
import { type ChannelPlatform, channelPlatforms, missingFor } from './lib/channel-platforms.ts';
import { type Proof, printFindings, type ProofOptions, type Proofs } from './lib/proof.ts';

/** A home and a platform serve that many rounds: conversations do not grow without limit. */
const roundsOfOne = 10;
/** Time after which a message counts as lost in a broken build. */
const brokenMs = 20_000;

interface Caught {
  readonly broken: string;
  readonly what: string;
  readonly point: ChannelKillPoint;
}

/** Fault that each platform is also proved with. */
const faults: Partial<Readonly<Record<ChannelPlatform, Caught>>> = {
  telegram: { broken: 'channel-acks-early', what: 'acknowledged before the commit', point: 'received' },
  email: { broken: 'channel-sends-first', what: 'marked after the send', point: 'answer read' },
  inspircd: { broken: 'channel-sends-first', what: 'marked after the send', point: 'answer read' },
  ngircd: { broken: 'channel-sends-first', what: 'marked after the send', point: 'answer read' },
  discord: { broken: 'channel-acks-early', what: 'acknowledged before the commit', point: 'received' },
  slack: { broken: 'channel-forgets-events', what: 'events without keys', point: 'committed' },
  matrix: { broken: 'channel-acks-early', what: 'acknowledged before the commit', point: 'received' },
};

async function proveRounds(platform: ChannelPlatform, kills: number, progress: ProofOptions['progress']): Promise<KilledChannelsReport> {
  const rounds = Math.ceil(kills / channelKillPoints.length);
  const sum: KilledChannelsReport = { kills: 0, answered: 0, unknown: 0, gone: 0, wrong: [] };
  for (let begun = 0; begun < rounds; begun += roundsOfOne) {
    const report = await proveKilledChannels({ platform, rounds: Math.min(roundsOfOne, rounds - begun), progress });
    sum.kills += report.kills;
    sum.answered += report.answered;
    sum.unknown += report.unknown;
    sum.gone += report.gone;
    sum.wrong.push(...report.wrong);
    progress(`${platform}: ${sum.kills} kills, ${sum.answered} answered, ${sum.unknown} unknown, ${sum.wrong.length} wrong`);
  }
  return sum;
}

async function provePlatform(platform: ChannelPlatform, kills: number, progress: ProofOptions['progress']): Promise<Proof> {
  const promise = `Killed at ${channelKillPoints.length} points of a message of ${platform}, the daemon answers it once after a restart, or says that it may have`;
  const missing = missingFor(platform);
  if (missing !== undefined) return { promise, figure: `not run: ${missing}`, caught: '-', good: false };
  const report = await proveRounds(platform, kills, progress);
  printFindings(report.wrong);
  const { broken, what, point } = faults[platform] ?? { broken: '', what: '', point: 'received' };
  const found = await proveKilledChannels({ platform, points: [point], broken, patienceMs: brokenMs, progress });
  return {
    promise,
    figure: `${report.kills} kills: ${report.answered} answered once, ${report.unknown} unknown with an alert, ${report.gone} not stored and not offered again, ${report.wrong.length} lost, doubled or without an alert`,
    caught: `${what}: ${found.wrong.length} wrong`,
    good: report.wrong.length === 0 && found.wrong.length > 0,
  };
}

/** The full forms of the proofs of chat channels; `kills` on each platform. */
export function channelProofs({ kills, progress }: Pick<ProofOptions, 'progress'> & { readonly kills: number }): Proofs {
  return {
    ...Object.fromEntries(channelPlatforms.map((platform) => [`channels-${platform}`, () => provePlatform(platform, kills, progress)])),
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
  };
}
