import { randomInt } from 'node:crypto';
import { AppError } from '../../../kernel/app-error.ts';
import type { Adapter, Button, LookUp, OutgoingAttachment, OutgoingPart, Platform, SendResult } from '../../../channels/port.ts';
import type { Core } from '../../../kernel/core.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import { parseJson } from '../../../kernel/json.ts';
import { sleep } from '../../../kernel/timers.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { InboxMessage } from '../../unattended/inbox/api.ts';
import type { OutgoingFile, PartRow, Sender, SendFinish } from './api.ts';
import { announceDelivery } from './announce.ts';
import type { Admits } from '../../../channels/people.ts';
import { markRepeat, restOfAnswer } from './marks.ts';
import { type ClaimedPart, dropEdit, type LeftSends, maxHeads, type PartHead, readHead, readHeads, type SendBegin, type SendEnd } from './store.ts';
import { type HeldDecision, type HeldMessage, readHeld, releaseHeld } from './held.ts';
import type { QuietUntil } from './quiet-hours.ts';
import { TokenBuckets } from './token-buckets.ts';

export interface SenderDeps extends Core {
  readonly bootId: string;
  /** Claims a part, before anything of it leaves; one that is too old, or for another platform, ends with an alert. */
  readonly beginSend: Operation<
    SendBegin,
    | { readonly is: 'taken' }
    | { readonly is: 'begun'; readonly part: ClaimedPart }
    | { readonly is: 'ended'; readonly part: PartRow; readonly alert: InboxMessage | undefined }
  >;
  /** Stores what became of a send; returns the alert about one that failed. */
  readonly finishSend: Operation<SendEnd, SendFinish>;
  /** Marks what was being sent when an earlier process or connection ended; returns the alerts about it. */
  readonly recoverSends: Operation<LeftSends, InboxMessage[]>;
  readonly announceAlert: (message: InboxMessage) => void;
  /** Returns a file of the media store; undefined when it is gone. */
  readonly readFile: (mediaId: string) => Promise<Uint8Array | undefined>;
  readonly quietUntil: QuietUntil;
  readonly agents: Pick<AgentsApi, 'find'>;
}

export interface SenderOptions {
  readonly instance: string;
  readonly adapter: Adapter;
  readonly platform: Platform;
  /** People who may write directly over the instance, and so be written to. */
  readonly admits?: Admits | undefined;
  readonly onSent: () => void;
  /** What happens with a part that may have been sent: a person decides, or it is sent once more with a mark. */
  readonly onUnknown: 'park' | 'resend';
}

/** Milliseconds before the next try of a part that was certainly not sent. */
const ladderMs = [1_000, 5_000, 25_000, 120_000, 600_000];
const maxAttempts = 8;
/** A connected instance looks for work at least this often: wakes are hints. */
const lookMs = 30_000;
/** Pause after the database failed. */
const retryMs = 2_000;
const finishAgainMs = 1_000;
const longestFinishAgainMs = 30_000;
/** Parts whose retries are timed by the monotonic clock, too. */
const maxRetries = 10_000;
/** Time that a send under way has when the instance stops. */
const stopMs = 5_000;
/** Failures of the instance in a row after which it pauses, and the pauses: doubled from the first to the last. */
const failuresUntilPause = 5;
const firstPauseMs = 5_000;
const longestPauseMs = 300_000;
/** Between two look-ups of a send that was not found. */
const secondLookUpMs = 5_000;

/** Sends what waits for one instance while it is connected: one part at a time for each conversation, in order, and only this repeats a send. */
export class InstanceSender implements Sender {
  readonly #deps: SenderDeps;
  readonly #options: SenderOptions;
  readonly #busy = new Map<string, Promise<void>>();
  /** Conversations with a part that was due when they were looked at, while one of them was being sent. */
  readonly #again = new Set<string>();
  readonly #tokens: TokenBuckets;
  readonly #retries = new Map<string, Retry>();
  #wake = Promise.withResolvers<void>();
  #failures = 0;
  /** There may be more conversations than were read. */
  #hasMore = false;
  /** Monotonic time of the next check of what quiet hours hold. */
  #releaseAt = Number.NEGATIVE_INFINITY;

