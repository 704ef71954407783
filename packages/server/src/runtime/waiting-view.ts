import type { WorkWaiting } from '@gatehouse/contract';
import { parseJson } from '../kernel/json.ts';

/** A wait as durable work stores it; `subject` is the id of an approval. */
export interface StoredWait extends Pick<WorkWaiting, 'kind' | 'sinceMs' | 'untilMs' | 'cause'> {
  readonly subject?: string;
}

/** What work waits for, as results show it; the provider's sentence is for owners. */
export function viewOfWait({ kind, sinceMs, untilMs, subject, cause }: StoredWait, isOwner: boolean): WorkWaiting {
  return {
    kind,
    sinceMs,
    untilMs,
    ...(kind === 'approval' && subject !== undefined && { approvalId: subject }),
    ...(isOwner && cause !== undefined && { cause }),
  };
}

/** The same of a column that holds it; written by durable work alone. */
export const viewOfWaitJson = (json: string, isOwner: boolean): WorkWaiting => viewOfWait(parseJson(json) as StoredWait, isOwner);
