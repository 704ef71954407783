import { sleep } from '../../kernel/timers.ts';
import type { AdapterDeps, ReceivedMessage, Sink } from '../port.ts';
import type { NotOk, SlackClient } from './client.ts';
import { readPage } from './history.ts';
import {
  BlockActions,
  editOf,
  type Identity,
  isOwn,
  isReply,
  MessageEvent,
  type MessageContext,
  peopleOf,
  pressOf,
  receivedOf,
  type SlackMessage,
  spotOf,
} from './message.ts';
import type { People } from './people.ts';
import type { Envelope } from './socket.ts';
import { isLater, type Spot, type Tracker } from './tracker.ts';

/** Envelopes not yet stored; Slack sends those beyond again. */
const most = 256;
const takenAtOnce = 64;
const againMs = 1_000;
const mostRemembered = 1_000;
const caughtUpAtOnce = 100;
/** Older messages are not caught up. */
const oldestMs = 60 * 60_000;
/** A request of a conversation holds up the events that come meanwhile. */
const catchUpMs = 10_000;

export interface IntakeDeps {
  readonly deps: Pick<AdapterDeps<unknown>, 'clock' | 'log'>;
  readonly client: SlackClient;
  readonly people: People;
  readonly self: Identity;
  readonly sink: Sink;
  readonly tracker: Tracker;
  readonly onStored: (cursor: string) => void;
  readonly signal: AbortSignal;
}

type End = (isStored: boolean) => void;
type Item =
  | { readonly is: 'message'; readonly event: MessageEvent; readonly end: End }
  | { readonly is: 'press'; readonly press: BlockActions; readonly end: End }
  | { readonly is: 'missed'; readonly channel: string; readonly message: SlackMessage; readonly end: End }
  | { readonly is: 'catchUp'; readonly spot: Spot; readonly done: (end: 'ok' | NotOk) => void };
type Entry = Exclude<Item, { readonly is: 'catchUp' }>;

/** Messages on their way into the storage, one after another: events in their order, and before them what was missed of their conversation. */
export class Intake {
  readonly #deps: IntakeDeps;
  readonly #context: MessageContext;
  readonly #queue: Item[] = [];
  /** Keys of messages that this connection stored: a mention comes as two events, and what is caught up may come as one. */
  readonly #stored = new Set<string>();
  #working: Promise<void> | undefined;
  #isClosing = false;

  constructor(deps: IntakeDeps) {
    this.#deps = deps;
    this.#context = { self: deps.self, names: deps.people, isOurThread: (channel, threadTs) => deps.tracker.isOurThread(channel, threadTs) };
  }

