import { waitingOfRun, waitingRunsOf } from './waiting-runs.ts';
import { acceptRun, beginRun } from './accept-run.ts';
import { finishRun, killRuns } from './end-run.ts';
import { conversationRef, printSessionKey } from './features/sessions/conversation.ts';
import { createSubagents } from './features/subagents/subagents.ts';
import type { TeamsDeps } from './server-teams.ts';
import { injectSteer, replaceRun } from './steer-run.ts';
import { takeNews, tellNews } from './tell-news.ts';

/** Sub-agents, with what they act with. */
export function createSubagentPart(deps: TeamsDeps) {
  return createSubagents({
    ...deps,
    log: deps.options.log.module('subagents'),
    config: deps.options.config.security.agentToAgent,
    conversationOf: (agentId, principalId, key) => ({
      ref: conversationRef(agentId, principalId, key),
      sessionKey: printSessionKey(key),
      agentId,
      principalId,
    }),
    operations: {
      accept: acceptRun,
      begin: beginRun,
      finish: finishRun,
      kill: killRuns,
      inject: injectSteer,
      replace: replaceRun,
      take: takeNews,
      tell: tellNews,
      waitingOf: waitingRunsOf,
      waitingOfRun,
    },
  });
}
