import type { Generated } from 'kysely';
import type { GraphRow, NodeRow } from './rows.ts';

/** Rows of `graph_run`. */
interface GraphRunTable {
  readonly id: string;
  readonly principalId: string;
  readonly tokenId: string;
  readonly agentId: string;
  readonly label: string | null;
  readonly definitionJson: string;
  readonly variablesJson: string;
  readonly nodeCount: number;
  readonly rootRunId: string | null;
  readonly requesterJson: string | null;
  readonly byAgent: number;
  readonly announceJson: string;
  readonly nodeProgress: number;
  readonly workId: string | null;
  readonly state: GraphRow['state'];
  readonly cancelReason: GraphRow['cancelReason'];
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly waitedMs: Generated<number>;
}

/** Rows of `graph_node`. */
interface GraphNodeTable {
  readonly graphId: string;
  readonly nodeId: string;
  readonly place: number;
  readonly state: NodeRow['state'];
  readonly attempt: number;
  readonly runId: string | null;
  readonly stepsJson: string;
  readonly output: string | null;
  readonly summary: string | null;
  readonly error: string | null;
  readonly partial: number;
  readonly answer: NodeRow['answer'];
  readonly answerText: string | null;
  readonly tokens: number;
  readonly costNano: number;
  readonly unpriced: number;
  readonly startedAtMs: number | null;
  readonly deadlineMs: number | null;
  readonly endedAtMs: number | null;
  readonly tainted: Generated<number>;
  readonly cause: string | null;
  readonly effectsRefused: Generated<number>;
}

/** Rows of `saved_graph`. */
interface SavedGraphTable {
  readonly id: string;
  readonly principalId: string;
  readonly agentId: string | null;
  readonly label: string;
  readonly definitionJson: string;
  readonly nodeCount: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly graphRun: GraphRunTable;
    readonly graphNode: GraphNodeTable;
    readonly savedGraph: SavedGraphTable;
  }
}
