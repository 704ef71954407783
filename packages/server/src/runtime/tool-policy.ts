import type { AgentConfig, TurnOrigin } from '@gatehouse/contract';
import { deferTools, discoverToolName } from './discovery.ts';
import type { Tool } from './tool.ts';
import type { TurnInput } from './turn.ts';

const coding = [
  'read',
  'edit',
  'write',
  'grep',
  'find',
  'ls',
  'apply_patch',
  'exec',
  'process',
  'terminal',
  'orchestrate',
  'read_document',
  'knowledge_search',
];
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

const media = ['image_analyze', 'transcribe_audio', 'describe_video', 'image_generate', 'tts_synthesize'];

/** Names may belong to tools that an installation does not have: a profile is a bound, not a promise. */
const profiles: Readonly<Record<AgentConfig['tools']['profile'], readonly string[] | 'all'>> = {
  none: [],
  minimal: ['read', 'write', 'skill'],
  coding: [...coding, 'skill'],
  messaging: ['message', 'session_status', 'skill', 'read_document', 'knowledge_search', ...media],
  supervisor,
  full: 'all',
};

const groups: Readonly<Record<string, readonly string[]>> = {
  coding,
  documents: ['read_document'],
  knowledge: ['knowledge_search'],
  files: ['read', 'edit', 'write', 'grep', 'find', 'ls', 'apply_patch'],
  shell: ['exec', 'process', 'terminal', 'orchestrate'],
  web: ['web_fetch', 'web_search', 'browser'],
  browser: ['browser'],
  memory: ['memory_search', 'memory_get', 'memory_store'],
  skills: ['skill'],
  mcp: ['mcp__*'],
  scheduling: ['cron'],
  messaging: ['message'],
  media,
  sessions: [
    'sessions_list',
    'sessions_history',
    'sessions_send',
    'sessions_spawn',
    'session_status',
    'session_search',
    'subagents',
    'agents_list',
    'read_result',
    'pipeline',
  ],
  platform_actions: ['discord_action', 'telegram_action', 'slack_action', 'whatsapp_action', 'irc_action', 'email_action', 'matrix_action'],
  supervisor,
};

/** The loop's own tools: they reach nothing that the other tools of a turn do not, so only `deny` removes them. */
export const backgroundToolName = 'background_tasks';
/** Only for runs of graph nodes: reads the results of the nodes before them. */
export const nodeResultToolName = 'node_result';
const loopTools: ReadonlySet<string> = new Set([backgroundToolName, discoverToolName, nodeResultToolName]);

/**
 * Origins whose callers are not the operator's own: a tool that writes or reaches out must be named for the origin.
 * A `background` turn has the authority of the one that started its task; the origin alone grants none.
 */
const untrustedOrigins: ReadonlySet<TurnOrigin> = new Set(['v1', 'webhook', 'mcp', 'background']);

/** Whether turns of this origin act for somebody other than the operator's own caller. */
export const isUntrustedOrigin = (origin: TurnOrigin): boolean => untrustedOrigins.has(origin);

/** Returns the authority of a turn: a background turn's is that of the turn that started its task, delegated work's that of an untrusted origin. */
export function authorityOf(turn: Pick<TurnInput, 'origin' | 'background' | 'authority'>): TurnOrigin {
  return turn.background?.begunBy ?? turn.authority ?? turn.origin;
}

export type PolicyRefusal = 'explicit_deny' | 'not_in_profile' | 'origin';
type PolicyView = Pick<AgentConfig, 'tools' | 'originTools' | 'background'>;

/** Tool patterns: names, names that end in `*`, and `group:<name>`. */
export type ToolMatch = (name: string) => boolean;

interface Compiled {
  readonly isAllowed: ToolMatch;
  readonly isDenied: ToolMatch;
  readonly byOrigin: Map<TurnOrigin, ToolMatch>;
  /** The last selection for each origin: the same list again for the same tools. */
  readonly selected: Map<TurnOrigin, Selected>;
}

interface Selected {
  readonly from: readonly Tool[];
  readonly tools: readonly Tool[];
}

/** Configurations are replaced, never changed, so each is compiled once. */
const compiled = new WeakMap<PolicyView, Compiled>();

/** Names come from the configuration and from callers. */
const groupOf = (name: string): readonly string[] => (Object.hasOwn(groups, name) ? groups[name] : undefined) ?? [];

