import { join } from 'node:path';
import { AgentConfig } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Log } from '../../../kernel/log.ts';
import { mergePatch, withoutNulls } from '../../../kernel/merge-patch.ts';
import type { Agent } from './api.ts';
import type { AgentRow } from './store.ts';

export interface AgentRegistryDeps {
  readonly log: Log;
  readonly defaultId: string;
  readonly workspacesDir: string;
}

type Configured = Readonly<Record<string, AgentConfig>>;

/** The agents of config.yaml, in memory, with what is stored about each. */
export class AgentRegistry {
  readonly #deps: AgentRegistryDeps;
  readonly #agents = new Map<string, Agent>();
  /** Kept for agents that the file does not have at the moment, too. */
  readonly #suspended: Set<string>;
  /** Configuration that an earlier version stored, and that is not in the file yet. */
  readonly #stored = new Map<string, Record<string, unknown>>();
  /** Ids of `#stored` that are whole agents, not overrides of an entry. */
  readonly #whole: ReadonlySet<string>;
  #plain: AgentConfig | undefined;

  constructor(deps: AgentRegistryDeps, configured: Configured, rows: readonly AgentRow[]) {
    this.#deps = deps;
    this.#suspended = new Set(rows.filter(({ suspended }) => suspended === 1).map(({ id }) => id));
    this.#whole = new Set(rows.filter(({ source }) => source === 'stored').map(({ id }) => id));
    for (const { id, configJson } of rows)
      if (configJson !== '{}' || this.#whole.has(id)) this.#stored.set(id, JSON.parse(configJson) as Record<string, unknown>);
    this.configure(configured);
  }

  /** Takes over the agents of the file. Returns the ids that differ. */
  configure(configured: Configured): { readonly added: string[]; readonly changed: string[]; readonly removed: string[] } {
    const next = this.#withRest(configured);
    const removed = [...this.#agents.keys()].filter((agentId) => !next.has(agentId));
    const added = [...next.keys()].filter((agentId) => !this.#agents.has(agentId));
    const changed = [...next].filter(([agentId, { config, source }]) => {
      const agent = this.#agents.get(agentId);
      return agent !== undefined && (agent.config !== config || agent.source !== source);
    });
    for (const agentId of removed) this.#agents.delete(agentId);
    for (const [agentId, { config, source }] of next) {
      const agent = this.#agents.get(agentId);
      if (agent === undefined || agent.config !== config || agent.source !== source) this.#set(agentId, source, config);
    }
    return { added, changed: changed.map(([agentId]) => agentId), removed };
  }

  list(): Agent[] {
    return [...this.#agents.values()].toSorted((a, b) => a.id.localeCompare(b.id));
  }

  find(agentId: string): Agent | undefined {
    return this.#agents.get(agentId);
  }

  /** Fails with `not_found` also for an agent that the caller may not see. */
  visible(agentId: string, call: CallContext): Agent {
    const agent = this.#agents.get(agentId);
    const allowed = call.identity.agents;
    if (agent === undefined || (allowed !== undefined && !allowed.includes(agentId)))
      throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
    return agent;
  }

  setSuspended({ id, source, config }: Agent, suspended: boolean): Agent {
    if (suspended) this.#suspended.add(id);
    else this.#suspended.delete(id);
    return this.#set(id, source, config);
  }

  /** Drops what is stored about an agent. */
  forget(agentId: string): void {
    this.#suspended.delete(agentId);
    this.#stored.delete(agentId);
  }

  /** Ids of agents whose configuration an earlier version stored. */
  storedIds(): string[] {
    return [...this.#stored.keys()];
  }

  workspaceOf(agentId: string): string {
    return join(this.#deps.workspacesDir, agentId);
  }

  /** Returns what an earlier version stored about an agent that exists, with or without an entry in the file. */
  storedOf(agentId: string, entry: object | undefined): Readonly<Record<string, unknown>> | undefined {
    const exists = entry !== undefined || this.#whole.has(agentId) || agentId === this.#deps.defaultId;
    return exists ? this.#stored.get(agentId) : undefined;
  }

  /** Called when the file has the configuration that was stored. */
  dropStored(agentId: string): void {
    this.#stored.delete(agentId);
  }

  /** The default agent exists even when the file does not have it, and stays the same object. */
  #withRest(configured: Configured): ReadonlyMap<string, { readonly config: AgentConfig; readonly source: Agent['source'] }> {
    const { defaultId, log } = this.#deps;
    const found = new Map<string, { config: AgentConfig; source: Agent['source'] }>();
    for (const [agentId, config] of Object.entries(configured)) found.set(agentId, { config, source: 'file' });
    if (!found.has(defaultId)) found.set(defaultId, { config: (this.#plain ??= AgentConfig.parse({}, { jitless: true })), source: 'default' });
    for (const agentId of this.#stored.keys()) {
      const entry = configured[agentId];
      const stored = this.storedOf(agentId, entry);
      if (stored === undefined) continue;
      const parsed = AgentConfig.safeParse(withoutNulls(mergePatch(entry ?? {}, stored)));
      if (parsed.success) {
        found.set(agentId, { config: parsed.data, source: found.get(agentId)?.source ?? 'stored' });
        continue;
      }
      this.#stored.delete(agentId);
      log.error(
        { agentId, issues: parsed.error.issues.map((issue) => issue.path.join('.')) },
        'The stored configuration of an agent is not valid; the agent runs without it',
      );
    }
    return found;
  }

  #set(agentId: string, source: Agent['source'], config: AgentConfig): Agent {
    const { defaultId } = this.#deps;
    const agent: Agent = {
      id: agentId,
      config,
      source,
      suspended: this.#suspended.has(agentId),
      isDefault: agentId === defaultId,
      workspaceDir: this.workspaceOf(agentId),
    };
    this.#agents.set(agentId, agent);
    return agent;
  }
}
