import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Lanes } from '../../../../kernel/lane.ts';

/** Runs in the lane of a conversation, without concurrent turns; rejects calls from its own turn, which could never get the lane. */
export type Alone = <T>(ref: string, call: CallContext, run: () => Promise<T>) => Promise<T>;

/** Changes of conversations take no slot of an agent. */
const maintenance = { group: 'maintenance', groupLimit: 16 };

export function createAlone(lanes: Pick<Lanes, 'acquire'>): Alone {
  return async (ref, call, run) => {
    refuseOwnTurn(ref, call);
    using _lease = await lanes.acquire({ ...maintenance, key: ref, principalId: call.identity.principalId, signal: call.signal });
    return await run();
  };
}

export function refuseOwnTurn(ref: string, { agentCaller }: CallContext): void {
  if (agentCaller?.conversationRef === ref)
    throw new AppError('precondition_failed', 'A turn cannot wait for its own conversation; another caller must request this');
}
