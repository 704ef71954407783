/** Rows of `saved_prompt`. */
interface SavedPromptTable {
  readonly principalId: string;
  readonly name: string;
  readonly text: string;
  readonly updatedAtMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly savedPrompt: SavedPromptTable;
  }
}
