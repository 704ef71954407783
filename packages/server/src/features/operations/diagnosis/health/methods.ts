import { AppError } from '../../../../kernel/app-error.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import type { ChannelStanding } from '../../../channels/instances/api.ts';
import { agentsOf } from '../callers.ts';
import type { DiagnosisDeps } from '../diagnosis.ts';
import { healthReport } from './report.ts';
import { type HealthInput, readHealth } from './store.ts';

/** A channel that is not connected for so long is down; a reconnect takes seconds. */
const downMs = 5 * 60_000;
const downFailures = 5;

/** Handler of `obs.system.health` (json-rpc.md §4). */
export function createSystemHealth({ db, clock, traces, channels }: DiagnosisDeps): HandlersOf<'obs.system.health'> {
  return {
    'obs.system.health': async ({ sinceHours }, call) => {
      if (agentsOf(call) !== null) throw new AppError('denied', 'This token is limited to some agents; the health of the system covers all of them');
      await traces.flush();
      const nowMs = clock.now();
      return healthReport(await db.search(readHealth, { untilMs: nowMs + 1, windowHours: sinceHours, channels: judged(channels(), nowMs) }));
    },
  };
}

function judged(channels: readonly ChannelStanding[], nowMs: number): HealthInput['channels'] {
  const namesOf = (test: (one: ChannelStanding) => boolean) => channels.filter(test).map(({ name }) => name);
  return {
    down: namesOf(
      ({ state, stateChangedAtMs, failures }) =>
        state === 'unauthorized' || (state !== 'healthy' && nowMs - stateChangedAtMs >= downMs) || failures >= downFailures,
    ),
    paused: namesOf(({ isPaused }) => isPaused),
    connected: namesOf(({ state }) => state === 'healthy'),
  };
}
