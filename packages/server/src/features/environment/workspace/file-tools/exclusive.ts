import { createLanes } from '../../../../kernel/lane.ts';

/** Runs `work` alone among calls with the same key, in order of arrival; fails with `rate_limited` when the queue is full. */
export type Exclusive = <T>(key: string, call: { readonly signal: AbortSignal }, work: () => Promise<T>) => Promise<T>;

export function createExclusive(): Exclusive {
  const lanes = createLanes();
  return async (key, { signal }, work) => {
    using _lease = await lanes.acquire({ key, group: key, groupLimit: 1, principalId: key, signal });
    return await work();
  };
}
