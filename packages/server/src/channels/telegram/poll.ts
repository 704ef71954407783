import { GrammyError } from 'grammy';
import { sleep } from '../../kernel/timers.ts';
import { RequestFailed } from '../http.ts';
import type { AdapterDeps, Ended, ReceivedMessage, Sink } from '../port.ts';
import { type BotApi, pollMs, pollSeconds } from './api.ts';
import { messageOf, type Us } from './message.ts';
import { retryAfterMs } from './outcome.ts';
import { numberOf, parseUpdate } from './update.ts';

type Deps = Pick<AdapterDeps<unknown>, 'clock' | 'log'>;

/** Pause after messages could not be stored. */
const againMs = 1_000;
/** Proxies and routers cut connections that are silent: after this time it is not taken for a failure of the platform. */
const silentMs = 10_000;
/** How often it is checked whether polls return what Telegram keeps. */
const probeMs = 4 * 60_000;
const stopped: Ended = { ended: 'stopped', text: 'Stopped' };
const kinds = ['message', 'edited_message', 'callback_query'] as const;

interface Batch {
  readonly messages: readonly ReceivedMessage[];
  /** Ids of presses, whose clients show a progress sign until they are answered. */
  readonly presses: readonly string[];
  readonly cursor: number;
}

/** What outlives a connection. */
export interface PollMemory {
  /** Polls returned nothing although Telegram kept messages, and nothing has come since. */
  isDeaf: boolean;
}

/** Receives until `signal` aborts or the connection ends. Telegram drops an update when a poll asks for the next one: only after it is stored. */
export class Poll {
  readonly #deps: Deps;
  readonly #api: BotApi;
  readonly #sink: Sink;
  readonly #signal: AbortSignal;
  readonly #memory: PollMemory;
  readonly #answers = new Set<Promise<unknown>>();
  /** Monotonic time of the last check for messages that polls do not return. */
  #probedAt: number;
  /** The last check found some. */
  #isSuspect = false;

  constructor(deps: Deps, api: BotApi, sink: Sink, signal: AbortSignal, memory: PollMemory) {
    this.#deps = deps;
    this.#api = api;
    this.#sink = sink;
    this.#signal = signal;
    this.#memory = memory;
    this.#probedAt = deps.clock.monotonic();
  }

