import type {} from '../../../kernel/db/tables.ts';

/** Rows of `browser_profile`: cookies and storage of an agent's browser, sealed. */
interface BrowserProfileTable {
  readonly agentId: string;
  readonly sealed: string;
  readonly savedAtMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly browserProfile: BrowserProfileTable;
  }
}
