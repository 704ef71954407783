import type { TurnOrigin } from '@gatehouse/contract';
import type { NewWork } from '../../unattended/durable/api.ts';
import type { InboxMessage } from '../../unattended/inbox/api.ts';

export type SendMode = 'fire-and-forget' | 'wait' | 'ping-pong';

/** A message from one conversation to another, with the answers that follow. */
export interface SendRow {
  /** `ss_<uuid>` */
  readonly id: string;
  readonly mode: SendMode;
  /** Whether an agent sent it; otherwise a token did. */
  readonly byAgent: boolean;
  /** The conversation that it comes from, which receives the answers of `ping-pong`; null when a token only sends. */
  readonly fromRef: string | null;
  readonly fromSessionKey: string | null;
  readonly fromAgentId: string | null;
  readonly toRef: string;
  readonly toSessionKey: string;
  readonly toAgentId: string;
  /** Owner of the target conversation. */
  readonly toPrincipalId: string;
  /** The sender, and the token that the turns run with. */
  readonly principalId: string;
  readonly tokenId: string;
  /** The origin whose authority the turns act with. */
  readonly authority: TurnOrigin;
  /** Root run of the sending turn; null when a token sent it. */
  readonly rootRunId: string | null;
  /** Additional bounds of the turn in the target conversation, as JSON; null when there are none. */
  readonly boundsJson: string | null;
  /** The chat that gets the result instead of the inbox, as JSON: that of the sending turn, for a token that of the target conversation; null without one. */
  readonly chatJson: string | null;
  readonly text: string;
  /** Whether the agent that sent it had read text from outside. */
  readonly tainted: boolean;
  /** Maximum number of answers that are sent back. */
  readonly maxTurns: number;
  readonly traceId: string;
  readonly createdAtMs: number;
}

/** Progress of a message. */
export interface SendState {
  readonly state: 'open' | 'done' | 'failed';
  /** The pending answer: 0 is the first one of the target conversation. */
  readonly leg: number;
  /** The last answer. */
  readonly response: string | null;
  readonly errorKind: string | null;
  readonly tokens: number;
  /** Cost in 1e-9 US dollars; null when the price of a call is unknown. */
  readonly costNano: number | null;
  readonly announced: boolean;
}

/** The changes of an answer, committed with its turn. */
export interface SendProgress {
  readonly sendId: string;
  readonly leg: number;
  readonly response: string;
  readonly tokens: number;
  readonly costNano: number | null;
  readonly errorKind: string | null;
  /** The next answer; absent after the last one. */
  readonly next?: NewWork;
  readonly inbox?: InboxMessage;
  readonly atMs: number;
}

/** Input of `acceptSend`: the message with its first work item. */
export interface SendIntake {
  readonly send: SendRow;
  readonly work: NewWork;
  /** Whether the first turn of the conversation is unfinished, so it may have no row yet. Otherwise a missing row means a deletion after the lookup. */
  readonly isStarting: boolean;
  readonly ageNowMs: number;
}
