import { isDeepStrictEqual } from 'node:util';
import { allows, type ResultInput } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { recordAudit } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Live } from '../../../kernel/config/live.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { SettingsApi } from '../../operations/settings/api.ts';
import type { ChannelStanding } from './api.ts';
import type { ChannelsConfig, InstanceConfig } from './config.ts';
import type { WaitingParts } from '../delivery/api.ts';
import { Instance, type InstanceDeps } from './instance.ts';
import { mayAdminister } from '../../../channels/people.ts';
import { capabilitiesOf, type OpenedPlatform, platformOf } from './platforms.ts';

export interface InstancesDeps extends InstanceDeps {
  readonly config: Live<ChannelsConfig>;
  readonly agents: Pick<AgentsApi, 'defaultId'>;
  readonly settings: Pick<SettingsApi, 'change'>;
  /** Loads what cuts texts for platforms. */
  readonly load: () => Promise<void>;
  /** Counts the waiting parts by instance. */
  readonly countWaiting: () => Promise<readonly WaitingParts[]>;
  /** What may wait at most. */
  readonly bounds: ResultInput<'channels.health'>['bounds'];
  /** Turns of an instance that run now. */
  readonly activeRuns: (instance: string) => number;
}

type Name = 'list' | 'get' | 'capabilities' | 'health' | 'enable' | 'disable' | 'restart';
type Methods = HandlersOf<`channels.${Name}`>;
type Health = ResultInput<'channels.health'>['channels'][number];

const gateway = { channelType: 'gateway', channelInstanceId: 'gateway' } as const;

/** Keeps the configured channels connected, and says how they are. A channel that is not enabled is not even loaded. */
export class Instances implements AsyncDisposable {
  readonly #deps: InstancesDeps;
  readonly #running = new Map<string, Instance>();
  readonly #startedAtMs: number;
  #changes: Promise<void> = Promise.resolve();
  #isEnded = false;
  #stopWatching: Disposable | undefined;
  #stopListening: (() => void) | undefined;
  /** When the built-in channel delivered last. */
  #deliveredAtMs: number | undefined;
  readonly methods: Methods;

  constructor(deps: InstancesDeps) {
    this.#deps = deps;
    this.#startedAtMs = deps.clock.now();
    this.methods = this.#createMethods();
  }

  /** Connects the enabled ones, and follows the configuration. */
  start(): void {
    const { bus, config, clock } = this.#deps;
    this.#stopListening = bus.listen(['inbox:message'], () => void (this.#deliveredAtMs = clock.now()));
    this.#stopWatching = config.onChange(() => this.#follow());
    void this.#follow();
  }

  /** Returns the configuration of an instance that is enabled. */
  configOf(name: string): InstanceConfig | undefined {
    const config = this.#deps.config.current[name];
    return config?.enabled === true ? config : undefined;
  }

  /** Returns the names of the channels that a caller administers. */
  namesFor(call: CallContext): string[] {
    const { config, agents } = this.#deps;
    return Object.entries(config.current).flatMap(([name, one]) => (mayAdminister(one, agents.defaultId, call) ? [name] : []));
  }

  /** Returns the platform of an instance that is connected now. */
  connected(name: string): OpenedPlatform | undefined {
    return this.#running.get(name)?.connected;
  }

