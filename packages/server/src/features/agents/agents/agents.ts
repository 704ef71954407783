import { join } from 'node:path';
import { AgentConfig } from '@gatehouse/contract';
import type * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Log } from '../../../kernel/log.ts';
import { mergePatch, withoutNulls } from '../../../kernel/merge-patch.ts';
import type { Agent, AgentsApi, ConfigureAgent } from './api.ts';
import { type AgentRow, deleteAgent, insertAgent, listAgents, saveAgent } from './store.ts';

type AgentMethods = HandlersOf<`agents.${'list' | 'create' | 'get' | 'update' | 'delete' | 'suspend' | 'resume'}`>;

export interface AgentsDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  /** Agents of config.yaml; the default agent is added when it is not among them. */
  readonly configured: Readonly<Record<string, AgentConfig>>;
  readonly defaultId: string;
  readonly workspacesDir: string;
  /** Whether a model of this name is in the catalog. */
  readonly knowsModel: (name: string) => boolean;
  /** Called when an agent is gone, to stop its work. */
  readonly removed: (agentId: string) => void;
  /** Called when an agent was suspended, to stop its work. */
  readonly suspended: (agentId: string) => void;
  /** Called when an agent was created, configured, suspended, resumed or deleted. */
  readonly changed: (agentId: string) => void;
}

