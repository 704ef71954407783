import { AgentConfig } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { mergePatch } from '../../../kernel/merge-patch.ts';
import type { ConfigChange, SettingsApi } from '../../operations/settings/api.ts';
import type { Agent, ConfigureAgent } from './api.ts';
import { entryIn, patchedEntry, withoutDefaults, written } from './entry.ts';
import { checkModels, parsePatched } from './patch-config.ts';
import type { AgentRegistry } from './registry.ts';
import { clearAgentConfig, deleteAgent, saveAgent } from './store.ts';

export interface AgentChangesDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly settings: Pick<SettingsApi, 'change'>;
  /** Whether a model of this name is in the catalog. */
  readonly knowsModel: (name: string) => boolean;
  /** Called when an agent is gone, to stop its work. */
  readonly removed: (agentId: string) => void;
  /** Called when an agent was suspended, to stop its work. */
  readonly suspended: (agentId: string) => void;
  /** Called when an agent was created, configured, suspended, resumed or deleted. */
  readonly changed: (agentId: string) => void;
}

type Patch = Parameters<ConfigureAgent>[0] & { readonly dryRun?: boolean };

/**
 * Changes of agents. Their configuration is in config.yaml: a change edits the file, and the registry follows what is in force then.
 * Nothing here waits for the registry while the configuration changes, or the two would wait for each other.
 */
export class AgentChanges {
  readonly #deps: AgentChangesDeps;
  readonly #registry: AgentRegistry;
  /** Changes of the file and of what is stored about the same agent, one after another. */
  #edits: Promise<unknown> = Promise.resolve();
  /** What follows the file, and suspensions, one after another. */
  #states: Promise<unknown> = Promise.resolve();

  constructor(deps: AgentChangesDeps, registry: AgentRegistry) {
    this.#deps = deps;
    this.#registry = registry;
  }

  create(agentId: string, config: AgentConfig, call: CallContext): Promise<void> {
    return this.#edit(async () => {
      const exists = () => new AppError('conflict', `Agent already exists: ${agentId}`, { param: 'agentId' });
      if (this.#registry.find(agentId) !== undefined) throw exists();
      if (call.identity.agents !== undefined)
        throw new AppError('denied', 'A token that is limited to some agents cannot create one', { param: 'agentId' });
      checkModels(config, this.#deps.knowsModel);
      const edits = async (text: string) => {
        if (entryIn(text, agentId) !== undefined) throw exists();
        await this.#forget(agentId);
        return [{ set: ['agents', agentId], value: written(withoutDefaults(config, AgentConfig.parse({}))) }];
      };
      await this.#change(agentId, { actionType: 'agents.create', classification: 'mutate', summary: 'created', edits }, call);
    });
  }

