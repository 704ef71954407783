import type { Result } from '@gatehouse/contract';

export type Values = { readonly [key: string]: unknown };

/** A model as a client's configuration lists it. */
export interface OfferedModel {
  readonly id: string;
  readonly contextWindow?: number;
  readonly maxTokens?: number;
  readonly input?: readonly string[];
}

/** What a client needs to reach the gateway. */
export interface Access {
  /** Without a path. */
  readonly url: string;
  readonly secret: string;
  readonly model: string;
  readonly models: readonly OfferedModel[];
  /** Whether the gateway's MCP server is configured too. */
  readonly mcp: boolean;
}

/** Where a client looks for its files. */
export interface Places {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly userHome: string;
}

/** What a configuration file of a client must contain. A key or a list entry named `gatehouse` belongs to this command, undefined removes it; the rest is merged. */
export interface ClientFile {
  readonly file: string;
  readonly format: 'json' | 'yaml' | 'toml';
  readonly values: Values;
  /** Needed in a new file only. */
  readonly initial?: Values;
}

export interface ConnectedClient {
  readonly id: string;
  readonly title: string;
  readonly route: '/v1/chat/completions' | '/v1/responses' | '/v1/messages';
  /** Whether the client runs tools of its own, which the agent's would only confuse. */
  readonly bringsTools: boolean;
  readonly takesMcp?: boolean;
  /** How to start it once it is configured. */
  readonly start: string;
  env?(access: Access): Readonly<Record<string, string>>;
  files?(access: Access, places: Places): readonly ClientFile[];
}

export type TokenCompat = NonNullable<Result<'tokens.create'>['compat']>;

/** Histories and tools of a client need the extended fields on the chat route; its own tools replace those of the agent. */
export function compatOf(client: ConnectedClient, tools: 'agent' | 'none' | undefined): TokenCompat {
  const whose = tools ?? (client.bringsTools ? 'none' : undefined);
  return { fields: 'extended', ...(whose !== undefined && { tools: whose }) };
}
