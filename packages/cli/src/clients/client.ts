import type { Result } from '@gatehouse/contract';

export type Values = { readonly [key: string]: unknown };

/** A model as listed in a client's configuration. */
export interface OfferedModel {
  readonly id: string;
  readonly contextWindow?: number;
  readonly maxTokens?: number;
  readonly input?: readonly string[];
}

/** What a client needs to reach the gateway. */
export interface Access {
  /** Base URL without a path. */
  readonly url: string;
  readonly secret: string;
  readonly model: string;
  readonly models: readonly OfferedModel[];
  /** Whether to configure the gateway's MCP server too. */
  readonly mcp: boolean;
}

/** What determines where a client looks for its files. */
export interface ClientEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly userHome: string;
}

/** Required content of a client's configuration file. `gatehouse` keys and list entries are replaced, undefined removes; the rest is merged. */
export interface ClientFile {
  readonly file: string;
  readonly format: 'json' | 'yaml' | 'toml';
  readonly values: Values;
  /** Additional values for a new file. */
  readonly initial?: Values;
}

export interface ConnectedClient {
  readonly id: string;
  readonly title: string;
  readonly route: '/v1/chat/completions' | '/v1/responses' | '/v1/messages';
  /** Whether the client runs its own tools, with which the agent's would conflict. */
  readonly bringsTools: boolean;
  readonly takesMcp?: boolean;
  /** How to start the configured client. */
  readonly start: string;
  env?(access: Access): Readonly<Record<string, string>>;
  files?(access: Access, environment: ClientEnvironment): readonly ClientFile[];
}

export type TokenCompat = NonNullable<Result<'tokens.create'>['compat']>;

/** Returns the token's compatibility settings: clients need the extended fields for histories and tools; their own tools replace the agent's. */
export function compatOf(client: ConnectedClient, tools: 'agent' | 'none' | undefined): TokenCompat {
  const whose = tools ?? (client.bringsTools ? 'none' : undefined);
  return { fields: 'extended', ...(whose !== undefined && { tools: whose }) };
}