  /** Takes an envelope, which is acknowledged when its message is stored; returns the conversation of a message. */
  add({ type, body, acknowledge }: Envelope): string | undefined {
    const item = itemOf(type, body, (isStored) => isStored && acknowledge());
    if (item === undefined) acknowledge();
    else if (this.#queue.length < most) this.#push(item);
    else this.#deps.deps.log.warn({}, 'Slack: more messages come than can be stored; Slack sends them again');
    return item?.is === 'message' ? item.event.channel : undefined;
  }

  /** Reads what was missed of a conversation or a thread. */
  catchUp(spot: Spot): Promise<'ok' | NotOk> {
    return new Promise((done) => this.#push({ is: 'catchUp', spot, done }));
  }

  /** Returns those messages of a history that no event brought and that are for us. */
  unheard(channel: string, messages: readonly SlackMessage[]): SlackMessage[] {
    const queued = new Set(this.#queue.flatMap((item) => (item.is === 'message' && item.event.channel === channel ? [item.event.ts] : [])));
    return messages.filter(
      (one) =>
        !isReply(one) &&
        !queued.has(one.ts) &&
        this.#deps.tracker.isNew({ channel, threadTs: undefined }, one.ts) &&
        receivedOf(channel, one, this.#context) !== undefined,
    );
  }

  /** Stores messages that no event brought; returns whether they are. */
  async takeMissed(channel: string, messages: readonly SlackMessage[]): Promise<boolean> {
    const stored = await Promise.all(
      inOrder(messages).map((message) => new Promise<boolean>((end) => this.#push({ is: 'missed', channel, message, end }))),
    );
    return !stored.includes(false);
  }

  /** Resolves when nothing waits any more: all is stored, or the storage refused once more. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#working;
  }

  #push(item: Item): void {
    this.#queue.push(item);
    this.#working ??= this.#work();
  }

  async #work(): Promise<void> {
    for (let [head] = this.#queue; head !== undefined; [head] = this.#queue) {
      if (head.is === 'catchUp') {
        head.done(await this.#catchUp(head.spot));
        this.#queue.shift();
      } else {
        const end = this.#queue.findIndex(({ is }) => is === 'catchUp');
        const batch = this.#queue.slice(0, Math.min(takenAtOnce, end === -1 ? takenAtOnce : end)) as Entry[];
        await this.#takeBatch(batch);
        this.#queue.splice(0, batch.length);
      }
    }
    // In the same step as the last check of the queue: what is added next begins again.
    this.#working = undefined;
  }

  async #takeBatch(batch: readonly Entry[]): Promise<void> {
    const { people, tracker, signal } = this.#deps;
    for (const spot of batch.map(spotOfEntry)) if (tracker.missingAfter(spot) !== undefined) await this.#catchUp(spot);
    await people.learn(batch.flatMap(peopleOfEntry), signal);
    const before = tracker.toCursor();
    const messages = new Map<string, ReceivedMessage>();
    let hasOurs = false;
    for (const entry of batch) {
      const received = this.#receive(entry);
      hasOurs ||= received === 'ours';
      if (received !== undefined && received !== 'ours' && !this.#stored.has(received.eventKey ?? ''))
        messages.set(received.eventKey ?? '', received);
    }
    const isChanged = messages.size > 0 || (hasOurs && tracker.toCursor() !== before);
    const isStored = !isChanged || (await this.#store([...messages.values()]));
    for (const { end } of batch) end(isStored);
  }

  /** Returns the message of an entry; `ours` when we wrote it, and people answer us in its thread from then on. */
  #receive(entry: Entry): ReceivedMessage | 'ours' | undefined {
    if (entry.is === 'press') return pressOf(entry.press, this.#context);
    const [channel, message] = entry.is === 'message' ? [entry.event.channel, entry.event] : [entry.channel, entry.message];
    if (entry.is === 'message' && (message.subtype === 'message_changed' || message.subtype === 'message_deleted'))
      return editOf(entry.event, this.#context);
    return this.#saw(channel, message);
  }

  #saw(channel: string, message: SlackMessage): ReceivedMessage | 'ours' | undefined {
    const { self, tracker } = this.#deps;
    const own = isOwn(message, self);
    const received = receivedOf(channel, message, this.#context);
    if (!own && received === undefined) return undefined;
    const isOurs = own || message.parent_user_id === self.userId;
    tracker.saw(spotOf(channel, message), message.ts, isOurs ? 'ours' : received?.mentionsUs === true ? 'ofUs' : 'other');
    return own ? 'ours' : received;
  }

  async #catchUp(spot: Spot): Promise<'ok' | NotOk> {
    const { client, deps, people, signal, tracker } = this.#deps;
    const after = tracker.missingAfter(spot);
    if (after === undefined || this.#isClosing) return 'ok';
    const oldest = laterOf(after, tsOf(deps.clock.now() - oldestMs));
    const late = new AbortController();
    const cancel = deps.clock.after(catchUpMs, () => late.abort());
    const page = await readPage(client, spot, { oldest, limit: caughtUpAtOnce }, AbortSignal.any([signal, late.signal]));
    cancel();
    if (page.is === 'refused') {
      // It was deleted, or we are not there any more.
      deps.log.debug({ channel: spot.channel, error: page.error }, 'Slack: failed to read what was missed');
      tracker.forget(spot);
      return 'ok';
    }
    if (page.is !== 'ok') return page;
    const missed = inOrder(page.messages.map(({ message }) => message)).filter(({ ts }) => isLater(ts, oldest));
    await people.learn(missed.flatMap(peopleOf), signal);
    const messages = missed.flatMap((message) => {
      const received = this.#saw(spot.channel, message);
      return received === undefined || received === 'ours' || this.#stored.has(received.eventKey ?? '') ? [] : [received];
    });
    tracker.caughtUp(spot);
    if (messages.length === 0 || (await this.#store(messages))) return 'ok';
    tracker.suspect(spot, after);
    return { is: 'failed', text: 'The channel stopped', maybeSent: false };
  }

  #remember(messages: readonly ReceivedMessage[]): void {
    for (const { eventKey } of messages) this.#stored.add(eventKey ?? '');
    for (const oldest of this.#stored) {
      if (this.#stored.size <= mostRemembered) return;
      this.#stored.delete(oldest);
    }
  }

  /** Returns whether the messages were stored: they are tried until they are, but after the end of the connection only once. */
  async #store(messages: readonly ReceivedMessage[]): Promise<boolean> {
    const { deps, onStored, sink, signal, tracker } = this.#deps;
    for (;;) {
      const cursor = tracker.toCursor();
      try {
        await sink.take(messages, cursor);
        onStored(cursor);
        this.#remember(messages);
        return true;
      } catch (error) {
        deps.log.warn({ err: error, waiting: messages.length }, 'Failed to store messages of Slack');
        if (this.#isClosing || signal.aborted) return false;
        await sleep(deps.clock, againMs, signal);
      }
    }
  }
}

function itemOf(type: string, body: unknown, end: End): Entry | undefined {
  if (type === 'interactive') {
    const press = BlockActions.safeParse(body);
    return press.success ? { is: 'press', press: press.data, end } : undefined;
  }
  if (type !== 'events_api' || typeof body !== 'object' || body === null || !('event' in body)) return undefined;
  const event = MessageEvent.safeParse(body.event);
  return event.success ? { is: 'message', event: event.data, end } : undefined;
}

function spotOfEntry(entry: Entry): Spot {
  if (entry.is === 'message') return spotOf(entry.event.channel, entry.event);
  if (entry.is === 'missed') return spotOf(entry.channel, entry.message);
  return { channel: entry.press.channel.id, threadTs: undefined };
}

function peopleOfEntry(entry: Entry): string[] {
  if (entry.is === 'press') return [entry.press.user.id];
  const message = entry.is === 'message' ? entry.event : entry.message;
  const { message: edited, previous_message: before } = entry.is === 'message' ? entry.event : {};
  return [message, edited, before].flatMap((one) => (one == null ? [] : peopleOf(one)));
}

const inOrder = <One extends { readonly ts: string }>(messages: readonly One[]): One[] => messages.toSorted((a, b) => Number(a.ts) - Number(b.ts));
const tsOf = (ms: number): string => `${Math.floor(Math.max(0, ms) / 1_000)}.000000`;
const laterOf = (one: string, other: string): string => (isLater(one, other) ? one : other);
