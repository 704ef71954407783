import { randomInt } from 'node:crypto';
import type { ChannelState } from '@gatehouse/contract';
import type { Ended, ReceivedMessage } from '../../../channels/port.ts';
import type { Core } from '../../../kernel/core.ts';
import { sleep } from '../../../kernel/timers.ts';
import type { Sender } from '../delivery/api.ts';
import type { InstanceConfig } from './config.ts';
import { type OpenedPlatform, type OpenPlatform, platformOf } from './platforms.ts';

export interface InstanceDeps extends Core {
  readonly open: OpenPlatform;
  readonly take: (
    from: { readonly instance: string; readonly channelType: string },
    received: readonly ReceivedMessage[],
    cursor?: string,
  ) => Promise<readonly string[]>;
  readonly cursorOf: (instance: string) => Promise<string | undefined>;
  readonly createSender: (instance: string, config: InstanceConfig, platform: OpenedPlatform, onSent: () => void) => Sender;
}

/**
 * Between two connects: doubled from the first, with jitter; of one that stays up for a minute the count begins again. In the first minutes no
 * pause is longer than half a minute, so that the end of a short failure is noticed soon.
 */
const firstPauseMs = 1_000;
const longestPauseMs = 30_000;
const triesUntilSlow = 20;
const slowPauseMs = 300_000;
const steadyMs = 60_000;
/** Another client uses the account. */
const conflictPauseMs = 60_000;

/** One configured channel: connects, takes in, sends, and connects again; nothing that happens to it touches another one. */
export class Instance {
  readonly name: string;
  readonly config: InstanceConfig;
  state: ChannelState = 'startup-grace';
  stateChangedAtMs: number;
  lastCheckedAtMs: number | undefined;
  lastMessageAtMs: number | undefined;
  lastSentAtMs: number | undefined;
  connectedAtMs: number | undefined;
  error: string | undefined;
  /** How the platform calls the agent, while it is connected. */
  account: string | undefined;
  failures = 0;
  connects = 0;
  /** The next try to connect, while it waits for that. */
  retryAtMs: number | undefined;
  readonly dropped = new Map<string, number>();
  readonly #deps: InstanceDeps;
  readonly #ending = new AbortController();
  #sender: Sender | undefined;
  #platform: OpenedPlatform | undefined;
  #running: Promise<void> | undefined;

  constructor(deps: InstanceDeps, name: string, config: InstanceConfig) {
    this.#deps = deps;
    this.name = name;
    this.config = config;
    this.stateChangedAtMs = deps.clock.now();
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** A message waits to be sent. */
  wake(): void {
    this.#sender?.wake();
  }

  /** Whether sends failed so often in a row that it pauses. */
  get isPaused(): boolean {
    return this.#sender?.isPaused === true;
  }

  /** The platform while it is connected. */
  get connected(): OpenedPlatform | undefined {
    return this.state === 'healthy' ? this.#platform : undefined;
  }

  /** Resolves when it is disconnected. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#running;
    this.#setState('disabled');
  }

  async #run(): Promise<void> {
    const { clock, log, open } = this.#deps;
    const { signal } = this.#ending;
    try {
      const platform = await open(this.config, { clock, log });
      const sender = this.#deps.createSender(this.name, this.config, platform, () => (this.lastSentAtMs = clock.now()));
      this.#sender = sender;
      this.#platform = platform;
      while (!signal.aborted) {
        const pauseMs = await this.#connect(platform, sender);
        if (pauseMs === undefined) return;
        this.retryAtMs = clock.now() + pauseMs;
        await sleep(clock, pauseMs, signal);
        this.retryAtMs = undefined;
      }
    } catch (error) {
      log.error({ err: error, instance: this.name }, 'A channel failed');
      this.#setState('errored', 'An internal error; the log has it');
    }
  }

  /** Connects once, until the connection ends; returns the time until the next try, undefined for none. */
  async #connect({ adapter }: OpenedPlatform, sender: Sender): Promise<number | undefined> {
    const { clock, log, take, cursorOf } = this.#deps;
    const { signal } = this.#ending;
    let cursor: string | undefined;
    try {
      cursor = await cursorOf(this.name);
    } catch (error) {
      log.error({ err: error, instance: this.name }, 'Failed to read how far a channel has received; it is read again');
      return firstPauseMs;
    }
    // The stop came meanwhile: nothing would end the connection.
    if (signal.aborted) return undefined;
    const sending = new AbortController();
    const disconnecting = new AbortController();
    let sent: Promise<void> | undefined;
    // What is being sent gets its confirmation before the connection ends.
    const stop = () => {
      sending.abort();
      void Promise.resolve(sent).finally(() => disconnecting.abort());
    };
    signal.addEventListener('abort', stop, { once: true });
    this.connects += 1;
    const ended = await adapter.run(disconnecting.signal, {
      cursor,
      take: async (received, reached) => {
        const dropped = await take({ instance: this.name, channelType: this.config.type }, received, reached);
        for (const reason of dropped) this.dropped.set(reason, (this.dropped.get(reason) ?? 0) + 1);
        if (received.length > 0) this.lastMessageAtMs = clock.now();
      },
      alive: () => (this.lastCheckedAtMs = clock.now()),
      connected: (name) => {
        this.connectedAtMs = clock.now();
        this.account = name;
        log.info({ instance: this.name, name }, 'Channel connected');
        this.#setState('healthy');
        sent ??= sender.run(sending.signal);
      },
    });
    signal.removeEventListener('abort', stop);
    sending.abort();
    await sent;
    return this.#pauseAfter(ended);
  }

  #pauseAfter({ ended, text }: Ended): number | undefined {
    const { clock, log } = this.#deps;
    const wasSteady = this.connectedAtMs !== undefined && clock.now() - this.connectedAtMs >= steadyMs;
    const wasConnected = this.connectedAtMs !== undefined;
    this.connectedAtMs = undefined;
    this.account = undefined;
    if (ended === 'stopped' || this.#ending.signal.aborted) return undefined;
    this.failures = wasSteady ? 1 : this.failures + 1;
    log.warn({ instance: this.name, ended, reason: text, failures: this.failures }, 'Channel disconnected');
    if (ended === 'unauthorized') {
      this.#setState('unauthorized', text);
      return undefined;
    }
    this.#setState(wasConnected ? 'disconnected' : 'errored', text);
    if (ended === 'conflict') return conflictPauseMs;
    const longestMs = this.failures > triesUntilSlow ? slowPauseMs : longestPauseMs;
    const pauseMs = Math.min(longestMs, firstPauseMs * 2 ** Math.min(this.failures - 1, 20));
    return Math.round(pauseMs * 0.75) + randomInt(Math.ceil(pauseMs / 4));
  }

  #setState(next: ChannelState, error?: string): void {
    const { bus, clock } = this.#deps;
    this.error = next === 'healthy' ? undefined : (error ?? this.error);
    if (next === this.state) return;
    const previousState = this.state;
    this.state = next;
    this.stateChangedAtMs = clock.now();
    bus.emit('diagnostic:channel_health', {
      channelType: this.config.type,
      channelInstanceId: this.name,
      previousState,
      currentState: next,
      connectionMode: platformOf(this.config.type)?.connectionMode ?? 'socket',
      error: this.error ?? null,
      lastMessageAt: this.lastMessageAtMs ?? null,
      timestamp: clock.now(),
    });
  }
}
