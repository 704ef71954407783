import type { Generated } from 'kysely';
import type { TurnRow } from './store.ts';

/** Rows of `turn`. */
interface TurnTable {
  readonly id: string;
  readonly conversationRef: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly origin: TurnRow['origin'];
  readonly state: TurnRow['state'];
  readonly finishReason: string | null;
  readonly failureKind: string | null;
  readonly model: string | null;
  readonly steps: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costNano: number | null;
  readonly traceId: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  readonly reservedNano: number | null;
  readonly bootId: Generated<string>;
}

/** Rows of `model_call`. */
interface ModelCallTable {
  readonly id: Generated<number>;
  readonly turnId: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly provider: string;
  readonly model: string;
  readonly operation: string;
  readonly outcome: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly estimated: number;
  readonly costNano: number | null;
  readonly savedNano: number | null;
  readonly latencyMs: number;
  readonly responseId: string | null;
  readonly atMs: number;
  readonly conversationRef: string | null;
  readonly rolledUp: Generated<number>;
}

/** Rows of `durable_turn`. */
interface DurableTurnTable {
  readonly workId: string;
  readonly turnId: string;
  readonly resumes: number;
  readonly firstCallId: number | null;
  readonly tainted: 0 | 1;
  readonly refused: Generated<number>;
  readonly question: string | null;
}

/** Rows of `turn_step`. */
interface TurnStepTable {
  readonly turnId: string;
  readonly step: number;
  readonly finished: number;
  readonly messagesJson: string;
}

/** Rows of `turn_intent`. */
interface TurnIntentTable {
  readonly opKey: string;
  readonly turnId: string;
  readonly step: number;
  readonly callId: string;
  readonly toolName: string;
  readonly resultJson: string | null;
}

/** Rows of `turn_message`. */
interface TurnMessageTable {
  readonly id: string;
  readonly turnId: string;
  readonly bootId: string;
  readonly conversationRef: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly text: string;
  readonly atMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly turn: TurnTable;
    readonly modelCall: ModelCallTable;
    readonly durableTurn: DurableTurnTable;
    readonly turnStep: TurnStepTable;
    readonly turnIntent: TurnIntentTable;
    readonly turnMessage: TurnMessageTable;
  }
}
