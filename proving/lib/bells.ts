import * as z from 'zod';
import { type Daemon, type DaemonOptions, startDaemon } from './daemon.ts';
import { proofConfig } from './provider.ts';
import { rpcCall, type RpcTarget } from './rpc.ts';

/** Starts a daemon whose clock is ahead of the real one, and fast: it runs from its sources, with `broken` built in. */
export interface ClockedOptions extends Pick<DaemonOptions, 'home' | 'port'> {
  readonly aheadMs?: number;
  readonly speed?: number;
  readonly broken?: string | undefined;
}

export function startClocked({ home, port, aheadMs = 0, speed = 1, broken }: ClockedOptions): Promise<Daemon> {
  return startDaemon({
    home,
    port,
    broken: ['virtual-clock', ...(broken === undefined ? [] : [broken])],
    env: { CLOCK_AHEAD_MS: String(aheadMs), CLOCK_SPEED: String(speed) },
  });
}

/** Configuration of daemons that run many jobs, none of them built in. */
export const bellConfig = (providerUrl: string, maxJobs: number) => ({
  ...proofConfig(providerUrl),
  scheduler: { cron: { maxJobs, builtIn: { memoryLifecycle: { enabled: false } } } },
});

const Own = z.looseObject({ conversationRef: z.string(), sessionKey: z.string() });

/** Creates jobs that deliver a text to the inbox and call no model. */
export async function bellsOf(daemon: RpcTarget, principalId = 'token:env'): Promise<(name: string, schedule: object) => object> {
  const { conversationRef, sessionKey } = Own.parse(await rpcCall(daemon, 'session.status', {}));
  const partition = { kind: 'principal-key', principalId, sessionKey };
  return (name, schedule) => ({
    name,
    schedule,
    payload: { kind: 'delivery', text: name },
    deliveryTarget: {
      conversation: { conversationScope: { tenantId: 'default', agentId: 'default', partition }, conversationRef },
      destinationEndpoint: { channelType: 'gateway', channelInstanceId: 'gateway', conversationId: 'inbox', conversationKind: 'direct' },
    },
  });
}

const Runs = z.looseObject({
  runs: z.array(
    z.looseObject({
      jobId: z.string(),
      executionId: z.string(),
      scheduledForMs: z.int(),
      startedAtMs: z.int(),
      terminalAtMs: z.int().optional(),
      trigger: z.string(),
      status: z.string(),
    }),
  ),
});
export type BellRun = z.output<typeof Runs>['runs'][number];

export const runsOf = async (daemon: Daemon, jobName: string): Promise<BellRun[]> =>
  Runs.parse(await rpcCall(daemon, 'cron.runs', { jobName, limit: 10_000 })).runs;
