import type { Generated } from 'kysely';
import type { NewRequest, RequestRow } from './store.ts';

/** Rows of `approval`. */
interface ApprovalTable {
  readonly id: string;
  readonly digest: string;
  readonly conversationRef: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly origin: NewRequest['origin'];
  readonly traceId: string;
  readonly tool: string;
  readonly action: string;
  readonly reason: string;
  readonly trustLevel: NewRequest['trustLevel'];
  readonly paramsJson: string | null;
  readonly paramsBytes: number;
  readonly state: RequestRow['state'];
  readonly createdAtMs: number;
  readonly timeoutMs: number;
  readonly expiresAtMs: number;
  readonly decidedAtMs: number | null;
  readonly decidedBy: string | null;
  readonly decidedReason: string | null;
  readonly grantState: RequestRow['grantState'];
  readonly reusable: Generated<number>;
  readonly turnJson: string | null;
  readonly waitsAt: Generated<string>;
  readonly chatJson: string | null;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly approval: ApprovalTable;
  }
}
