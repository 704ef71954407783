import type {} from '../../../kernel/db/tables.ts';

/** Rows of `mcp_server`. */
interface McpServerTable {
  readonly name: string;
  readonly transport: string;
  readonly url: string;
  readonly headersSealed: string;
  readonly agentsJson: string | null;
  readonly enabled: number;
  readonly createdAtMs: number;
}

/** Rows of `mcp_authorization`: what a person allowed at the authorization server of an MCP server. */
interface McpAuthorizationTable {
  readonly server: string;
  /** Another one after each change of the tokens. */
  readonly version: string;
  readonly sealed: string;
  readonly principalId: string;
  readonly authorizedAtMs: number;
}

/** Rows of `mcp_authorization_flow`: pending authorizations, which a person completes in a browser. */
interface McpAuthorizationFlowTable {
  readonly stateDigest: string;
  readonly server: string;
  readonly sealed: string;
  readonly principalId: string;
  readonly tokenId: string;
  readonly createdAtMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly mcpServer: McpServerTable;
    readonly mcpAuthorization: McpAuthorizationTable;
    readonly mcpAuthorizationFlow: McpAuthorizationFlowTable;
  }
}
