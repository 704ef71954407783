import { AppError } from '../../../../kernel/app-error.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import { agentsOf } from '../callers.ts';
import type { DiagnosisDeps } from '../diagnosis.ts';
import { healthReport } from './report.ts';
import { readHealth } from './store.ts';

/** Handler of `obs.system.health` (json-rpc.md §4). */
export function createSystemHealth({ db, clock, traces }: DiagnosisDeps): HandlersOf<'obs.system.health'> {
  return {
    'obs.system.health': async ({ sinceHours }, call) => {
      if (agentsOf(call) !== null) throw new AppError('denied', 'This token is limited to some agents; the health of the system covers all of them');
      await traces.flush();
      return healthReport(await db.search(readHealth, { untilMs: clock.now() + 1, windowHours: sinceHours }));
    },
  };
}
