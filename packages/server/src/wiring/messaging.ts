import { createOrchestrate } from '../features/delegation/orchestrate/orchestrate.ts';
import { createSessionSend } from '../features/delegation/session-send/session-send.ts';
import { createFindTarget } from '../features/delegation/session-send/targets.ts';
import { limitsFor } from '../features/environment/shell/config.ts';
import { maskedInside, workspaceInside, workspaceMounts } from '../features/environment/shell/workspace-mounts.ts';
import { findChild } from '../features/delegation/subagents/status/child-store.ts';
import { boundsOf, readOptions } from '../features/delegation/subagents/requests/options.ts';
import { isEnded } from '../features/delegation/subagents/run/row.ts';
import { systemClock } from '../kernel/clock.ts';
import { beginScript, endScript } from '../transactions/orchestrate-work.ts';
import { acceptSend, failSendWork } from '../transactions/send-work.ts';
import type { DelegationDeps } from './delegation.ts';

/** Creates messages from conversation to conversation, and scripts that call tools. */
export function createMessaging({ options, ...deps }: DelegationDeps) {
  const { config, home } = options;
  const { db } = deps;
  const sessionSend = createSessionSend({
    ...deps,
    policy: config.security.agentToAgent,
    isTainted: deps.isTainted,
    acceptSend,
    failSendWork,
    findTarget: createFindTarget({
      sessions: deps.sessions,
      async childOf(about) {
        const run = await db.read(findChild, about);
        if (run === undefined) return undefined;
        const { conversationRef: ref, sessionKey, agentId, principalId } = run;
        return { ref, sessionKey, agentId, principalId, isStarting: !isEnded(run), bounds: boundsOf(readOptions(run.optionsJson)) };
      },
    }),
    isPending: deps.sessions.isPending,
    ownOf: deps.sessions.own,
  });
  const orchestrate = createOrchestrate({
    ...deps,
    isEnabled: config.exec.enabled,
    rates: config.autonomy.guards.rate,
    key: options.installKey.derive('capability'),
    socketFile: home.capabilitySocketFile,
    processClock: systemClock,
    workspace: { inside: workspaceInside, masked: maskedInside, mounts: workspaceMounts },
    limitsOf: (agent) => limitsFor(config.exec, agent.config.exec),
    beginScript,
    endScript,
  });
  return {
    methods: sessionSend.methods,
    sendTools: sessionSend.tools,
    scriptTools: orchestrate.tools,
    scriptCalls: orchestrate.calls,
  };
}
