import type { HandlersOf } from '../../../../kernel/handlers.ts';
import { agentsOf } from '../callers.ts';
import type { DiagnosisDeps } from '../diagnosis.ts';
import { explainSession } from './store.ts';

/** Handler of `obs.explain` (json-rpc.md §4). */
export function createExplain({ db, flush }: DiagnosisDeps): HandlersOf<'obs.explain'> {
  return {
    'obs.explain': async ({ sessionKey, traceId, rootRunId, depth, includeSynthetic }, call) => {
      const agents = agentsOf(call);
      await flush();
      return db.search(explainSession, {
        sessionKey: sessionKey ?? null,
        traceId: traceId ?? null,
        rootRunId: rootRunId ?? null,
        depth,
        includeSynthetic,
        agents,
      });
    },
  };
}
