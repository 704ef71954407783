import type { CronDeliveryTarget, CronJob, CronRun } from '@gatehouse/contract';
import { createStepClock, type StepClock, startTestServer, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import { expect } from 'vitest';
import { conversationRef } from '../../../conversations/sessions/conversation.ts';

type Config = NonNullable<TestServerOptions['config']>;

export interface CronServer extends TestServer {
  readonly clock: StepClock;
  /** Steps the clock and lets due jobs run in between. */
  pass(ms: number, stepMs?: number): Promise<void>;
  /** Returns all runs of the named job, newest first, once `count` of them have ended. */
  runs(jobName: string, count?: number): Promise<CronRun[]>;
  ended(jobName: string): Promise<CronRun[]>;
}

/** Longest wait for jobs; the product holds some back. */
const settleMs = 100;

/** Lets promises and storage threads proceed, until the jobs that the last two steps made due have been claimed. */
async function settle({ client, clock }: Pick<CronServer, 'client' | 'clock'>, stepMs: number): Promise<void> {
  await new Promise<void>((resolve) => setTimeout(resolve, 4));
  const isDue = ({ lifecycle }: CronJob) => {
    const lateMs = lifecycle.state === 'scheduled' ? clock.now() - (lifecycle.nextRunAtMs ?? Infinity) : -1;
    return lateMs >= 0 && lateMs <= 2 * stepMs;
  };
  for (const until = performance.now() + settleMs; performance.now() < until;) {
    const { jobs } = await client.call('cron.list', {});
    if (!jobs.some(isDue)) break;
  }
  await client.call('cron.list', { limit: 1 });
}

/** Opens a server without built-in jobs, its clock at a full hour. */
export async function openCron(
  options: Omit<TestServerOptions, 'clock'> & { readonly clock?: StepClock; readonly cron?: NonNullable<Config['scheduler']>['cron'] } = {},
): Promise<CronServer> {
  const { cron, clock = createStepClock(Date.UTC(2026, 8, 21, 12)), ...rest } = options;
  const server = await startTestServer({
    ...rest,
    clock,
    config: { ...rest.config, scheduler: { cron: { builtIn: { memoryLifecycle: { enabled: false } }, ...cron } } },
  });
  const ended = async (jobName: string) =>
    (await server.client.call('cron.runs', { jobName, limit: 10_000 })).runs.filter((run) => run.terminalAtMs !== undefined);
  return {
    ...server,
    clock,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    async pass(ms, stepMs = ms) {
      for (let left = ms; left > 0; left -= stepMs) {
        clock.advance(Math.min(left, stepMs));
        await settle({ ...server, clock }, stepMs);
      }
    },
    ended,
    async runs(jobName, count = 1) {
      await expect
        .poll(async () => {
          clock.advance(1);
          return (await ended(jobName)).length;
        })
        .toBeGreaterThanOrEqual(count);
      return ended(jobName);
    },
  };
}

/** Returns the delivery target for a principal's conversation under `desk:gateway`. */
export function targetOf(principalId: string, destination: 'inbox' | 'conversation' = 'inbox'): CronDeliveryTarget {
  const ref = conversationRef('default', principalId, { userId: 'desk', channelId: 'gateway' });
  return {
    conversation: {
      conversationScope: { tenantId: 'default', agentId: 'default', partition: { kind: 'principal-key', principalId, sessionKey: 'desk:gateway' } },
      conversationRef: ref,
    },
    destinationEndpoint: {
      channelType: 'gateway',
      channelInstanceId: 'gateway',
      conversationId: destination === 'inbox' ? 'inbox' : ref,
      conversationKind: 'direct',
    },
  };
}
