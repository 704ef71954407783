import type { AgentConfig } from '@gatehouse/contract';
import type { CallContext } from '../../../kernel/call-context.ts';

export interface Agent {
  readonly id: string;
  readonly config: AgentConfig;
  /** `file`: an entry of config.yaml; `default`: the default agent without one; `stored`: a row of an earlier version that is not in the file yet. */
  readonly source: 'file' | 'default' | 'stored';
  readonly suspended: boolean;
  readonly isDefault: boolean;
  readonly workspaceDir: string;
}

export interface AgentsApi {
  readonly defaultId: string;
  list(): readonly Agent[];
  find(agentId: string): Agent | undefined;
  /** Returns an agent that the caller may use: `not_found` when unknown or outside the token's list, `precondition_failed` when suspended. */
  usable(agentId: string | undefined, call: CallContext): Agent;
}

/** Changes keys of an agent's entry in config.yaml, with a version and an audit row of this action; errors name the keys below `config`. */
export type ConfigureAgent = (
  change: { readonly agentId: string; readonly patch: Readonly<Record<string, unknown>>; readonly action: string },
  call: CallContext,
) => Promise<Agent>;
