import * as z from 'zod';
import { sleep } from '../../kernel/timers.ts';
import type { AdapterDeps, Ended, Sink } from '../port.ts';
import type { SlackClient } from './client.ts';
import { readPage } from './history.ts';
import { Intake } from './intake.ts';
import { type Identity, msOf } from './message.ts';
import type { People } from './people.ts';
import type { SlackKeys as SlackConfig } from './config.ts';
import { endOf, SlackSocket, type SocketEnd } from './socket.ts';
import { Tracker } from './tracker.ts';

/** Histories are read at this pace after the first ones: Slack permits fifty a minute. */
const readAtOnce = 20;
const readEveryMs = 1_500;
/** How often it is checked whether events come at all. */
const probeMs = 5 * 60_000;
const probeLimit = 20;
const mostDeaf = 200;
/** An event may be that late. */
const lateMs = 30_000;
/** After this many refreshes in a minute the next connection gets a pause. */
const mostRefreshes = 3;
const refreshMs = 60_000;

const AuthTest = z.object({
  user_id: z.string().regex(/^[A-Z0-9]{1,32}$/),
  bot_id: z.string().nullish(),
  user: z.string(),
  team_id: z.string(),
  enterprise_id: z.string().nullish(),
});

export interface SessionDeps {
  readonly deps: AdapterDeps<SlackConfig>;
  readonly client: SlackClient;
  readonly people: People;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  /** The cursor to begin with when the gateway has none. */
  readonly cursor: string | undefined;
  readonly onStored: (cursor: string) => void;
  readonly onIdentity: (self: Identity) => void;
  /** Conversations whose events did not come in an earlier connection either. */
  readonly deaf: Set<string>;
}

/** One call of `run`: who we are, and connections one after another as Slack asks for them. */
export class Session {
  readonly #deps: SessionDeps;
  readonly #tracker: Tracker;
  #socket: SlackSocket | undefined;
  #refused: Ended | undefined;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    this.#tracker = new Tracker(deps.sink.cursor ?? deps.cursor);
  }

  async run(): Promise<Ended> {
    const { client, onIdentity, people, sink, signal } = this.#deps;
    if (signal.aborted) return { ended: 'stopped', text: 'Stopped' };
    const answer = await client.call('auth.test', {}, signal);
    if (signal.aborted) return { ended: 'stopped', text: 'Stopped' };
    if (answer.is !== 'ok') return endOf(answer);
    const parsed = AuthTest.safeParse(answer.data);
    if (!parsed.success) return { ended: 'transient', text: 'The answer is not one of the Web API of Slack' };
    const { user_id: userId, bot_id: botId, user, team_id: workspace, enterprise_id: organization } = parsed.data;
    const self: Identity = {
      userId,
      botId: botId ?? undefined,
      name: user,
      workspaces: new Set(organization == null ? [workspace] : [workspace, organization]),
    };
    people.setName(userId, user);
    onIdentity(self);
    sink.alive();
    return this.#connect(self);
  }

  /** Slack does not accept the token any more. */
  refuse(ended: Ended): void {
    this.#refused = ended;
    this.#socket?.close(ended);
  }

  async #connect(self: Identity): Promise<Ended> {
    const { clock } = this.#deps.deps;
    const begun: number[] = [];
    for (;;) {
      const end = this.#refused ?? (await this.#connectOnce(self));
      if (end.ended !== 'refresh') return end;
      begun.push(clock.monotonic());
      if (begun.filter((at) => clock.monotonic() - at < refreshMs).length > mostRefreshes)
        return { ended: 'transient', text: 'Slack asks for one connection after another' };
      if (begun.length > mostRefreshes) begun.shift();
    }
  }

  async #connectOnce(self: Identity): Promise<SocketEnd> {
    const { deps, client, deaf, people, sink, signal, onStored } = this.#deps;
    const ending = new AbortController();
    const working = AbortSignal.any([signal, ending.signal]);
    const intake = new Intake({ deps, client, people, self, sink, tracker: this.#tracker, onStored, signal: working });
    const work: Promise<void>[] = [];
    const socket = new SlackSocket(deps, signal, {
      hello: () => {
        this.#tracker.suspectAll();
        sink.connected(self.name);
        work.push(this.#catchUpAll(intake, working), this.#probe(socket, intake, working));
      },
      envelope: (envelope) => {
        const channel = intake.add(envelope);
        if (channel !== undefined) deaf.delete(channel);
      },
      alive: () => sink.alive(),
    });
    this.#socket = socket;
    const end = await socket.run();
    this.#socket = undefined;
    const closed = intake.close();
    ending.abort();
    await Promise.all([closed, ...work]);
    return end;
  }

  /** Reads what was missed of all conversations, the most recently active first. */
  async #catchUpAll(intake: Intake, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps.deps;
    let reads = 0;
    for (let spots = this.#tracker.suspects(); spots.length > 0 && !signal.aborted; spots = this.#tracker.suspects()) {
      for (const spot of spots) {
        reads += 1;
        if (reads > readAtOnce) await sleep(clock, readEveryMs, signal);
        if (signal.aborted) return;
        const end = await intake.catchUp(spot);
        if (end !== 'ok') await sleep(clock, end.is === 'limited' ? end.retryAfterMs : lateMs, signal);
      }
    }
  }

  /** Compares the most recently active conversation with what came: a connection can be alive without events. */
  async #probe(socket: SlackSocket, intake: Intake, signal: AbortSignal): Promise<void> {
    const { deps, client, deaf } = this.#deps;
    for (;;) {
      await sleep(deps.clock, probeMs, signal);
      const newest = this.#tracker.newest();
      if (signal.aborted) return;
      if (newest === undefined || this.#tracker.missingAfter({ channel: newest.channel, threadTs: undefined }) !== undefined) continue;
      const { channel, ts } = newest;
      const page = await readPage(client, { channel, threadTs: undefined }, { oldest: ts, limit: probeLimit }, signal);
      if (page.is !== 'ok') continue;
      const settledMs = deps.clock.now() - lateMs;
      const old = page.messages.map(({ message }) => message).filter((message) => msOf(message.ts) <= settledMs);
      const missed = intake.unheard(channel, old);
      if (missed.length === 0) continue;
      if (!(await intake.takeMissed(channel, missed))) return;
      if (!deaf.has(channel)) {
        if (deaf.size === mostDeaf) deaf.clear();
        deaf.add(channel);
        return socket.close({ ended: 'transient', text: 'Slack did not report a message that its history has' });
      }
      deps.log.warn({ channel }, 'Slack: messages of a conversation are not reported; check the events that the app is subscribed to');
    }
  }
}
