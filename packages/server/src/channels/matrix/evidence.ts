import type { Act, SendResult } from '../port.ts';
import type { Failure } from './api.ts';

/** Returns what a failed request to send an event proves. The same transaction id makes one event, so that an ambiguous one may be repeated. */
export function sendFailure(failure: Failure): SendResult {
  const { text } = failure;
  if (failure.is === 'lost') return failure.maybeSent ? { is: 'ambiguous', text } : { is: 'notSent', text };
  const { status, errcode, retryAfterMs } = failure;
  if (status === 429) return { is: 'notSent', text, scope: 'instance', ...(retryAfterMs !== undefined && { retryAfterMs }) };
  // The message waits until the account is repaired.
  if (status === 401 || status < 400) return { is: 'notSent', text };
  if (status >= 500 || status === 408) return { is: 'ambiguous', text };
  return { is: 'rejected', kind: kindOf(status, errcode, 'too_long'), text };
}

/** Returns what a failed upload proves: without its event nobody sees the file. */
export function uploadFailure(failure: Failure): SendResult {
  const result = sendFailure(failure);
  if (result.is === 'ambiguous') return { is: 'notSent', text: result.text };
  return result.is === 'rejected' && failure.is === 'refused' ? { ...result, kind: kindOf(failure.status, failure.errcode, 'too_large') } : result;
}

function kindOf(status: number, errcode: string, large: string): string {
  if (status === 413 || errcode === 'M_TOO_LARGE') return large;
  if (status === 403) return 'forbidden';
  return status === 404 ? 'not_found' : 'refused';
}

type FailedAct = Extract<Act<never>, { readonly is: 'failed' }>;

/** Returns the end of a failed call other than a send; `isRead`: it changes nothing. */
export function actFailure(failure: Failure, isRead = false): FailedAct {
  const { text } = failure;
  const unclear = isRead ? 'unavailable' : 'ambiguous';
  if (failure.is === 'lost') return { is: 'failed', kind: failure.maybeSent ? unclear : 'unavailable', text };
  const { status, retryAfterMs } = failure;
  if (status === 429) return { is: 'failed', kind: 'rate_limited', text, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  if (status >= 500 || status === 408) return { is: 'failed', kind: unclear, text };
  if (status === 404) return { is: 'failed', kind: 'not_found', text };
  if (status === 403) return { is: 'failed', kind: 'denied', text };
  return { is: 'failed', kind: status === 401 || status < 400 ? 'unavailable' : 'invalid', text };
}
