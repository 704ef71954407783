import type { Params, TraceRecord } from '@gatehouse/contract';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import { agentsOf } from '../callers.ts';
import type { DiagnosisDeps } from '../diagnosis.ts';
import { explainSession, type RunningSession } from './store.ts';

/** Handler of `obs.explain` (json-rpc.md §4). */
export function createExplain({ db, traces }: DiagnosisDeps): HandlersOf<'obs.explain'> {
  return {
    'obs.explain': async ({ sessionKey, traceId, rootRunId, depth, includeSynthetic }, call) => {
      const agents = agentsOf(call);
      await traces.flush();
      return db.search(explainSession, {
        sessionKey: sessionKey ?? null,
        traceId: traceId ?? null,
        rootRunId: rootRunId ?? null,
        depth,
        includeSynthetic,
        agents,
        running: findRunning(traces.running(), { sessionKey, traceId, rootRunId }),
      });
    },
  };
}

/** Returns the session of a running turn that a reference names: a first turn has nothing stored yet. */
function findRunning(running: readonly TraceRecord[], { sessionKey, traceId, rootRunId }: Partial<Params<'obs.explain'>>): RunningSession | null {
  const found = running.find(
    (one) =>
      [one.sessionKey, one.conversationRef].includes(sessionKey ?? '') ||
      one.traceId === traceId ||
      (rootRunId !== undefined && one.rootRunId === rootRunId),
  );
  if (found?.conversationRef === undefined || found.agentId === undefined) return null;
  return { conversationRef: found.conversationRef, sessionKey: found.sessionKey ?? null, agentId: found.agentId };
}
