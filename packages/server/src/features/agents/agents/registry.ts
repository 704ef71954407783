import type { Live } from '../../../kernel/config/live.ts';
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
  readonly configured: Live<Readonly<Record<string, AgentConfig>>>;
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
  #configured: ReadonlyMap<string, AgentConfig>;
  #plain: AgentConfig | undefined;
  readonly #agents = new Map<string, Agent>();
  readonly #stored = new Map<string, Record<string, unknown>>();
  /** Agents that the database holds whole: they exist without an entry in the file, too. */
  readonly #whole = new Set<string>();
  /** Overrides of file entries that the file no longer has, for when they come back. */
  readonly #left = new Map<string, Omit<AgentState, 'config'>>();

  constructor(deps: AgentRegistryDeps, rows: readonly AgentRow[]) {
    this.#deps = deps;
    this.#configured = this.#withDefault(deps.configured.current);
    for (const [agentId, config] of this.#configured) this.#set(agentId, 'file', config, false);
    for (const { id, source, configJson, suspended } of rows) {
      const state = { stored: JSON.parse(configJson) as Record<string, unknown>, suspended: suspended === 1 };
      if (source === 'stored') this.#whole.add(id);
      if (source === 'file' && !this.#configured.has(id)) this.#left.set(id, state);
      else this.#place(id, state);
    }
  }

  /** Takes over the agents of a changed file, with what is stored about them. Returns the ids that differ. */
  configure(configured: Readonly<Record<string, AgentConfig>>): { readonly added: string[]; readonly changed: string[]; readonly removed: string[] } {
    const before = this.#configured;
    this.#configured = this.#withDefault(configured);
    const stateOf = (agentId: string) => ({
      stored: this.#stored.get(agentId) ?? {},
      suspended: this.#agents.get(agentId)?.suspended ?? false,
    });
    const gone = [...before.keys()].filter((agentId) => !this.#configured.has(agentId));
    const removed = gone.filter((agentId) => !this.#whole.has(agentId));
    const differs = [...this.#configured.keys()].filter((agentId) => before.get(agentId) !== this.#configured.get(agentId));
    const added = differs.filter((agentId) => !this.#agents.has(agentId));
    const changed = [...differs, ...gone].filter((agentId) => !added.includes(agentId) && !removed.includes(agentId));
    for (const agentId of removed) {
      this.#left.set(agentId, stateOf(agentId));
      this.#agents.delete(agentId);
      this.#stored.delete(agentId);
    }
    for (const agentId of [...added, ...changed]) this.#place(agentId, this.#left.get(agentId) ?? stateOf(agentId));
    return { added, changed, removed };
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
    if (source === 'stored') this.#whole.add(agentId);
    this.#stored.set(agentId, stored);
    this.#left.delete(agentId);
    return this.#set(agentId, source, config, suspended);
  }

  remove(agentId: string): void {
    this.#agents.delete(agentId);
    this.#stored.delete(agentId);
    this.#whole.delete(agentId);
  }

  /** The default agent exists even when the file does not have it, and stays the same object. */
  #withDefault(configured: Readonly<Record<string, AgentConfig>>): ReadonlyMap<string, AgentConfig> {
    const { defaultId } = this.#deps;
    const byId = new Map(Object.entries(configured));
    if (!byId.has(defaultId)) byId.set(defaultId, (this.#plain ??= AgentConfig.parse({}, { jitless: true })));
    return byId;
  }

  /** Sets an agent to its entry in the file, if any, with what is stored about it. */
  #place(agentId: string, { stored, suspended }: Omit<AgentState, 'config'>): void {
    const base = this.#configured.get(agentId);
    const parsed = AgentConfig.safeParse(withoutNulls(mergePatch(base ?? {}, stored)));
    if (!parsed.success) {
      this.#deps.log.error(
        { agentId, issues: parsed.error.issues.map((issue) => issue.path.join('.')) },
        'The stored configuration of an agent no longer fits; the agent runs without it',
      );
      if (base === undefined) return;
    }
    const config = parsed.data ?? base ?? AgentConfig.parse({});
    this.put(agentId, base === undefined ? 'stored' : 'file', { config, stored, suspended });
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
