import type { TurnOrigin } from '@gatehouse/contract';
import type { Generated } from 'kysely';
import type { RootRow } from './roots/list-store.ts';

/** Rows of `root_run`. */
interface RootRunTable {
  readonly id: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string | null;
  readonly origin: TurnOrigin;
  readonly profile: RootRow['profile'];
  readonly evicted: number;
  readonly state: string;
  readonly openRuns: number;
  readonly openGraphs: number;
  readonly openScripts: number;
  readonly completedRuns: number;
  readonly failedRuns: number;
  readonly graphs: number;
  readonly completions: number;
  readonly endedTokens: number;
  readonly endedNano: number;
  readonly spentTokens: number;
  readonly spentNano: number;
  readonly unpriced: number;
  readonly startedAtMs: number;
  readonly heartbeatAtMs: number;
  readonly endedAtMs: number | null;
  readonly cause: string | null;
  readonly activeMs: Generated<number>;
}

/** Rows of `lease`. */
interface LeaseTable {
  readonly id: string;
  readonly rootRunId: string;
  readonly parentLeaseId: string | null;
  readonly runId: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly caps: string;
  readonly bearerDigest: string | null;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
  readonly endedAtMs: number | null;
  readonly revoked: number;
  readonly bootId: Generated<string>;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly rootRun: RootRunTable;
    readonly lease: LeaseTable;
  }
}
