import type { Generated } from 'kysely';
import type { SendRow, SendState } from './api.ts';

/** Rows of `session_send`. */
interface SessionSendTable {
  readonly id: string;
  readonly mode: SendRow['mode'];
  readonly byAgent: number;
  readonly fromRef: string | null;
  readonly fromSessionKey: string | null;
  readonly fromAgentId: string | null;
  readonly toRef: string;
  readonly toSessionKey: string;
  readonly toAgentId: string;
  readonly toPrincipalId: string;
  readonly principalId: string;
  readonly tokenId: string;
  readonly authority: SendRow['authority'];
  readonly rootRunId: string | null;
  readonly boundsJson: string | null;
  readonly text: string;
  readonly maxTurns: number;
  readonly traceId: string;
  readonly state: SendState['state'];
  readonly leg: number;
  readonly response: string | null;
  readonly errorKind: string | null;
  readonly tokens: number;
  readonly costNano: number | null;
  readonly announced: number;
  readonly createdAtMs: number;
  readonly endedAtMs: number | null;
  readonly tainted: Generated<number>;
  readonly chatJson: Generated<string | null>;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly sessionSend: SessionSendTable;
  }
}