  /** Returns how the enabled ones are, by name. */
  standing(): ChannelStanding[] {
    const running = [...this.#running.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
    return running.map(({ name, state, stateChangedAtMs, failures, isPaused }) => ({ name, state, stateChangedAtMs, failures, isPaused }));
  }

  wake(name: string): void {
    this.#running.get(name)?.wake();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopListening?.();
    this.#stopWatching?.[Symbol.dispose]();
    await this.#changes;
    this.#isEnded = true;
    await Promise.all([...this.#running.values()].map((instance) => instance.stop()));
  }

  /** Brings what runs in line with the configuration, one change after the other. */
  #follow(): Promise<void> {
    const { config, log } = this.#deps;
    const follow = async (): Promise<void> => {
      if (this.#isEnded) return;
      const gone = [...this.#running.values()].filter(
        ({ name, config: used }) => !isDeepStrictEqual(connectionOf(this.configOf(name)), connectionOf(used)),
      );
      await Promise.all(gone.map((instance) => this.#stop(instance)));
      if (Object.keys(config.current).length > 0) await this.#deps.load();
      for (const name of Object.keys(config.current)) if (!this.#running.has(name)) this.#open(name);
    };
    this.#changes = this.#changes.then(follow).catch((error: unknown) => log.error({ err: error }, 'Failed to follow a change of the channels'));
    return this.#changes;
  }

  #open(name: string): void {
    const config = this.configOf(name);
    const capabilities = config && capabilitiesOf(config.type);
    if (config === undefined || capabilities === undefined) return;
    const { bus, clock } = this.#deps;
    const instance = new Instance(this.#deps, name, config);
    this.#running.set(name, instance);
    bus.emit('channel:registered', { channelType: config.type, channelInstanceId: name, capabilities, timestamp: clock.now() });
    instance.start();
  }

  async #stop(instance: Instance): Promise<void> {
    const { bus, clock } = this.#deps;
    await instance.stop();
    this.#running.delete(instance.name);
    bus.emit('channel:deregistered', { channelType: instance.config.type, channelInstanceId: instance.name, timestamp: clock.now() });
  }

  #createMethods(): Methods {
    const { config, clock, agents } = this.#deps;
    return {
      'channels.list': async (_params, call) => {
        const channels = [
          { ...gateway, status: 'enabled' as const, state: 'healthy' as const },
          ...this.namesFor(call).map((name) => this.#shown(name)),
        ];
        return { channels, total: channels.length };
      },
      'channels.get': async ({ channel_type: type, channel_instance_id: id }, call) => {
        if (type === 'gateway') return { ...gateway, status: 'enabled', state: 'healthy', configured: false, agentId: null };
        const name = this.#named(type, id, call);
        return { ...this.#shown(name), configured: true, agentId: config.current[name]?.agent ?? agents.defaultId };
      },
      'channels.capabilities': async ({ channel_type: type }) => {
        const capabilities = capabilitiesOf(type);
        if (capabilities === undefined) throw new AppError('not_found', `Channel type not found: ${type}`, { param: 'channel_type' });
        return capabilities;
      },
      'channels.health': async (_params, call) => {
        const forOwner = allows(call.identity.scopes, 'admin');
        const waiting = new Map((await this.#deps.countWaiting()).map((one) => [one.instance, one]));
        const channels = this.namesFor(call).map((name) => {
          const { held = 0, queued = 0 } = waiting.get(name) ?? {};
          return { ...this.#healthOf(name, forOwner), held, queued };
        });
        const enabled = channels.some(({ state }) => state !== 'disabled');
        return { channels: [this.#ownHealth(), ...channels], timestamp: clock.now(), enabled, bounds: this.#deps.bounds };
      },
      'channels.enable': (params, call) => this.#switch(params, true, call),
      'channels.disable': (params, call) => this.#switch(params, false, call),
      'channels.restart': async ({ channel_type: type, channel_instance_id: id }, call) => {
        const name = this.#named(type, id, call);
        if (this.configOf(name) === undefined) throw new AppError('precondition_failed', `${name} is disabled: expected an enabled channel`);
        await recordAudit(this.#deps, call, { actionType: 'channels.restart', classification: 'mutate', target: name });
        const instance = this.#running.get(name);
        this.#changes = this.#changes.then(() => (instance === undefined ? undefined : this.#stop(instance)));
        await this.#follow();
        return { channelType: type, status: 'enabled', message: `${name} connects again` };
      },
    };
  }

  async #switch(
    { channel_type: type, channel_instance_id: id }: { readonly channel_type: string; readonly channel_instance_id?: string | undefined },
    enabled: boolean,
    call: CallContext,
  ): Promise<ResultInput<'channels.enable'>> {
    const name = this.#named(type, id, call);
    const status = enabled ? 'enabled' : 'disabled';
    await this.#deps.settings.change(
      {
        edits: [{ set: ['channels', name, 'enabled'], value: enabled }],
        summary: `${enabled ? 'enable' : 'disable'} the channel ${name}`,
        section: 'channels',
        key: name,
        origin: 'rpc',
        actionType: `channels.${enabled ? 'enable' : 'disable'}`,
        classification: enabled ? 'mutate' : 'destructive',
      },
      call,
    );
    await this.#changes;
    return { channelType: type, status, message: `${name} is ${status}` };
  }

  /** Returns the name of the instance that a call means. */
  #named(type: string, id: string | undefined, call: CallContext): string {
    if (type === 'gateway') throw new AppError('invalid_params', 'channel_type: the built-in channel cannot be changed', { param: 'channel_type' });
    const names = this.namesFor(call).filter((name) => this.#deps.config.current[name]?.type === type);
    const [only] = names;
    if (id !== undefined && names.includes(id)) return id;
    if (id !== undefined || only === undefined)
      throw new AppError('not_found', `Channel not found: ${id ?? type}`, { param: id === undefined ? 'channel_type' : 'channel_instance_id' });
    if (names.length > 1)
      throw new AppError('invalid_params', `channel_instance_id: expected one of ${names.join(', ')}`, { param: 'channel_instance_id' });
    return only;
  }

  #shown(name: string) {
    const config = this.#deps.config.current[name];
    const status = config?.enabled === true ? ('enabled' as const) : ('disabled' as const);
    return { channelType: config?.type ?? '', channelInstanceId: name, status, state: this.#running.get(name)?.state ?? ('disabled' as const) };
  }

  #healthOf(name: string, forOwner: boolean): Omit<Health, 'held' | 'queued'> {
    const instance = this.#running.get(name);
    const { channelType, state } = this.#shown(name);
    const since = instance?.connectedAtMs;
    return {
      channelType,
      channelInstanceId: name,
      state,
      connectionMode: platformOf(channelType)?.connectionMode ?? 'socket',
      account: forOwner ? (instance?.account ?? null) : null,
      lastCheckedAt: instance?.lastCheckedAtMs ?? null,
      lastMessageAt: instance?.lastMessageAtMs ?? null,
      lastSentAt: instance?.lastSentAtMs ?? null,
      error: forOwner ? (instance?.error ?? null) : null,
      retryAt: instance?.retryAtMs ?? null,
      stateChangedAt: instance?.stateChangedAtMs ?? this.#startedAtMs,
      consecutiveFailures: instance?.failures ?? 0,
      activeRuns: this.#deps.activeRuns(name),
      restartAttempts: Math.max(0, (instance?.connects ?? 1) - 1),
      uptimeMs: since === undefined ? 0 : Math.max(0, this.#deps.clock.now() - since),
      dropped: Object.fromEntries(instance?.dropped ?? []),
    };
  }

  #ownHealth(): Health {
    const nowMs = this.#deps.clock.now();
    return {
      ...gateway,
      state: 'healthy',
      connectionMode: 'built-in',
      account: null,
      lastCheckedAt: nowMs,
      lastMessageAt: null,
      lastSentAt: this.#deliveredAtMs ?? null,
      error: null,
      retryAt: null,
      stateChangedAt: this.#startedAtMs,
      consecutiveFailures: 0,
      activeRuns: 0,
      restartAttempts: 0,
      uptimeMs: Math.max(0, nowMs - this.#startedAtMs),
      dropped: {},
      held: 0,
      queued: 0,
    };
  }
}

/** Quiet hours are read when something is sent: a change of them disconnects nobody. */
const connectionOf = (config: InstanceConfig | undefined) => config && { ...config, quietHours: undefined, quietHoursOf: undefined };
