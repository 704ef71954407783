import type { AgentConfig, TurnOrigin } from '@gatehouse/contract';
import type { Tool } from './tool.ts';

const coding = ['read', 'edit', 'write', 'grep', 'find', 'ls', 'apply_patch', 'exec', 'process'];
const supervisor = [
  'agents_manage',
  'obs_query',
  'sessions_manage',
  'memory_manage',
  'channels_manage',
  'tokens_manage',
  'models_manage',
  'skills_manage',
  'mcp_manage',
  'heartbeat_manage',
];

/** Names may belong to tools that an installation does not have: a profile is a bound, not a promise. */
const profiles: Readonly<Record<AgentConfig['tools']['profile'], readonly string[] | 'all'>> = {
  none: [],
  minimal: ['read', 'write'],
  coding,
  messaging: ['message', 'session_status'],
  supervisor,
  full: 'all',
};

const groups: Readonly<Record<string, readonly string[]>> = {
  coding,
  web: ['web_fetch', 'web_search', 'browser'],
  browser: ['browser'],
  memory: ['memory_search', 'memory_get', 'memory_store'],
  scheduling: ['cron'],
  messaging: ['message'],
  sessions: ['sessions_list', 'sessions_history', 'sessions_send', 'sessions_spawn', 'session_status', 'session_search', 'subagents', 'pipeline'],
  platform_actions: ['discord_action', 'telegram_action', 'slack_action', 'whatsapp_action'],
  supervisor,
};

/** Origins whose callers are not the operator's own: there a tool that writes or reaches out must be named for the origin. */
const untrustedOrigins: ReadonlySet<TurnOrigin> = new Set(['v1', 'webhook']);

export type PolicyRefusal = 'explicit_deny' | 'not_in_profile' | 'origin';
type PolicyView = Pick<AgentConfig, 'tools' | 'originTools'>;

interface Compiled {
  readonly allowed: ReadonlySet<string> | 'all';
  readonly denied: ReadonlySet<string>;
  readonly byOrigin: Map<TurnOrigin, ReadonlySet<string>>;
  /** What was selected last for each origin: the same list again for the same tools. */
  readonly selected: Map<TurnOrigin, { readonly from: readonly Tool[]; readonly tools: readonly Tool[] }>;
}

/** Configurations are replaced, never changed, so that each is taken apart once. */
const compiled = new WeakMap<PolicyView, Compiled>();

function expand(names: readonly string[]): string[] {
  return names.flatMap((name) => (name.startsWith('group:') ? (groups[name.slice('group:'.length)] ?? []) : [name]));
}

function compile(agent: PolicyView): Compiled {
  const profile = profiles[agent.tools.profile];
  const byOrigin = new Map<TurnOrigin, ReadonlySet<string>>();
  for (const origin of untrustedOrigins) byOrigin.set(origin, new Set(expand(agent.originTools[origin] ?? [])));
  return {
    allowed: profile === 'all' ? 'all' : new Set([...profile, ...expand(agent.tools.allow)]),
    denied: new Set(expand(agent.tools.deny)),
    byOrigin,
    selected: new Map(),
  };
}

function policyOf(agent: PolicyView): Compiled {
  let policy = compiled.get(agent);
  if (policy === undefined) {
    policy = compile(agent);
    compiled.set(agent, policy);
  }
  return policy;
}

/**
 * Why a tool may not be used, or undefined when it may: (profile ∪ allow) − deny, and for `/v1` and webhooks nothing
 * that writes or reaches out unless the agent's `originTools` names it (decisions: origin policy). Deny wins always.
 */
export function refuseTool(tool: Pick<Tool, 'name' | 'risk'>, agent: PolicyView, origin: TurnOrigin): PolicyRefusal | undefined {
  const policy = policyOf(agent);
  if (policy.denied.has(tool.name)) return 'explicit_deny';
  if (policy.allowed !== 'all' && !policy.allowed.has(tool.name)) return 'not_in_profile';
  if (tool.risk !== 'read' && untrustedOrigins.has(origin) && policy.byOrigin.get(origin)?.has(tool.name) !== true) return 'origin';
  return undefined;
}

/** The tools that a turn of this agent and origin may use, in their own order; one list for all turns of the same. */
export function selectTools(tools: readonly Tool[], agent: PolicyView, origin: TurnOrigin): readonly Tool[] {
  const { selected } = policyOf(agent);
  let found = selected.get(origin);
  if (found?.from !== tools) {
    found = { from: tools, tools: tools.filter((tool) => refuseTool(tool, agent, origin) === undefined) };
    selected.set(origin, found);
  }
  return found.tools;
}
