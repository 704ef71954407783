import type { Button } from '../../../channels/port.ts';
import type { NewRequest } from '../../access/approvals/api.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Destination, PartRow } from '../delivery/api.ts';

/** Puts requests for approvals to the people in the chats that they came from. */
export interface ApprovalChats {
  /** Returns the question about a request, to be stored with it; undefined when it did not come from a chat. */
  ask(request: NewRequest): Promise<readonly PartRow[] | undefined>;
  /** Returns the code by which people answer a gate of a graph. */
  gateCode(gate: { readonly graphId: string; readonly nodeId: string }): string;
  /** Returns the buttons with which a question is answered. */
  buttonsOf(code: string): readonly Button[];
  /** Call after the commit of a question. */
  wake(parts: readonly PartRow[]): void;
  /** Call when requests were decided, have expired or were dropped, and at the start: confirms each in its chat, once. */
  confirm(): void;
}

/** Somebody who writes in a chat. */
export interface ChatSpeaker {
  readonly to: Destination;
  readonly senderId: string;
  readonly trust: 'owner' | 'member' | 'guest';
  readonly target: { readonly principalId: string };
}

/** A gate of a graph that was put to a chat. */
export interface ChatGate {
  readonly graphId: string;
  readonly nodeId: string;
  readonly agentId: string;
  readonly principalId: string;
}

/** A pending request in a chat. */
export interface WaitingRequest {
  readonly code: string;
  readonly action: string;
  readonly untilMs: number;
}

export interface Answers {
  /** Decides about the request that a code names; returns the reply, undefined when the chat is notified anyway. */
  answer(speaker: ChatSpeaker, decision: { readonly code: string; readonly approved: boolean }, call: CallContext): Promise<string | undefined>;
  /** Returns what waits in the chat for a decision that the speaker may make. */
  waiting(speaker: ChatSpeaker): Promise<readonly WaitingRequest[]>;
}
