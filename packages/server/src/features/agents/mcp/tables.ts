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

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly mcpServer: McpServerTable;
  }
}
