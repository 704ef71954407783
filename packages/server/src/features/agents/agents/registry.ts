import { join } from 'node:path';
import { AgentConfig } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Log } from '../../../kernel/log.ts';
import { mergePatch, withoutNulls } from '../../../kernel/merge-patch.ts';
import type { Agent } from './api.ts';
import { parsePatched } from './patch-config.ts';
import type { AgentRow } from './store.ts';

export interface AgentRegistryDeps {
  readonly log: Log;
  /** Agents of config.yaml; the default agent is added when it is not among them. */
  readonly configured: Readonly<Record<string, AgentConfig>>;
  readonly defaultId: string;
  readonly workspacesDir: string;
}

/** What can change about an agent. */
export interface AgentState {
  readonly config: AgentConfig;
  /** Stored overrides of a file entry, or the whole of a stored agent. */
  readonly stored: Record<string, unknown>;
  readonly suspended: boolean;
}

/** Agents of config.yaml merged with stored changes, and agents that exist only in the database, in memory. */
export class AgentRegistry {
  readonly #deps: AgentRegistryDeps;
  readonly #configured: ReadonlyMap<string, AgentConfig>;
  readonly #agents = new Map<string, Agent>();
  readonly #stored = new Map<string, Record<string, unknown>>();

  constructor(deps: AgentRegistryDeps, rows: readonly AgentRow[]) {
    this.#deps = deps;
    const configured = new Map(Object.entries(deps.configured));
    if (!configured.has(deps.defaultId)) configured.set(deps.defaultId, AgentConfig.parse({}, { jitless: true }));
    this.#configured = configured;
    for (const [agentId, config] of configured) this.#set(agentId, 'file', config, false);
    for (const row of rows) this.#load(row);
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

  stateOf({ id, config, suspended }: Agent): AgentState {
    return { config, stored: this.#stored.get(id) ?? {}, suspended };
  }

  /** Returns the state that an agent would have with these keys changed. */
  patched({ id, suspended }: Agent, patch: Readonly<Record<string, unknown>>): AgentState {
    const stored = mergePatch(this.#stored.get(id) ?? {}, patch);
    return { config: parsePatched(mergePatch(this.#configured.get(id) ?? {}, stored), patch), stored, suspended };
  }

  put(agentId: string, source: Agent['source'], { config, stored, suspended }: AgentState): Agent {
    this.#stored.set(agentId, stored);
    return this.#set(agentId, source, config, suspended);
  }

  remove(agentId: string): void {
    this.#agents.delete(agentId);
    this.#stored.delete(agentId);
  }

  #load(row: AgentRow): void {
    const change = JSON.parse(row.configJson) as Record<string, unknown>;
    const base = this.#configured.get(row.id);
    if (row.source === 'file' && base === undefined) return;
    const parsed = AgentConfig.safeParse(withoutNulls(mergePatch(base ?? {}, change)));
    if (!parsed.success) {
      this.#deps.log.error(
        { agentId: row.id, issues: parsed.error.issues.map((issue) => issue.path.join('.')) },
        'The stored configuration of an agent no longer fits; the agent runs without it',
      );
      if (base === undefined) return;
    }
    const config = parsed.data ?? base ?? AgentConfig.parse({});
    this.put(row.id, base === undefined ? 'stored' : 'file', { config, stored: change, suspended: row.suspended === 1 });
  }

  #set(agentId: string, source: Agent['source'], config: AgentConfig, suspended: boolean): Agent {
    const { defaultId, workspacesDir } = this.#deps;
    const agent: Agent = {
      id: agentId,
      config,
      source,
      suspended,
      isDefault: agentId === defaultId,
      workspaceDir: join(workspacesDir, agentId),
    };
    this.#agents.set(agentId, agent);
    return agent;
  }
}
