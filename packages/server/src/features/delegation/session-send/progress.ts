import type { TurnOutcome } from '../../conversations/turns/api.ts';
import type { SendProgress, SendRow, SendState } from './api.ts';
import type { EndpointsApi } from '../../channels/delivery/api.ts';
import { bound, failedNote, hasNextAnswer, resultMessage, workOf } from './exchange.ts';
import type { SendEnd } from './waiting.ts';

export const errorKindOf = ({ failure, finishReason }: TurnOutcome): string | undefined =>
  failure?.kind ?? (finishReason === 'aborted' ? 'aborted' : undefined);

/** Returns the progress of the message after this answer. `cause` says why its turn failed; `isAwaited`: a caller waits for the end. */
export function progressOf(
  send: SendRow & SendState,
  leg: number,
  outcome: TurnOutcome,
  { isAwaited, cause, atMs }: { readonly isAwaited: boolean; readonly cause: string; readonly atMs: number },
  address: EndpointsApi['address'],
): SendProgress {
  const response = bound(outcome.text);
  const errorKind = errorKindOf(outcome) ?? null;
  const progress = {
    sendId: send.id,
    leg,
    response,
    tokens: outcome.tokensUsed.total,
    costNano: outcome.costUsd === null ? null : Math.round(outcome.costUsd * 1e9),
    errorKind,
    atMs,
  };
  // When nobody waits for the answer any more, the failure must be reported.
  if (errorKind !== null)
    return outcome.failure?.transient === true && !isAwaited ? { ...progress, inbox: failedNote(send, cause, atMs, address) } : progress;
  if (hasNextAnswer(send, leg, response)) return { ...progress, next: workOf(send, leg + 1, atMs) };
  const inbox = resultMessage(send, response, { isAwaited, atMs }, address);
  return { ...progress, ...(inbox !== undefined && { inbox }) };
}

/** Returns what a waiting caller receives after the last answer. */
export const endOf = (send: SendState, leg: number, { response, errorKind, inbox, tokens, costNano }: SendProgress): SendEnd => ({
  response,
  errorKind,
  announced: inbox !== undefined,
  turnsCompleted: errorKind === null ? leg : leg - 1,
  tokens: send.tokens + tokens,
  costNano: send.costNano === null || costNano === null ? null : send.costNano + costNano,
});