/** Agents of config.yaml merged with stored changes, and agents that exist only in the database. Read from memory, written through. */
export async function createAgents(
  deps: AgentsDeps,
): Promise<{ readonly api: AgentsApi; readonly methods: AgentMethods; readonly configure: ConfigureAgent }> {
  const configured = new Map(Object.entries(deps.configured));
  if (!configured.has(deps.defaultId)) configured.set(deps.defaultId, AgentConfig.parse({}));
  const agents = new Map<string, Agent>();
  /** Stored overrides of a file entry, or the whole of a stored agent. */
  const stored = new Map<string, Record<string, unknown>>();
  // Read-modify-write of one agent must not interleave with another: changes form one queue.
  let changes: Promise<unknown> = Promise.resolve();

  function put(agentId: string, source: Agent['source'], config: AgentConfig, suspended: boolean): Agent {
    const agent: Agent = {
      id: agentId,
      config,
      source,
      suspended,
      isDefault: agentId === deps.defaultId,
      workspaceDir: join(deps.workspacesDir, agentId),
    };
    agents.set(agentId, agent);
    return agent;
  }

  function load(row: AgentRow): void {
    const change = JSON.parse(row.configJson) as Record<string, unknown>;
    const base = configured.get(row.id);
    if (row.source === 'file' && base === undefined) return;
    const parsed = AgentConfig.safeParse(withoutNulls(mergePatch(base ?? {}, change)));
    if (!parsed.success) {
      deps.log.error(
        { agentId: row.id, issues: parsed.error.issues.map((issue) => issue.path.join('.')) },
        'The stored configuration of an agent no longer fits; the agent runs without it',
      );
      if (base === undefined) return;
    }
    stored.set(row.id, change);
    put(row.id, base === undefined ? 'stored' : 'file', parsed.data ?? base ?? AgentConfig.parse({}), row.suspended === 1);
  }

  for (const [agentId, config] of configured) put(agentId, 'file', config, false);
  for (const row of await deps.db.read(listAgents, {})) load(row);

  function visible(agentId: string, call: CallContext): Agent {
    const agent = agents.get(agentId);
    const allowed = call.identity.agents;
    if (agent === undefined || (allowed !== undefined && !allowed.includes(agentId)))
      throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
    return agent;
  }

  function inTurn<T>(change: () => Promise<T>): Promise<T> {
    const next = changes.then(change);
    changes = next.catch(() => undefined);
    return next;
  }

  function checkModels(config: AgentConfig): void {
    const named: [string, string | undefined][] = [
      ['config.model', config.model],
      ...config.fallbackModels.map((name, index): [string, string] => [`config.fallbackModels.${index}`, name]),
    ];
    named.push(['config.heartbeat.model', config.heartbeat.model]);
    for (const [operation, choice] of Object.entries(config.operationModels)) named.push([`config.operationModels.${operation}.model`, choice.model]);
    const issues = named
      .filter(([, name]) => name !== undefined && !deps.knowsModel(name))
      .map(([path, name]) => ({ path, message: `no configured provider has a model "${name}"` }));
    const first = issues[0];
    if (first !== undefined) throw new AppError('invalid_params', `${first.path}: ${first.message}`, { param: first.path, issues });
  }

  /** Saves a change of configuration or suspension with its audit row, then applies it. */
  async function save(
    call: CallContext,
    agent: Agent,
    next: { config: AgentConfig; stored: Record<string, unknown>; suspended: boolean },
    action: string,
  ): Promise<Agent> {
    const atMs = deps.clock.now();
    const audit = auditRow(call, atMs, { actionType: action, classification: 'mutate', target: agent.id });
    await deps.db.write(saveAgent, {
      id: agent.id,
      source: agent.source,
      configJson: JSON.stringify(next.stored),
      suspended: next.suspended ? 1 : 0,
      atMs,
      audit,
    });
    stored.set(agent.id, next.stored);
    announceAudit(deps.bus, audit);
    const changed = put(agent.id, agent.source, next.config, next.suspended);
    deps.changed(agent.id);
    return changed;
  }

  /** Returns the agent as it would be with these keys changed. */
  function merge(agentId: string, patch: Readonly<Record<string, unknown>>, call: CallContext) {
    const agent = visible(agentId, call);
    const change = mergePatch(stored.get(agentId) ?? {}, patch);
    const config = parsePatched(mergePatch(configured.get(agentId) ?? {}, change), patch);
    checkModels(config);
    return { agent, next: { config, stored: change, suspended: agent.suspended } };
  }

  const configure: ConfigureAgent = ({ agentId, patch, action }, call) =>
    inTurn(() => {
      const { agent, next } = merge(agentId, patch, call);
      return save(call, agent, next, action);
    });

  function setSuspended(call: CallContext, agentId: string, suspended: boolean): Promise<Agent> {
    return inTurn(async () => {
      const agent = visible(agentId, call);
      if (agent.suspended === suspended)
        throw new AppError('precondition_failed', suspended ? `Agent already suspended: ${agentId}` : `Agent is not suspended: ${agentId}`);
      const changed = await save(
        call,
        agent,
        { config: agent.config, stored: stored.get(agentId) ?? {}, suspended },
        suspended ? 'agents.suspend' : 'agents.resume',
      );
      if (suspended) deps.suspended(agentId);
      return changed;
    });
  }

  const api: AgentsApi = {
    defaultId: deps.defaultId,
    list: () => [...agents.values()].toSorted((a, b) => a.id.localeCompare(b.id)),
    find: (agentId) => agents.get(agentId),
    usable(agentId, call) {
      const agent = visible(agentId ?? deps.defaultId, call);
      if (agent.suspended) throw new AppError('precondition_failed', `Agent is suspended: ${agent.id}`);
      return agent;
    },
  };

  const methods: AgentMethods = {
    'agents.list': async (_params, call) => ({
      agents: api
        .list()
        .map((agent) => agent.id)
        .filter((id) => call.identity.agents?.includes(id) ?? true),
    }),

    'agents.get': async ({ agentId }, call) => {
      const { config, source, suspended, isDefault, workspaceDir } = visible(agentId, call);
      return { agentId, config, source, suspended, isDefault, workspaceDir };
    },

    'agents.create': ({ agentId, config: given }, call) =>
      inTurn(async () => {
        const config = given ?? AgentConfig.parse({});
        if (agents.has(agentId)) throw new AppError('conflict', `Agent already exists: ${agentId}`, { param: 'agentId' });
        if (call.identity.agents !== undefined)
          throw new AppError('denied', 'A token that is limited to some agents cannot create one', { param: 'agentId' });
        checkModels(config);
        const atMs = deps.clock.now();
        const audit = auditRow(call, atMs, { actionType: 'agents.create', classification: 'mutate', target: agentId });
        await deps.db.write(insertAgent, { id: agentId, source: 'stored', configJson: JSON.stringify(config), suspended: 0, atMs, audit });
        stored.set(agentId, config);
        const agent = put(agentId, 'stored', config, false);
        announceAudit(deps.bus, audit);
        deps.bus.emit('agent:hot_added', { agentId, timestamp: atMs });
        deps.changed(agentId);
        return { agentId, config, created: true as const, workspaceDir: agent.workspaceDir };
      }),

    'agents.update': async ({ agentId, config: patch, dryRun }, call) => {
      if (dryRun) return inTurn(async () => ({ agentId, config: merge(agentId, patch, call).next.config, updated: false, dryRun: true as const }));
      return { agentId, config: (await configure({ agentId, patch, action: 'agents.update' }, call)).config, updated: true };
    },

    'agents.delete': ({ agentId }, call) =>
      inTurn(async () => {
        const agent = visible(agentId, call);
        if (agent.isDefault) throw new AppError('precondition_failed', `Cannot delete default agent: ${agentId}`);
        if (agent.source === 'file')
          throw new AppError('precondition_failed', `Agent ${agentId} is defined in config.yaml; remove it from the file and restart`);
        const atMs = deps.clock.now();
        const audit = auditRow(call, atMs, { actionType: 'agents.delete', classification: 'destructive', target: agentId });
        await deps.db.write(deleteAgent, { id: agentId, audit });
        agents.delete(agentId);
        stored.delete(agentId);
        deps.removed(agentId);
        deps.changed(agentId);
        announceAudit(deps.bus, audit);
        deps.bus.emit('agent:hot_removed', { agentId, timestamp: atMs });
        return { agentId, deleted: true as const };
      }),

    'agents.suspend': async ({ agentId }, call) => ({ agentId: (await setSuspended(call, agentId, true)).id, suspended: true as const }),
    'agents.resume': async ({ agentId }, call) => ({ agentId: (await setSuspended(call, agentId, false)).id, resumed: true as const }),
  };

  return { api, methods, configure };
}

function parsePatched(merged: Record<string, unknown>, patch: Readonly<Record<string, unknown>>): AgentConfig {
  const parsed = AgentConfig.safeParse(withoutNulls(merged));
  // A key that is reset is missing in the merged object, so unknown keys are searched in the patch itself.
  const unknown = unknownKeys(AgentConfig.safeParse(patch).error);
  if (parsed.success && unknown.length === 0) return parsed.data;
  const wrong =
    parsed.error?.issues
      .filter((issue) => issue.code !== 'unrecognized_keys')
      .map((issue) => ({ path: ['config', ...issue.path].join('.'), message: issue.message })) ?? [];
  const issues = [...wrong, ...unknown.map((path) => ({ path: ['config', ...path].join('.'), message: 'unknown field' }))];
  throw new AppError('invalid_params', issues.map((issue) => `${issue.path}: ${issue.message}`).join('; '), {
    issues,
    ...(issues[0] && { param: issues[0].path }),
  });
}

function unknownKeys(error: z.ZodError | undefined): PropertyKey[][] {
  return (error?.issues ?? []).flatMap((issue) => (issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : []));
}
