import * as z from 'zod';
import { once } from '../once.ts';
import { method } from '../method.ts';
import { AgentId } from '../shared/session.ts';
import { RootRunId, SubAgentCompletion, SubAgentFacts, SubAgentRecord, SubAgentRunId } from '../shared/sub-agent.ts';

const runId = 'sr_00000000-0000-7000-8000-000000000001';
const otherRunId = 'sr_00000000-0000-7000-8000-000000000002';
const rootRunId = 'root-rpc-00000000-0000-7000-8000-000000000001';

/** A run id in a request; a malformed id gets the same answer as an unknown one. */
const AnyRunId = once(() => z.string().min(1).max(256));

const gate = once(() => ({
  paused: z.boolean(),
  acceptingSpawns: z.boolean().describe('False once the daemon stops; `subagent.resume` does not change that.'),
  resetsOnRestart: z.literal(true),
}));
const gateExample = { paused: true, acceptingSpawns: true, resetsOnRestart: true as const };

export const subagent = {
  'subagent.list': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists sub-agent runs of the last minutes, newest first.',
    description:
      'An agent sees runs that its conversation requested, a plain `rpc` token those of its principal, both without content. An admin sees all with content, and ' +
      'may name `agentId` and `rootRunId`. Queued and running runs are listed regardless of their age.',
    params: () =>
      z.strictObject({
        recentMinutes: z.int().min(1).max(10_080).default(30),
        agentId: AgentId.optional().describe('Admin only.'),
        rootRunId: RootRunId().optional().describe('Admin only.'),
      }),
    result: () =>
      z.strictObject({ runs: z.array(z.union([SubAgentRecord(), SubAgentFacts()])), total: z.int().min(0).describe('Length of `runs`.') }),
    examples: [
      {
        params: {},
        result: { runs: [{ runId, status: 'running', agentId: 'default', startedAt: 1790000000000, depth: 1, rootRunId }], total: 1 },
      },
    ],
    since: '0.1.0',
  }),
  'subagent.wait': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Waits until runs have ended, up to a timeout.',
    description:
      'Unknown and foreign ids are `denied_unknown` at once. Without ids it waits for up to 32 running or queued runs that the caller sees. ' +
      '`timeoutMs` is `security.agentToAgent.waitTimeoutMs` when absent; 0 returns the current state.',
    params: () =>
      z.strictObject({
        runIds: z.array(AnyRunId()).min(1).max(32).optional(),
        timeoutMs: z.int().min(0).max(300_000).optional().describe('Milliseconds.'),
      }),
    result: () =>
      z.strictObject({
        results: z.array(
          z.strictObject({
            runId: z.string(),
            status: z.enum(['completed', 'denied_unknown', 'timeout', 'cancelled']),
            completion: SubAgentCompletion()
              .optional()
              .describe('Set for ended runs, successful or not; `summary` and `resultRef` only for the requester of the run and for admins.'),
          }),
        ),
      }),
    examples: [{ params: { runIds: [runId], timeoutMs: 0 }, result: { results: [{ runId, status: 'timeout' }] } }],
    since: '0.1.0',
  }),
  'subagent.kill': method({
    scope: 'rpc',
    risk: 'destructive',
    summary: 'Stops a running or queued sub-agent and everything that it delegated.',
    params: () => z.strictObject({ target: AnyRunId().describe('Id of the run.') }),
    result: () => z.strictObject({ killed: z.literal(true), runId: SubAgentRunId() }),
    errors: ['not_found', 'precondition_failed'],
    examples: [{ params: { target: runId }, result: { killed: true, runId } }],
    since: '0.1.0',
  }),
  'subagent.steer': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Steers a sub-agent in another direction; once per 2 seconds and run.',
    description:
      'With `security.agentToAgent.steerInject` the message is added to the run at its next step; without it the run is killed and a new one begins ' +
      'with the message as its task. The message counts as text from outside for its reader.',
    params: () => z.strictObject({ target: AnyRunId().describe('Id of the run.'), message: z.string().min(1).max(100_000) }),
    result: () =>
      z.discriminatedUnion('status', [
        z.strictObject({ status: z.literal('steered'), oldRunId: SubAgentRunId(), newRunId: SubAgentRunId() }),
        z.strictObject({ status: z.literal('steered_inject'), runId: SubAgentRunId() }),
      ]),
    errors: ['not_found', 'precondition_failed', 'rate_limited'],
    examples: [
      { params: { target: runId, message: 'Look at the tests first.' }, result: { status: 'steered', oldRunId: runId, newRunId: otherRunId } },
    ],
    since: '0.1.0',
  }),
  'subagent.pause': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Refuses new sub-agents until `subagent.resume` or a restart; running and queued ones continue.',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ ...gate(), changed: z.boolean() }),
    examples: [{ params: {}, result: { ...gateExample, changed: true } }],
    since: '0.1.0',
  }),
  'subagent.resume': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Accepts new sub-agents again.',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ ...gate(), changed: z.boolean() }),
    examples: [{ params: {}, result: { ...gateExample, paused: false, changed: true } }],
    since: '0.1.0',
  }),
  'subagent.status': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns whether new sub-agents are accepted.',
    params: () => z.strictObject({}),
    result: () => z.strictObject(gate()),
    examples: [{ params: {}, result: gateExample }],
    since: '0.1.0',
  }),
};
