import type { WorkWaiting } from '@gatehouse/contract';
import { parseJson } from '../../kernel/json.ts';
import type { Waiting } from './api.ts';

/** What work waits for, as results show it; the provider's sentence is for owners. */
export function viewOfWait({ kind, sinceMs, untilMs, subject, cause }: Waiting, isOwner: boolean): WorkWaiting {
  return {
    kind,
    sinceMs,
    untilMs,
    ...(kind === 'approval' && subject !== undefined && { approvalId: subject }),
    ...(isOwner && cause !== undefined && { cause }),
  };
}

/** The same of a column that holds it; written by `waitWork` alone. */
export const viewOfWaitJson = (json: string, isOwner: boolean): WorkWaiting => viewOfWait(parseJson(json) as Waiting, isOwner);
