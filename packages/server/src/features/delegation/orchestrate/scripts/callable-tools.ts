import type { Capability } from '@gatehouse/contract';

/** What a script needs for each tool that it may call; what is not here is not served. */
const tools: ReadonlyMap<string, Capability> = new Map([
  ...['memory_search', 'memory_get', 'session_search', 'sessions_list', 'session_status', 'sessions_history', 'read', 'grep', 'find', 'ls'].map(
    (name) => [name, 'orch:read'] as const,
  ),
  ...['web_search', 'web_fetch'].map((name) => [name, 'orch:web'] as const),
]);

export const capabilityOf = (tool: string): Capability | undefined => tools.get(tool);

export const callableTools: readonly string[] = [...tools.keys()];

/** Methods beside `tool.invoke`: an agent reads of itself with them, for which it needs no capability. */
export const openMethods: ReadonlySet<string> = new Set(['capabilities.introspect', 'session.status', 'session.list']);
/** Methods that stop runs: open to scripts of an agent that has the grant `adminTrust`, to no other. */
export const trustedMethods: ReadonlySet<string> = new Set(['lease.revoke', 'run.kill', 'autonomy.evict']);
export const toolMethod = 'tool.invoke';

/** Whatever a lease says: these change the installation, other agents or the past, or begin what could not be called from here. */
const deniedTools =
  /^(?:orchestrate|exec|process|apply_patch|write|edit|message|cron|pipeline|subagents|sessions_(?:send|spawn|manage)|memory_(?:store|manage)|browser|skill|background_tasks|discover_tools|gateway|.*_manage|.*_action|mcp__.*)$/;
const deniedMethods =
  /^(?:config|env|gateway|system|admin|agents|models|providers|tokens|skills|memory|heartbeat|channels|mcp|approvals?|lease|run|autonomy|subagent|workspace|media|budgets?|obs)\.|^session\.(?:delete|reset|reset_conversation|export|compact|fork)$/;

export const isDeniedTool = (name: string): boolean => deniedTools.test(name);
export const isDeniedMethod = (name: string): boolean => deniedMethods.test(name);
