import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import { agentsFor, refuseAgents } from './access.ts';
import type { ChannelActivity } from './activity/activity.ts';

/** Handlers of `obs.channels.*`. */
export function createChannelReports({
  clock,
  activity,
}: {
  readonly clock: Clock;
  readonly activity: ChannelActivity;
}): HandlersOf<'obs.channels.all' | 'obs.channels.stale' | 'obs.channels.get'> {
  async function visible(call: CallContext) {
    refuseAgents(call);
    return activity.read(agentsFor(undefined, call));
  }
  return {
    'obs.channels.all': async (_params, call) => ({ channels: await visible(call) }),
    'obs.channels.stale': async ({ thresholdMs }, call) => {
      const channels = await visible(call);
      const sinceMs = clock.now() - thresholdMs;
      return { stale: channels.filter(({ lastActiveAt }) => lastActiveAt <= sinceMs) };
    },
    'obs.channels.get': async ({ channelId, channelType }, call) => ({
      channel: (await visible(call)).find((one) => one.channelId === channelId && one.channelType === channelType) ?? null,
    }),
  };
}