/** Compiles patterns once, for many names. */
export function compilePatterns(patterns: readonly string[]): ToolMatch {
  const names = new Set<string>();
  const beginnings: string[] = [];
  for (const pattern of patterns.flatMap((each) => (each.startsWith('group:') ? groupOf(each.slice('group:'.length)) : [each]))) {
    if (pattern.endsWith('*')) beginnings.push(pattern.slice(0, -1));
    else names.add(pattern);
  }
  return (name) => names.has(name) || beginnings.some((beginning) => name.startsWith(beginning));
}

function compile(agent: PolicyView): Compiled {
  const profile = profiles[agent.tools.profile];
  const byOrigin = new Map<TurnOrigin, ToolMatch>();
  for (const origin of untrustedOrigins) byOrigin.set(origin, compilePatterns(agent.originTools[origin] ?? []));
  return {
    isAllowed: profile === 'all' ? () => true : compilePatterns([...profile, ...agent.tools.allow]),
    isDenied: compilePatterns(agent.tools.deny),
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
 * Returns why a tool may not be used, or undefined when it may: (profile ∪ allow) − deny, and for callers who are not the
 * operator's own nothing that writes or reaches out unless the agent's `originTools` names it (decisions: origin
 * policy). Deny always wins.
 */
export function refuseTool(tool: Pick<Tool, 'name' | 'risk'>, agent: PolicyView, authority: TurnOrigin): PolicyRefusal | undefined {
  const policy = policyOf(agent);
  if (policy.isDenied(tool.name)) return 'explicit_deny';
  if (!policy.isAllowed(tool.name) && !loopTools.has(tool.name)) return 'not_in_profile';
  if (tool.risk !== 'read' && untrustedOrigins.has(authority) && policy.byOrigin.get(authority)?.(tool.name) !== true) return 'origin';
  return undefined;
}

/** Returns the tools that a further policy also allows; discovery remains the agent's own setting. */
export function restrictTools(tools: readonly Tool[], { profile, allow, deny }: AgentConfig['tools']): readonly Tool[] {
  const named = profiles[profile];
  const isAllowed = named === 'all' ? () => true : compilePatterns([...named, ...allow]);
  const isDenied = compilePatterns(deny);
  return tools.filter(({ name }) => !isDenied(name) && (isAllowed(name) || loopTools.has(name)));
}

/** Returns the tools that each of these policies allows, and that each of these agents has under the authority. */
export function boundTools(
  tools: readonly Tool[],
  policies: readonly AgentConfig['tools'][],
  agents: readonly (PolicyView | undefined)[],
  authority: TurnOrigin,
): readonly Tool[] {
  if (agents.includes(undefined)) return [];
  const within = policies.reduce(restrictTools, tools);
  return agents.reduce<readonly Tool[]>(
    (left, agent) => left.filter((tool) => agent !== undefined && refuseTool(tool, agent, authority) === undefined),
    within,
  );
}

/** Valid names in `group:<name>`. */
export const toolGroupNames: readonly string[] = Object.keys(groups);

/**
 * Returns the tools offered to a turn of this agent and authority, in their own order; one list for all such turns.
 * Those that only `discover_tools` finds are in `deferredBy` of that tool, which is then the last of the list.
 */
export function selectTools(tools: readonly Tool[], agent: PolicyView, authority: TurnOrigin): readonly Tool[] {
  const { selected } = policyOf(agent);
  let found = selected.get(authority);
  if (found?.from !== tools) {
    found = { from: tools, tools: select(tools, agent, authority) };
    selected.set(authority, found);
  }
  return found.tools;
}

function select(tools: readonly Tool[], agent: PolicyView, authority: TurnOrigin): readonly Tool[] {
  const allowed = tools.filter((tool) => refuseTool(tool, agent, authority) === undefined);
  // Turns of /v1 are not stored: there would be nothing to return to.
  const canPromote = authority !== 'v1' && agent.background.afterMs > 0 && allowed.some((tool) => tool.promotable === true);
  const useful = canPromote ? allowed : allowed.filter((tool) => tool.name !== backgroundToolName);
  if (policyOf(agent).isDenied(discoverToolName)) return useful;
  return deferTools(useful, agent.tools.discovery);
}