  /** Returns the configuration that a patch makes; a dry run changes nothing. */
  configure({ agentId, patch, action, dryRun }: Patch, call: CallContext): Promise<AgentConfig> {
    return this.#edit(async () => {
      this.#registry.visible(agentId, call);
      if (dryRun !== true) await this.#moveStored(agentId, call);
      let config: AgentConfig | undefined;
      const edits = (text: string) => {
        const agent = this.#registry.visible(agentId, call);
        config = parsePatched(mergePatch(agent.config, patch), patch);
        checkModels(config, this.#deps.knowsModel);
        const entry = entryIn(text, agentId);
        const value = patchedEntry(entry ?? {}, agent.config, patch);
        return entry === undefined && Object.keys(value).length === 0 ? [] : [{ set: ['agents', agentId], value }];
      };
      await this.#change(agentId, { actionType: action, classification: 'mutate', summary: 'changed', edits, dryRun }, call);
      return config ?? this.#registry.visible(agentId, call).config;
    });
  }

  delete(agentId: string, call: CallContext): Promise<void> {
    return this.#edit(async () => {
      if (this.#registry.visible(agentId, call).isDefault) throw new AppError('precondition_failed', `Cannot delete default agent: ${agentId}`);
      await this.#moveStored(agentId, call);
      const edits = (text: string) => {
        if (entryIn(text, agentId) === undefined) throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
        return [{ unset: ['agents', agentId] }];
      };
      await this.#change(agentId, { actionType: 'agents.delete', classification: 'destructive', summary: 'deleted', edits }, call);
      await this.#forget(agentId);
    });
  }

  setSuspended(agentId: string, suspended: boolean, call: CallContext): Promise<Agent> {
    return this.#inTurn(async () => {
      const { db, bus, clock, changed } = this.#deps;
      const agent = this.#registry.visible(agentId, call);
      if (agent.suspended === suspended)
        throw new AppError('precondition_failed', suspended ? `Agent already suspended: ${agentId}` : `Agent is not suspended: ${agentId}`);
      const atMs = clock.now();
      const actionType = suspended ? 'agents.suspend' : 'agents.resume';
      const audit = auditRow(call, atMs, { actionType, classification: 'mutate', target: agentId });
      await db.write(saveAgent, { id: agentId, suspended: suspended ? 1 : 0, atMs, audit });
      const saved = this.#registry.setSuspended(agent, suspended);
      announceAudit(bus, audit);
      changed(agentId);
      if (suspended) this.#deps.suspended(agentId);
      return saved;
    });
  }

  /** Takes over the agents of a changed configuration file. */
  follow(configured: Readonly<Record<string, AgentConfig>>): Promise<void> {
    return this.#inTurn(async () => {
      const { bus, clock, removed, changed } = this.#deps;
      const differs = this.#registry.configure(configured);
      for (const agentId of differs.removed) removed(agentId);
      for (const agentId of [...differs.removed, ...differs.added, ...differs.changed]) changed(agentId);
      for (const agentId of differs.added) bus.emit('agent:hot_added', { agentId, timestamp: clock.now() });
      for (const agentId of differs.removed) bus.emit('agent:hot_removed', { agentId, timestamp: clock.now() });
    });
  }

  /** Moves what an earlier version stored about agents into config.yaml; calls `onError` for each that cannot be moved now. */
  moveAllStored(call: CallContext, onError: (agentId: string, error: unknown) => void): Promise<void> {
    return this.#edit(async () => {
      for (const agentId of this.#registry.storedIds()) await this.#moveStored(agentId, call).catch((error: unknown) => onError(agentId, error));
    });
  }

  /** The file first: after a crash in between, the same values are merged into it again. */
  async #moveStored(agentId: string, call: CallContext): Promise<void> {
    if (!this.#registry.storedIds().includes(agentId)) return;
    let isMoved = false;
    const edits = (text: string) => {
      const entry = entryIn(text, agentId);
      const stored = this.#registry.storedOf(agentId, entry);
      isMoved = stored !== undefined;
      return stored === undefined ? [] : [{ set: ['agents', agentId], value: patchedEntry(entry ?? {}, {}, stored) }];
    };
    await this.#change(
      agentId,
      { actionType: 'agents.move', classification: 'mutate', summary: 'moved from the database into config.yaml', edits },
      call,
    );
    if (!isMoved) return;
    await this.#deps.db.write(clearAgentConfig, { id: agentId });
    this.#registry.dropStored(agentId);
  }

  async #change(agentId: string, change: Pick<ConfigChange, 'actionType' | 'classification' | 'summary' | 'edits' | 'dryRun'>, call: CallContext) {
    await this.#deps.settings.change({ ...change, section: 'agents', key: agentId, target: agentId, origin: 'agents' }, call);
  }

  /** Before a new agent gets an id, and after one lost it. */
  async #forget(agentId: string): Promise<void> {
    await this.#deps.db.write(deleteAgent, { id: agentId });
    this.#registry.forget(agentId);
  }

  #edit<T>(change: () => Promise<T>): Promise<T> {
    const next = this.#edits.then(change);
    this.#edits = next.catch(() => undefined);
    return next;
  }

  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const next = this.#states.then(change);
    this.#states = next.catch(() => undefined);
    return next;
  }
}
