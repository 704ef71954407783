import type { WorkWaiting } from '@gatehouse/contract';
import { parseJson } from '../kernel/json.ts';

/** A wait as durable work stores it; `subject` is the id of an approval. */
export interface StoredWait extends Pick<WorkWaiting, 'kind' | 'sinceMs' | 'untilMs' | 'cause'> {
  readonly subject?: string;
  /** When it is looked at again, at the latest. */
  readonly lookAtMs?: number;
}

/** Returns what work waits for, as shown in results; the provider's message is for owners. */
export function viewOfWait({ kind, sinceMs, untilMs, subject, cause, lookAtMs }: StoredWait, isOwner: boolean): WorkWaiting {
  return {
    kind,
    sinceMs,
    untilMs,
    ...(kind === 'provider' && lookAtMs !== undefined && { retryAtMs: lookAtMs }),
    ...(kind === 'approval' && subject !== undefined && { approvalId: subject }),
    ...(isOwner && cause !== undefined && { cause }),
  };
}

/** The same for a column that contains it; only durable work writes it. */
export const viewOfWaitJson = (json: string, isOwner: boolean): WorkWaiting => viewOfWait(parseJson(json) as StoredWait, isOwner);
