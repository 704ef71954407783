import type { AgentConfig } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { Agent, ConfigureAgent } from './api.ts';
import { checkModels } from './patch-config.ts';
import type { AgentRegistry, AgentState } from './registry.ts';
import { deleteAgent, insertAgent, saveAgent } from './store.ts';

export interface AgentChangesDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  /** Whether a model of this name is in the catalog. */
  readonly knowsModel: (name: string) => boolean;
  /** Called when an agent is gone, to stop its work. */
  readonly removed: (agentId: string) => void;
  /** Called when an agent was suspended, to stop its work. */
  readonly suspended: (agentId: string) => void;
  /** Called when an agent was created, configured, suspended, resumed or deleted. */
  readonly changed: (agentId: string) => void;
}

/** Changes of agents, one after another. Each is stored with its audit row before it applies. */
export class AgentChanges {
  readonly #deps: AgentChangesDeps;
  readonly #registry: AgentRegistry;
  /** A read-modify-write of one agent must not interleave with another. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(deps: AgentChangesDeps, registry: AgentRegistry) {
    this.#deps = deps;
    this.#registry = registry;
  }

  create(agentId: string, config: AgentConfig, call: CallContext): Promise<Agent> {
    return this.#inTurn(async () => {
      const { db, bus, clock, changed, knowsModel } = this.#deps;
      if (this.#registry.find(agentId) !== undefined) throw new AppError('conflict', `Agent already exists: ${agentId}`, { param: 'agentId' });
      if (call.identity.agents !== undefined)
        throw new AppError('denied', 'A token that is limited to some agents cannot create one', { param: 'agentId' });
      checkModels(config, knowsModel);
      const atMs = clock.now();
      const audit = auditRow(call, atMs, { actionType: 'agents.create', classification: 'mutate', target: agentId });
      await db.write(insertAgent, { id: agentId, source: 'stored', configJson: JSON.stringify(config), suspended: 0, atMs, audit });
      const agent = this.#registry.put(agentId, 'stored', { config, stored: config, suspended: false });
      announceAudit(bus, audit);
      bus.emit('agent:hot_added', { agentId, timestamp: atMs });
      changed(agentId);
      return agent;
    });
  }

  /** Returns the configuration that a patch would make, without saving it. */
  preview(agentId: string, patch: Readonly<Record<string, unknown>>, call: CallContext): Promise<AgentConfig> {
    return this.#inTurn(async () => this.#patched(this.#registry.visible(agentId, call), patch).config);
  }

  configure({ agentId, patch, action }: Parameters<ConfigureAgent>[0], call: CallContext): Promise<Agent> {
    return this.#inTurn(() => {
      const agent = this.#registry.visible(agentId, call);
      return this.#save(call, agent, this.#patched(agent, patch), action);
    });
  }

  setSuspended(agentId: string, suspended: boolean, call: CallContext): Promise<Agent> {
    return this.#inTurn(async () => {
      const agent = this.#registry.visible(agentId, call);
      if (agent.suspended === suspended)
        throw new AppError('precondition_failed', suspended ? `Agent already suspended: ${agentId}` : `Agent is not suspended: ${agentId}`);
      const next = { ...this.#registry.stateOf(agent), suspended };
      const changed = await this.#save(call, agent, next, suspended ? 'agents.suspend' : 'agents.resume');
      if (suspended) this.#deps.suspended(agentId);
      return changed;
    });
  }

  delete(agentId: string, call: CallContext): Promise<void> {
    return this.#inTurn(async () => {
      const { db, bus, clock, removed, changed } = this.#deps;
      const agent = this.#registry.visible(agentId, call);
      if (agent.isDefault) throw new AppError('precondition_failed', `Cannot delete default agent: ${agentId}`);
      if (agent.source === 'file') throw new AppError('precondition_failed', `Agent ${agentId} is defined in config.yaml; remove it from the file`);
      const atMs = clock.now();
      const audit = auditRow(call, atMs, { actionType: 'agents.delete', classification: 'destructive', target: agentId });
      await db.write(deleteAgent, { id: agentId, audit });
      this.#registry.remove(agentId);
      removed(agentId);
      changed(agentId);
      announceAudit(bus, audit);
      bus.emit('agent:hot_removed', { agentId, timestamp: atMs });
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

  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const next = this.#last.then(change);
    this.#last = next.catch(() => undefined);
    return next;
  }

  #patched(agent: Agent, patch: Readonly<Record<string, unknown>>): AgentState {
    const next = this.#registry.patched(agent, patch);
    checkModels(next.config, this.#deps.knowsModel);
    return next;
  }

  async #save(call: CallContext, agent: Agent, next: AgentState, actionType: string): Promise<Agent> {
    const { db, bus, clock, changed } = this.#deps;
    const atMs = clock.now();
    const audit = auditRow(call, atMs, { actionType, classification: 'mutate', target: agent.id });
    await db.write(saveAgent, {
      id: agent.id,
      source: agent.source,
      configJson: JSON.stringify(next.stored),
      suspended: next.suspended ? 1 : 0,
      atMs,
      audit,
    });
    const saved = this.#registry.put(agent.id, agent.source, next);
    announceAudit(bus, audit);
    changed(agent.id);
    return saved;
  }
}
