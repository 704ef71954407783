import { randomInt } from 'node:crypto';
import { AppError } from '../../../kernel/app-error.ts';
import type { Adapter, RatePlan, SendResult } from '../../../channels/port.ts';
import type { Core } from '../../../kernel/core.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import { sleep } from '../../../kernel/timers.ts';
import type { InboxMessage } from '../../unattended/inbox/api.ts';
import type { PartRow, Sender } from './api.ts';
import { announceDelivery } from './announce.ts';
import { beginSend, readHeads, type SendEnd } from './store.ts';

export interface SenderDeps extends Core {
  readonly bootId: string;
  /** Stores what became of a send; returns the alert about one that failed. */
  readonly finishSend: Operation<SendEnd, InboxMessage | undefined>;
  /** Marks what an earlier process was sending; returns the alerts about it. */
  readonly recoverSends: Operation<{ readonly instance: string; readonly bootId: string; readonly atMs: number }, InboxMessage[]>;
  readonly announceAlert: (message: InboxMessage) => void;
}

export interface SenderOptions {
  readonly instance: string;
  readonly adapter: Adapter;
  readonly rate: RatePlan;
  readonly onSent: () => void;
}

/** Milliseconds before the next try of a part that was certainly not sent. */
const ladderMs = [1_000, 5_000, 25_000, 120_000, 600_000];
const maxAttempts = 8;
/** A connected instance looks for work at least this often: wakes are hints. */
const lookMs = 30_000;
/** Pause after the database failed. */
const retryMs = 2_000;
const finishAgainMs = 1_000;
/** Time that a send under way has when the instance stops. */
const stopMs = 5_000;

/** Sends what waits for one instance while it is connected: one part at a time for each conversation, in order, and only this repeats a send. */
export class InstanceSender implements Sender {
  readonly #deps: SenderDeps;
  readonly #options: SenderOptions;
  readonly #busy = new Map<string, Promise<void>>();
  #wake = Promise.withResolvers<void>();
  #tokens: number;
  #filledAt: number;

  constructor(deps: SenderDeps, options: SenderOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#tokens = options.rate.burst;
    this.#filledAt = deps.clock.monotonic();
  }

  wake(): void {
    this.#wake.resolve();
  }

