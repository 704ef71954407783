import { type OperationCall, toCall } from '../../../../kernel/db/operation.ts';
import type { ChatEndpoint } from '../../../../kernel/call-context.ts';
import type { OutgoingMessage } from '../../../channels/delivery/api.ts';
import type { WorkItem } from '../../../unattended/durable/api.ts';
import type { ConversationTarget } from '../../../conversations/sessions/api.ts';
import { isSilent } from '../../../../runtime/silent-answer.ts';
import type { TurnFailure } from '../../../../runtime/turn-failure.ts';
import type { DurableTurn, TurnOutcome, TurnSettlement } from '../../../conversations/turns/api.ts';
import { readOptions } from '../requests/options.ts';
import type { RunRow } from '../run/row.ts';
import { readTarget } from './announce-target.ts';
import { markRunsAnnounced } from './announcement-store.ts';

/** Returns a turn without a user message, with the authority of the turn that requested the run. */
export function announcementTurn(
  row: RunRow,
  target: ConversationTarget,
  item: WorkItem,
  settle: DurableTurn['settle'],
): Omit<DurableTurn, 'message' | 'fenced'> {
  const { origin, policies, agents } = readOptions(row.optionsJson).asked;
  return {
    workId: item.id,
    owner: item.owner,
    fence: item.fence,
    origin: 'background',
    authority: origin,
    target,
    rootRunId: row.rootRunId,
    toolBounds: { policies, agents },
    endpoint: readTarget(row).endpoint,
    kept: true,
    operation: 'interactive',
    settle,
  };
}

/** Returns the settlement of the work after the turn. The announcement is in the conversation by now, even if the answer failed. */
export function settlementOf(
  { failure, finishReason }: TurnOutcome,
  announced: readonly RunRow[],
  alertOf: (failure: TurnFailure) => OperationCall,
): TurnSettlement {
  const alongside = [toCall(markRunsAnnounced, { runIds: announced.map(({ id }) => id), as: 'turn' as const })];
  if (failure === undefined) return { state: 'done', alongside };
  // No user started this turn, so nobody would notice that the answer is missing.
  if (failure.transient) return { state: 'failed', errorKind: failure.kind, alongside: [...alongside, alertOf(failure)] };
  return { state: finishReason === 'aborted' ? 'aborted' : 'failed', errorKind: failure.kind, alongside };
}

/** Returns the answer of the turn, for the chat that the conversation belongs to; undefined when the agent said nothing. */
export function answerTo(
  to: ChatEndpoint,
  { item, target }: { readonly item: WorkItem; readonly target: ConversationTarget },
  { text, turnId }: TurnOutcome,
): OutgoingMessage | undefined {
  const { agentId, principalId, ref } = target;
  if (isSilent(text)) return undefined;
  return { opKey: `announce:${item.id}`, to, text, unsolicited: 'report', agentId, principalId, conversationRef: ref, turnId };
}
