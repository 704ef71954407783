import type { TurnOrigin } from '@gatehouse/contract';
import type { NewWork } from '../../unattended/durable/api.ts';
import type { InboxMessage } from '../../unattended/inbox/api.ts';

export type SendMode = 'fire-and-forget' | 'wait' | 'ping-pong';

/** One message from conversation to conversation, with the answers that it leads to. */
export interface SendRow {
  /** `ss_<uuid>` */
  readonly id: string;
  readonly mode: SendMode;
  /** Whether an agent sent it; else a token did. */
  readonly byAgent: boolean;
  /** The conversation that it comes from, and where answers of `ping-pong` go; null when a token only sends. */
  readonly fromRef: string | null;
  readonly fromSessionKey: string | null;
  readonly fromAgentId: string | null;
  readonly toRef: string;
  readonly toSessionKey: string;
  readonly toAgentId: string;
  /** Owner of the conversation that it goes to. */
  readonly toPrincipalId: string;
  /** Who sends, and with whose token the turns run. */
  readonly principalId: string;
  readonly tokenId: string;
  /** By whose rights the turns act. */
  readonly authority: TurnOrigin;
  /** Of the turn that sent it; null when a token did. */
  readonly rootRunId: string | null;
  /** What further bounds the turn in the conversation that it goes to, as JSON; null when nothing does. */
  readonly boundsJson: string | null;
  readonly text: string;
  /** Whether the agent that sent it had read text from outside. */
  readonly tainted: boolean;
  /** Answers that may go back. */
  readonly maxTurns: number;
  readonly traceId: string;
  readonly createdAtMs: number;
}

/** How far a message is. */
export interface SendState {
  readonly state: 'open' | 'done' | 'failed';
  /** Which answer is awaited: 0 is the first one of the conversation that it was sent to. */
  readonly leg: number;
  /** The last answer. */
  readonly response: string | null;
  readonly errorKind: string | null;
  readonly tokens: number;
  /** In 1e-9 US dollars; null when the price of a call is not known. */
  readonly costNano: number | null;
  readonly announced: boolean;
}

/** What an answer changes, committed with its turn. */
export interface SendProgress {
  readonly sendId: string;
  readonly leg: number;
  readonly response: string;
  readonly tokens: number;
  readonly costNano: number | null;
  readonly errorKind: string | null;
  /** The next answer; absent when this was the last one. */
  readonly next?: NewWork;
  readonly inbox?: InboxMessage;
  readonly atMs: number;
}

/** What `acceptSend` takes: the message with its first piece of work. */
export interface SendIntake {
  readonly send: SendRow;
  readonly work: NewWork;
  /** The first turn of the conversation has not ended, so that it may have no row yet. Any other without a row was deleted since it was looked up. */
  readonly isStarting: boolean;
  readonly ageNowMs: number;
}