  /** Runs until `signal` aborts. What an earlier process was sending is marked first: it may have been sent. */
  async run(signal: AbortSignal): Promise<void> {
    const { db, clock, log, bootId, recoverSends } = this.#deps;
    const { instance } = this.#options;
    const stop = () => this.wake();
    signal.addEventListener('abort', stop, { once: true });
    let isRecovered = false;
    while (!signal.aborted) {
      this.#wake = Promise.withResolvers();
      let nextMs = retryMs;
      try {
        if (!isRecovered) for (const alert of await db.write(recoverSends, { instance, bootId, atMs: clock.now() })) this.#deps.announceAlert(alert);
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
    const { db, clock } = this.#deps;
    let nextMs = lookMs;
    for (const head of await db.read(readHeads, { instance: this.#options.instance })) {
      const lane = JSON.stringify([head.conversationId, head.threadId]);
      const waitMs = head.notBeforeMs - clock.now();
      if (this.#busy.has(lane) || head.state !== 'pending') continue;
      if (waitMs > 0) nextMs = Math.min(nextMs, waitMs);
      else {
        const sent = this.#send(head, signal).finally(() => {
          this.#busy.delete(lane);
          this.wake();
        });
        this.#busy.set(lane, sent);
      }
    }
    return nextMs;
  }

  async #send(part: PartRow, signal: AbortSignal): Promise<void> {
    const { db, clock, log, bootId } = this.#deps;
    try {
      await this.#takeToken(signal);
      if (signal.aborted || !(await db.write(beginSend, { id: part.id, bootId, atMs: clock.now() }))) return;
      const startedAtMs = clock.now();
      const result = await this.#sendOnce(part, signal);
      const end = endOf(result, part, clock.now());
      if (end.is === 'accepted') this.#options.onSent();
      await this.#finish({ id: part.id, bootId, ...end, atMs: clock.now() }, signal);
      announceDelivery(this.#deps, { ...part, state: end.is === 'retry' ? 'pending' : end.is });
      if (end.is !== 'retry') this.#trace(part, end, startedAtMs);
    } catch (error) {
      // A part that is left as `sending` is `unknown` at the next start.
      log.error({ err: error, deliveryId: part.id }, 'Failed to store what became of a message');
      await sleep(clock, retryMs, signal);
    }
  }

  async #sendOnce(part: PartRow, signal: AbortSignal): Promise<SendResult> {
    const late = new AbortController();
    const { clock } = this.#deps;
    let cancel: (() => void) | undefined;
    const stop = () => (cancel = clock.after(stopMs, () => late.abort()));
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    try {
      const { conversationId, threadId, text } = part;
      return await this.#options.adapter.send(
        { conversationId, threadId: threadId ?? undefined, text },
        { key: `${part.opKey}/${part.part}`, signal: late.signal },
      );
    } finally {
      signal.removeEventListener('abort', stop);
      cancel?.();
    }
  }

  /** The platform has acted: the row must say so, whatever the database does for a moment. */
  async #finish(end: SendEnd, signal: AbortSignal): Promise<void> {
    const { db, clock, finishSend } = this.#deps;
    for (let tries = 1; ; tries += 1) {
      try {
        const alert = await db.write(finishSend, end);
        if (alert !== undefined) this.#deps.announceAlert(alert);
        return;
      } catch (error) {
        if (tries === 5 || signal.aborted || (error instanceof AppError && error.code !== 'unavailable')) throw error;
        await sleep(clock, finishAgainMs, signal);
      }
    }
  }

  #trace(
    { channelType, instance, agentId, principalId, conversationRef, turnId, id, part, parts }: PartRow,
    end: ReturnType<typeof endOf>,
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

  async #takeToken(signal: AbortSignal): Promise<void> {
    const { burst, perSecond } = this.#options.rate;
    const { clock } = this.#deps;
    while (!signal.aborted) {
      const nowMs = clock.monotonic();
      this.#tokens = Math.min(burst, this.#tokens + ((nowMs - this.#filledAt) * perSecond) / 1_000);
      this.#filledAt = nowMs;
      if (this.#tokens >= 1) {
        this.#tokens -= 1;
        return;
      }
      await sleep(clock, ((1 - this.#tokens) * 1_000) / perSecond, signal);
    }
  }

  /** Waits until the next poll; ends early at a wake. */
  async #sleep(ms: number): Promise<void> {
    let cancel = () => {};
    const due = new Promise<void>((resolve) => (cancel = this.#deps.clock.after(ms, resolve)));
    await Promise.race([due, this.#wake.promise]);
    cancel();
  }
}

/** Decides by the evidence of the wire. */
function endOf(result: SendResult, { attempts }: PartRow, atMs: number): Omit<SendEnd, 'id' | 'bootId' | 'atMs'> {
  switch (result.is) {
    case 'sent':
      return { is: 'accepted', platformId: result.platformId };
    case 'rejected':
      return { is: 'rejected', errorKind: result.kind, error: result.text };
    case 'ambiguous':
      return { is: 'unknown', errorKind: 'unconfirmed', error: result.text };
    case 'notSent': {
      const waitMs = result.retryAfterMs ?? ladderMs[Math.min(attempts, ladderMs.length - 1)] ?? 0;
      if (attempts + 1 >= maxAttempts) return { is: 'rejected', errorKind: 'attempts', error: result.text };
      return {
        is: 'retry',
        errorKind: 'not_sent',
        error: result.text,
        notBeforeMs: atMs + Math.round(waitMs / 2) + randomInt(Math.ceil(waitMs / 2) + 1),
      };
    }
  }
}
