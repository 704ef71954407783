import { waitingOfRun, waitingRunsOf } from '../transactions/waiting-runs.ts';
import { acceptRun, beginRun } from '../transactions/accept-run.ts';
import { finishRun, killRuns } from '../transactions/end-run.ts';
import { conversationRef, printSessionKey } from '../features/conversations/sessions/conversation.ts';
import { createSubagents } from '../features/delegation/subagents/subagents.ts';
import type { DelegationDeps } from './delegation.ts';
import { injectSteer, replaceRun } from '../transactions/steer-run.ts';
import { deliverAnnouncement, takeAnnouncement } from '../transactions/deliver-announcements.ts';

/** Wires sub-agents to what they use. */
export function wireSubagents(deps: DelegationDeps) {
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
      takeAnnouncement,
      deliverAnnouncement,
      waitingOf: waitingRunsOf,
      waitingOfRun,
    },
  });
}
