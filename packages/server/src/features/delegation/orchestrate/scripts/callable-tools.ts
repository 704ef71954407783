import type { Capability } from '@gatehouse/contract';

/** The capability of each tool that scripts may call; other tools are not available. */
const tools: ReadonlyMap<string, Capability> = new Map([
  ...['memory_search', 'memory_get', 'session_search', 'sessions_list', 'session_status', 'sessions_history', 'read', 'grep', 'find', 'ls'].map(
    (name) => [name, 'orch:read'] as const,
  ),
  ...['web_search', 'web_fetch'].map((name) => [name, 'orch:web'] as const),
]);

export const capabilityOf = (tool: string): Capability | undefined => tools.get(tool);

export const callableTools: readonly string[] = [...tools.keys()];

/** Methods in addition to `tool.invoke`: an agent reads about itself with them, which needs no capability. */
export const openMethods: ReadonlySet<string> = new Set(['capabilities.introspect', 'session.status', 'session.list']);
/** Methods that stop runs: available only to scripts of an agent with the grant `adminTrust`. */
export const trustedMethods: ReadonlySet<string> = new Set(['lease.revoke', 'run.kill', 'autonomy.evict']);
export const toolMethod = 'tool.invoke';

/** Denied regardless of the lease: these change the installation, other agents or the past, or start what could not be called from here. */
const deniedTools =
  /^(?:orchestrate|exec|process|apply_patch|write|edit|message|cron|pipeline|subagents|sessions_(?:send|spawn|manage)|memory_(?:store|manage)|browser|skill|background_tasks|discover_tools|gateway|.*_manage|.*_action|mcp__.*)$/;
const deniedMethods =
  /^(?:config|env|gateway|system|admin|agents|models|providers|tokens|skills|memory|heartbeat|channels|mcp|approvals?|lease|run|autonomy|subagent|workspace|media|budgets?|obs)\.|^session\.(?:delete|reset|reset_conversation|export|compact|fork)$/;

export const isDeniedTool = (name: string): boolean => deniedTools.test(name);
export const isDeniedMethod = (name: string): boolean => deniedMethods.test(name);