  constructor(deps: SenderDeps, options: SenderOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#tokens = new TokenBuckets(options.platform.rate, deps.clock);
  }

  /** Whether what became of an ambiguous send can be found out. */
  get #canResolve(): boolean {
    const { platform, adapter } = this.#options;
    return platform.keyWindowMs !== undefined || adapter.lookUp !== undefined;
  }

  get isPaused(): boolean {
    return this.#failures >= failuresUntilPause;
  }

  wake(): void {
    this.#wake.resolve();
  }

  /** Runs until `signal` aborts. What was being sent when an earlier process or connection ended is marked first: it may have been sent. */
  async run(signal: AbortSignal): Promise<void> {
    const { db, clock, log, recoverSends } = this.#deps;
    const { instance, adapter, onUnknown } = this.#options;
    const left = { instance, canResolve: this.#canResolve, canEdit: adapter.edit !== undefined, repeatUnknown: onUnknown === 'resend' };
    const stop = () => this.wake();
    signal.addEventListener('abort', stop, { once: true });
    let isRecovered = false;
    while (!signal.aborted) {
      this.#wake = Promise.withResolvers();
      let nextMs = retryMs;
      try {
        if (!isRecovered) for (const alert of await db.write(recoverSends, { ...left, atMs: clock.now() })) this.#deps.announceAlert(alert);
        isRecovered = true;
        nextMs = await this.#sendHeads(signal);
      } catch (error) {
        if (!signal.aborted) log.error({ err: error, instance }, 'Failed to read the messages to a channel; they are read again');
      }
      await this.#sleep(nextMs);
    }
    signal.removeEventListener('abort', stop);
    await Promise.allSettled(this.#busy.values());
  }

  /** Starts what is due; returns the time until the next is. */
  async #sendHeads(signal: AbortSignal): Promise<number> {
    const { db } = this.#deps;
    let nextMs = await this.#releaseHeld();
    const heads = await db.read(readHeads, { instance: this.#options.instance });
    this.#hasMore = heads.length === maxHeads;
    for (const head of heads) {
      const lane = laneOf(head);
      const waitMs = this.#waitMs(head);
      if (head.state !== 'pending') continue;
      if (waitMs > 0) nextMs = Math.min(nextMs, waitMs);
      else if (this.#busy.has(lane)) this.#again.add(lane);
      else this.#busy.set(lane, this.#sendLane(head, lane, signal));
    }
    return nextMs;
  }

  /** Lets what quiet hours held be sent when they have ended; returns the time until the next check. */
  async #releaseHeld(): Promise<number> {
    const { db, clock } = this.#deps;
    const waitMs = this.#releaseAt - clock.monotonic();
    if (waitMs > 0) return Math.min(waitMs, lookMs);
    const atMs = clock.now();
    let nextMs = lookMs;
    const held = await db.read(readHeld, { instance: this.#options.instance });
    const decisions = held.flatMap((message): HeldDecision[] => {
      const untilMs = this.#deps.quietUntil(message, atMs);
      if (untilMs !== undefined) nextMs = Math.min(nextMs, untilMs - atMs);
      return this.#decisionsAbout(message, untilMs);
    });
    const released = decisions.length === 0 ? [] : await db.write(releaseHeld, { decisions, atMs });
    const dropped = new Set(decisions.flatMap(({ is, message }) => (is === 'dropped' ? [message.id] : [])));
    for (const message of released) if (dropped.has(message.id)) announceDelivery(this.#deps, { ...message, state: 'rejected' });
    this.#releaseAt = clock.monotonic() + nextMs;
    return nextMs;
  }

  #decisionsAbout(message: HeldMessage, untilMs: number | undefined): HeldDecision[] {
    const agent = this.#deps.agents.find(message.agentId);
    if (agent === undefined) return [{ message, is: 'dropped' }];
    if (untilMs !== undefined) return untilMs > message.notBeforeMs ? [{ message, is: 'held', untilMs }] : [];
    // What a suspended agent made waits, too.
    return agent.suspended ? [] : [{ message, is: 'sent' }];
  }

  /** Sends what is due in a conversation, one part after the other. */
  async #sendLane(head: PartHead, lane: string, signal: AbortSignal): Promise<void> {
    const { conversationId, threadId } = head;
    const place = { instance: this.#options.instance, conversationId, threadId };
    let next: PartHead | undefined = head;
    do {
      this.#again.delete(lane);
      if (next !== undefined) await this.#send(next, lane, signal);
      next = signal.aborted ? undefined : await this.#dueIn(place);
    } while (next !== undefined || this.#again.has(lane));
    this.#busy.delete(lane);
    if (this.#hasMore && this.#busy.size < maxHeads / 2) this.wake();
  }

  /** Returns the next part of a conversation when it is due; of one that is due later, the time is read with those of the others. */
  async #dueIn(place: Parameters<typeof readHead.run>[1]): Promise<PartHead | undefined> {
    const { db, log } = this.#deps;
    try {
      const head = await db.read(readHead, place);
      if (head?.state === 'pending' && this.#waitMs(head) <= 0) return head;
      if (head === undefined) return undefined;
    } catch (error) {
      log.error({ err: error, instance: place.instance }, 'Failed to read the messages to a channel; they are read again');
    }
    this.wake();
    return undefined;
  }

  async #send(head: PartHead, lane: string, signal: AbortSignal): Promise<void> {
    const { clock, log, bootId } = this.#deps;
    const { id } = head;
    try {
      await this.#tokens.take(lane, signal);
      if (signal.aborted) return;
      const part = await this.#begin(head);
      if (part === undefined) return;
      const [startedAtMs, startedAt] = [clock.now(), clock.monotonic()];
      const end = this.#isKeyKnown(part)
        ? this.#endOf(await this.#sendOnce(part, signal), { ...part, begunAtMs: startedAtMs })
        : this.#endOfLookUp(await this.#lookUp(part, signal), part);
      this.#remember(part, end, startedAt);
      if (end.is === 'accepted') this.#options.onSent();
      const repeatUnknown = this.#options.onUnknown === 'resend';
      const state = await this.#finish({ id: part.id, bootId, ...end, repeatUnknown, atMs: clock.now() }, signal);
      if (state === undefined) return;
      announceDelivery(this.#deps, { ...part, state });
      if (state !== 'pending') this.#trace(part, { ...end, is: state }, startedAtMs);
    } catch (error) {
      // A part that is left as `sending` is marked at the next connect.
      log.error({ err: error, deliveryId: id }, 'Failed to store what became of a message');
      await sleep(clock, retryMs, signal);
    }
  }

  /** Returns the time until a part is due, by the sooner of two clocks: nothing waits longer when the wall clock is set. */
  #waitMs({ id, notBeforeMs }: PartHead): number {
    const { clock } = this.#deps;
    const dueAt = this.#retries.get(id)?.dueAt ?? Number.POSITIVE_INFINITY;
    return Math.min(notBeforeMs - clock.now(), dueAt - clock.monotonic());
  }

  /** Claims a part; undefined when it is not pending any more, or too old. */
  async #begin(head: PartHead): Promise<ClaimedPart | undefined> {
    const { db, clock, bootId, beginSend } = this.#deps;
    const { channelType } = this.#options.platform.capabilities;
    const { admits } = this.#options;
    const { id } = head;
    const atMs = clock.now();
    const quietUntilMs = this.#deps.quietUntil(head, atMs);
    const start = await db.write(beginSend, { id, channelType, bootId, atMs, ageNowMs: clock.ageNow(), admits, quietUntilMs });
    if (start.is === 'taken') return undefined;
    if (start.is === 'begun') return start.part;
    this.#retries.delete(id);
    if (start.alert !== undefined) this.#deps.announceAlert(start.alert);
    announceDelivery(this.#deps, start.part);
    const { state: is, errorKind } = start.part;
    this.#trace(start.part, { is, errorKind }, clock.now());
    return undefined;
  }

  /** Keeps the times of a retry by the clock that nobody sets. */
  #remember({ id, ambiguousSinceMs }: PartRow, { is, notBeforeMs, ambiguousSinceMs: nowSinceMs }: PartEnd, startedAt: number): void {
    const { clock } = this.#deps;
    const known = this.#retries.get(id);
    this.#retries.delete(id);
    if (is !== 'retry' || this.#retries.size >= maxRetries) return;
    const dueAt = clock.monotonic() + (notBeforeMs ?? 0) - clock.now();
    const isNew = ambiguousSinceMs === null && nowSinceMs != null;
    this.#retries.set(id, { dueAt, ambiguousAt: nowSinceMs == null ? undefined : isNew ? startedAt : known?.ambiguousAt });
  }

  /** Whether it may be sent: it did certainly not arrive, or the platform knows its key again. */
  #isKeyKnown({ id, ambiguousSinceMs }: PartRow): boolean {
    const { keyWindowMs = 0 } = this.#options.platform;
    if (ambiguousSinceMs === null) return true;
    const { clock } = this.#deps;
    // One clock may have been set back, the other does not count while the machine sleeps.
    const since = this.#retries.get(id)?.ambiguousAt;
    const ageMs = Math.max(clock.now() - ambiguousSinceMs, since === undefined ? -1 : clock.monotonic() - since);
    return ageMs >= 0 && ageMs < keyWindowMs;
  }

  async #sendOnce(part: ClaimedPart, signal: AbortSignal): Promise<SendResult> {
    let outgoing: OutgoingPart;
    try {
      const attachment = await this.#fileOf(part);
      if (attachment === null) return { is: 'rejected', kind: 'file', text: 'The file is not in the media store any more' };
      outgoing = { ...(await this.#outgoing(part)), attachment };
    } catch (error) {
      this.#deps.log.error({ err: error, deliveryId: part.id }, 'Failed to prepare a message to a channel; it is tried again');
      return { is: 'notSent', text: 'It could not be prepared; the log says why' };
    }
    const replaced = await this.#replacePreview(part, outgoing, signal);
    if (replaced !== undefined) return replaced;
    return this.#withTime(signal, (late) => this.#options.adapter.send(outgoing, { key: keyOf(part), signal: late }));
  }

  /** Returns the file of a part; undefined when it has none, null when it is gone. */
  async #fileOf({ fileJson, text }: PartRow): Promise<OutgoingAttachment | null | undefined> {
    if (fileJson === null) return undefined;
    const file = parseJson(fileJson, { maxDepth: 2 }) as OutgoingFile;
    const bytes = file.mediaId === restOfAnswer ? Buffer.from(text) : await this.#deps.readFile(file.mediaId);
    return bytes === undefined ? null : { ...file, bytes: bytes.byteLength, read: () => Promise.resolve(bytes) };
  }

  /** Edits the preview of an answer; undefined when there is none, or it cannot be edited: then the answer is sent. */
  async #replacePreview({ id, editsId: messageId }: PartRow, outgoing: OutgoingPart, signal: AbortSignal): Promise<SendResult | undefined> {
    const { adapter } = this.#options;
    if (messageId === null || adapter.edit === undefined) return undefined;
    const { conversationId, threadId } = outgoing;
    const act = await this.#withTime(signal, (late) => adapter.edit?.({ conversationId, threadId, messageId }, outgoing, { signal: late }));
    if (act?.is === 'done') return { is: 'sent', platformId: messageId };
    // An edit can be repeated without harm.
    if (act?.kind === 'rate_limited' || act?.kind === 'unavailable' || act?.kind === 'ambiguous')
      return { is: 'notSent', text: act.text, retryAfterMs: act.retryAfterMs };
    // What follows is a send, which must not be repeated as an edit is.
    const { db, bootId } = this.#deps;
    if (await db.write(dropEdit, { id, bootId })) return undefined;
    return { is: 'notSent', text: 'Another process sends it' };
  }

  async #lookUp(part: ClaimedPart, signal: AbortSignal): Promise<LookUp> {
    const { adapter } = this.#options;
    if (adapter.lookUp === undefined) return { is: 'unclear', text: part.error ?? 'The platform did not confirm it' };
    const outgoing = await this.#outgoing(part);
    const options = { key: keyOf(part), sinceMs: part.ambiguousSinceMs ?? 0 };
    const found = await this.#withTime(signal, (late) => adapter.lookUp?.(outgoing, { ...options, signal: late }));
    return found ?? { is: 'unclear', text: 'The platform did not confirm it' };
  }

  /** Renders a part for its platform; the same at each try. */
  async #outgoing(part: ClaimedPart): Promise<OutgoingPart> {
    const { conversationId, threadId, recipients, text: whole, fileJson, subject, replyTo, buttonsJson, repeats } = part;
    const { render } = await import('../../../channels/render/render.ts');
    const { text: rules } = this.#options.platform;
    const text = fileJson === null ? whole : '';
    return {
      conversationId,
      threadId: threadId ?? undefined,
      recipients,
      ...render(repeats === 0 ? text : markRepeat(text, rules), rules.flavour),
      subject: subject ?? undefined,
      replyTo: replyTo ?? undefined,
      buttons: buttonsJson === null ? undefined : (parseJson(buttonsJson, { maxDepth: 3 }) as Button[]),
    };
  }

  /** Runs a call, which has some seconds left when the instance stops. */
  async #withTime<T>(signal: AbortSignal, run: (late: AbortSignal) => T | Promise<T>): Promise<T> {
    const late = new AbortController();
    const { clock } = this.#deps;
    let cancel: (() => void) | undefined;
    const stop = () => (cancel = clock.after(stopMs, () => late.abort()));
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    try {
      return await run(late.signal);
    } finally {
      signal.removeEventListener('abort', stop);
      cancel?.();
    }
  }

  /** Decides by the evidence of the wire. */
  #endOf(result: SendResult, { attempts, ambiguousSinceMs, begunAtMs }: PartRow): PartEnd {
    const { clock } = this.#deps;
    const isAmbiguous = ambiguousSinceMs !== null;
    if (result.is === 'notSent') return this.#retry(result, { attempts, ambiguousSinceMs });
    this.#failures = 0;
    switch (result.is) {
      case 'sent':
        return { is: 'accepted', platformId: result.platformId };
      case 'rejected':
        // The refusal says nothing of the first try.
        return { is: isAmbiguous ? 'unknown' : 'rejected', errorKind: result.kind, error: result.text };
      case 'ambiguous': {
        const end = { errorKind: 'unconfirmed', error: result.text };
        if (!this.#canResolve || attempts + 1 >= maxAttempts) return { is: 'unknown', ...end };
        return {
          is: 'retry',
          ...end,
          notBeforeMs: clock.now() + spread(ladderMs[Math.min(attempts, 1)] ?? 0),
          ambiguousSinceMs: ambiguousSinceMs ?? begunAtMs ?? clock.now(),
        };
      }
    }
  }

  #retry(
    { text, retryAfterMs, scope }: Extract<SendResult, { is: 'notSent' }>,
    { attempts, ambiguousSinceMs }: Pick<PartRow, 'attempts' | 'ambiguousSinceMs'>,
  ): PartEnd {
    const { clock } = this.#deps;
    // A limit of the platform is an answer; anything else may be a failure of the whole instance.
    this.#failures = retryAfterMs === undefined ? this.#failures + 1 : 0;
    const isPaused = this.isPaused || scope === 'instance';
    const pauseMs = retryAfterMs ?? Math.min(longestPauseMs, firstPauseMs * 2 ** (this.#failures - failuresUntilPause));
    if (isPaused) this.#tokens.hold(pauseMs);
    if (!isPaused && attempts + 1 >= maxAttempts)
      return { is: ambiguousSinceMs === null ? 'rejected' : 'unknown', errorKind: 'attempts', error: text };
    const ladder = ladderMs[Math.min(attempts, ladderMs.length - 1)] ?? 0;
    // The time of the platform is waited out in full.
    const waitMs = isPaused ? pauseMs : retryAfterMs === undefined ? spread(ladder) : retryAfterMs + randomInt(250);
    return { is: 'retry', errorKind: 'not_sent', error: text, notBeforeMs: clock.now() + waitMs, ambiguousSinceMs, isFree: isPaused };
  }

  #endOfLookUp(found: LookUp, { attempts, ambiguousSinceMs, errorKind }: PartRow): PartEnd {
    const nowMs = this.#deps.clock.now();
    const isLast = attempts + 1 >= maxAttempts;
    switch (found.is) {
      case 'found':
        return { is: 'accepted', platformId: found.platformId };
      case 'absent':
        // A history may be late: only a second look-up permits another send.
        if (errorKind === absentOnce)
          return { is: 'retry', errorKind: 'not_sent', error: 'It was not sent', notBeforeMs: nowMs, ambiguousSinceMs: null };
        return { is: 'retry', errorKind: absentOnce, error: 'It was not found', notBeforeMs: nowMs + secondLookUpMs, ambiguousSinceMs };
      case 'unclear':
        if (found.retry !== true || isLast) return { is: 'unknown', errorKind: 'unconfirmed', error: found.text };
        return {
          is: 'retry',
          errorKind: 'unconfirmed',
          error: found.text,
          notBeforeMs: nowMs + spread(ladderMs[Math.min(attempts, ladderMs.length - 1)] ?? 0),
          ambiguousSinceMs,
        };
    }
  }

  /** The platform has acted: the row must say so, whatever the database does for a moment. */
  async #finish(end: SendEnd, signal: AbortSignal): Promise<SendFinish['state']> {
    const { db, clock, finishSend } = this.#deps;
    for (let tries = 1; ; tries += 1) {
      try {
        const { state, alert } = await db.write(finishSend, end);
        if (alert !== undefined) this.#deps.announceAlert(alert);
        return state;
      } catch (error) {
        if (signal.aborted || (error instanceof AppError && error.code !== 'unavailable')) throw error;
        await sleep(clock, Math.min(longestFinishAgainMs, finishAgainMs * tries), signal);
      }
    }
  }

  #trace(
    { channelType, instance, agentId, principalId, conversationRef, turnId, id, part, parts }: PartRow,
    end: { readonly is: string; readonly errorKind?: string | null | undefined },
    startedAtMs: number,
  ): void {
    this.#deps.traceWork({
      kind: 'delivery',
      startedAtMs,
      agentId,
      principalId,
      channelType,
      channelId: instance,
      outcome: end.is === 'accepted' ? 'ok' : 'failed',
      endReason: end.is,
      error: end.is === 'accepted' ? null : { kind: end.errorKind ?? end.is },
      ...(conversationRef !== null && { conversationRef }),
      ...(turnId !== null && { parentId: turnId }),
      refs: { deliveryId: id },
      facts: { part, parts },
    });
  }

  /** Waits until the next poll; ends early at a wake. */
  async #sleep(ms: number): Promise<void> {
    let cancel = () => {};
    const due = new Promise<void>((resolve) => (cancel = this.#deps.clock.after(ms, resolve)));
    await Promise.race([due, this.#wake.promise]);
    cancel();
  }
}

/** Monotonic times of a part that is tried again. */
interface Retry {
  readonly dueAt: number;
  /** When the first try began that may have arrived. */
  readonly ambiguousAt: number | undefined;
}

type PartEnd = Omit<SendEnd, 'id' | 'bootId' | 'atMs'>;
/** It was not found once. */
const absentOnce = 'absent';

const laneOf = ({ conversationId, threadId }: PartHead): string => JSON.stringify([conversationId, threadId]);
const keyOf = ({ opKey, part }: PartRow): string => `${opKey}/${part}`;
const spread = (ms: number): number => Math.round(ms / 2) + randomInt(Math.ceil(ms / 2) + 1);