  async run(): Promise<Ended> {
    try {
      const { id, username } = await this.#ask((signal) => this.#api.getMe(signal));
      await this.#ask((signal) => this.#api.deleteWebhook({ drop_pending_updates: false }, signal));
      return await this.#receive({ id, username });
    } catch (error) {
      return this.#signal.aborted ? stopped : endOf(error);
    } finally {
      await Promise.all(this.#answers);
    }
  }

  async #receive(us: Us): Promise<Ended> {
    let last = lastOf(this.#sink.cursor, us);
    for (let isFirst = true; !this.#signal.aborted; isFirst = false) {
      const updates = await this.#poll(last, isFirst ? 0 : pollSeconds);
      if (isFirst) this.#sink.connected(`@${us.username}`);
      if (updates.length === 0) {
        if (!isFirst && (await this.#isDeaf())) return { ended: 'transient', text: 'Telegram keeps messages that it does not return to a poll' };
        continue;
      }
      [this.#isSuspect, this.#memory.isDeaf] = [false, false];
      const batch = this.#read(updates, us);
      if (batch === undefined) return { ended: 'transient', text: 'Telegram sent updates that cannot be read' };
      if (!(await this.#store(batch, us))) continue;
      last = batch.cursor;
      for (const id of batch.presses) this.#answer(id);
    }
    return stopped;
  }

  /** Returns whether two checks, with an empty poll between them, found messages that polls do not return; once until some come. */
  async #isDeaf(): Promise<boolean> {
    const { clock, log } = this.#deps;
    if (!this.#isSuspect && clock.monotonic() - this.#probedAt < probeMs) return false;
    this.#probedAt = clock.monotonic();
    const { pending_update_count: kept } = await this.#ask((signal) => this.#api.getWebhookInfo(signal));
    const isDeaf = this.#isSuspect && kept > 0;
    this.#isSuspect = !isDeaf && kept > 0;
    if (!isDeaf) return false;
    log.warn({ kept }, 'Telegram keeps messages that it does not return to a poll');
    // A new connection may help; one after another would not.
    if (this.#memory.isDeaf) return false;
    this.#memory.isDeaf = true;
    return true;
  }

  /** The first poll does not wait: its answer is the proof that polling works. */
  async #poll(last: number | undefined, timeout: number): Promise<readonly unknown[]> {
    const { clock, log } = this.#deps;
    const startedAt = clock.monotonic();
    const payload = { ...(last !== undefined && { offset: last + 1 }), timeout, allowed_updates: kinds };
    try {
      return await this.#ask((signal) => this.#api.getUpdates(payload, signal));
    } catch (error) {
      const tookMs = clock.monotonic() - startedAt;
      if (!(error instanceof RequestFailed) || this.#signal.aborted || tookMs < silentMs || tookMs >= pollMs) throw error;
      log.debug({ tookMs }, 'A poll of Telegram was cut off; polling again');
      return [];
    }
  }

  /** Returns the answer; waits as long as Telegram says when it is asked too often. */
  async #ask<Result>(call: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        const result = await call(this.#signal);
        this.#sink.alive();
        return result;
      } catch (error) {
        const waitMs = error instanceof GrammyError ? retryAfterMs(error) : undefined;
        if (waitMs === undefined || this.#signal.aborted) throw error;
        this.#sink.alive();
        this.#deps.log.warn({ waitMs }, 'Telegram is asked too often; waiting');
        await sleep(this.#deps.clock, waitMs, this.#signal);
      }
    }
  }

  /** Returns undefined when no update has a number: nothing could be confirmed. */
  #read(updates: readonly unknown[], us: Us): Batch | undefined {
    const { clock, log } = this.#deps;
    const messages: ReceivedMessage[] = [];
    const presses: string[] = [];
    let cursor: number | undefined;
    for (const one of updates) {
      const number = numberOf(one);
      const update = parseUpdate(one);
      if (number === undefined || update === undefined) log.warn({ updateId: number }, 'Skipped an update of Telegram that cannot be read');
      if (number === undefined) continue;
      cursor = Math.max(cursor ?? number, number);
      const message = update && messageOf(update, `${us.id}:${number}`, us, clock.now());
      if (message !== undefined) messages.push(message);
      if (update?.callback_query !== undefined) presses.push(update.callback_query.id);
    }
    return cursor === undefined ? undefined : { messages, presses, cursor };
  }

  /** Returns whether the messages are stored: otherwise they are received again. */
  async #store({ messages, cursor }: Batch, us: Us): Promise<boolean> {
    const { clock, log } = this.#deps;
    try {
      await this.#sink.take(messages, `${us.id}:${cursor}`);
      return true;
    } catch (error) {
      log.warn({ err: error }, 'Failed to store messages of Telegram; they are received again');
      await sleep(clock, againMs, this.#signal);
      return false;
    }
  }

  /** Ends the progress sign of a pressed button; nothing depends on it. */
  #answer(id: string): void {
    const answered = this.#api
      .answerCallbackQuery({ callback_query_id: id }, this.#signal)
      .catch(() => this.#deps.log.debug({}, 'Failed to answer the press of a button'))
      .finally(() => this.#answers.delete(answered));
    this.#answers.add(answered);
  }
}

/** Returns the last update that is stored. Each bot has its own numbers: that of another one would confirm what nobody has received. */
function lastOf(cursor: string | undefined, us: Us): number | undefined {
  const [, bot, last] = /^(\d+):(\d{1,15})$/.exec(cursor ?? '') ?? [];
  return bot === String(us.id) ? Number(last) : undefined;
}

function endOf(error: unknown): Ended {
  if (error instanceof RequestFailed) return { ended: 'transient', text: error.message };
  if (!(error instanceof GrammyError)) return { ended: 'transient', text: 'Polling failed' };
  const { error_code: code, description } = error;
  if (code === 401 || code === 404)
    return { ended: 'unauthorized', text: `Telegram does not accept the token (${description}): copy it again from @BotFather, or check apiUrl` };
  if (code !== 409) return { ended: 'transient', text: description };
  const cause = /webhook/i.test(description) ? 'another program set a webhook for this bot' : 'another program receives the messages of this bot';
  return { ended: 'conflict', text: `${cause}: stop it, or create a separate bot for it (${description})` };
}
