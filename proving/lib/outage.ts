import { createStepClock, type FakeAnswer, type FakeRequest, sql, startTestServer } from '@gatehouse/testkit';
import { setTimeout as pause } from 'node:timers/promises';

export interface OutageLoad {
  readonly webhooks: number;
  readonly messages: number;
  readonly oneShots: number;
  readonly recurring: number;
  /** How long the provider fails. */
  readonly minutes: number;
  /** How long work may take to run once the provider answers again. */
  readonly patienceMin: number;
}

export interface OutageReport {
  /** Turns that ran after the outage, by kind. */
  readonly ran: Record<string, number>;
  /** Requests that the provider failed. */
  readonly refused: number;
  /** Virtual minutes from the end of the outage until everything had run. */
  readonly recoveredAfterMin: number;
  readonly wrong: readonly string[];
}

const everyMs = 120_000;
const settleMs = 15_000;
/** Conversations that receive messages. */
const desks = 10;
/** Failures of a provider, minute by minute. */
const faults: readonly FakeAnswer[] = [{ status: 500 }, { status: 503 }, { body: '<html>' }, { status: 429 }, { status: 401 }];

/** Accepts webhooks, messages and jobs while their provider fails, and checks the outcome of each when it answers again. */
export async function liveThroughOutage(load: OutageLoad): Promise<OutageReport> {
  const clock = createStepClock(1_790_000_040_000);
  const answered = new Map<string, number>();
  let refused = 0;
  let downSinceMs: number | undefined;
  const answer = (request: FakeRequest): FakeAnswer | undefined => {
    if (downSinceMs !== undefined) {
      refused += 1;
      return faults[Math.floor((clock.now() - downSinceMs) / 60_000) % faults.length];
    }
    const marker = /<([a-z]+-\d+)>(?!.*<[a-z]+-\d+>)/s.exec(JSON.stringify(request.body))?.[1];
    if (marker !== undefined) answered.set(marker, (answered.get(marker) ?? 0) + 1);
    return undefined;
  };
  await using server = await startTestServer({
    clock,
    provider: { answer },
    config: {
      agents: { default: { model: 'mock/mock-fast', maxConcurrentRuns: 64 } },
      webhooks: { mappings: [{ id: 'hook', messageTemplate: '{{text}}', sessionKey: '{{text}}' }] },
    },
  });
  const { client } = server;
  const count = (kind: string): number => [...answered].filter(([marker]) => marker.startsWith(`${kind}-`)).length;
  const advance = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await pause(15);
  };
  const deskOf = (n: number) => ({ userId: 'ada', channelId: `desk-${n % desks}` });
  // A conversation exists from its first answer on.
  for (let n = 0; n < Math.min(desks, load.messages); n += 1) await client.call('agent.execute', { message: 'Hello', sessionKey: deskOf(n) });
  for (let n = 0; n < load.recurring; n += 1)
    await client.call('cron.add', {
      name: `recurring-${n}`,
      schedule: { kind: 'every', everyMs },
      payload: { kind: 'agent_turn', message: `<recurring-${n}>` },
    });
  const startedMs = clock.now();
  downSinceMs = startedMs;
  const untilMs = startedMs + load.minutes * 60_000;
  const sent = { webhook: 0, message: 0, once: 0 };
  const stepMs = 15_000;
  for (let at = startedMs; at < untilMs; at += stepMs) {
    const due = (total: number): number => Math.ceil((total * (at + stepMs - startedMs)) / (untilMs - startedMs));
    for (; sent.webhook < due(load.webhooks); sent.webhook += 1)
      await client.call('webhooks.test', { mapping: 'hook', payload: { text: `<webhook-${sent.webhook}>` }, run: true });
    for (; sent.message < due(load.messages); sent.message += 1)
      await client.call('session.send', { sessionKey: deskOf(sent.message), text: `<message-${sent.message}>` });
    for (; sent.once < due(load.oneShots); sent.once += 1)
      await client.call('cron.add', {
        name: `once-${sent.once}`,
        schedule: { kind: 'in', seconds: 5 },
        payload: { kind: 'agent_turn', message: `<once-${sent.once}>` },
      });
    await advance(stepMs);
  }
  const recoveredMs = clock.now();
  downSinceMs = undefined;
  const wanted = { webhook: load.webhooks, message: load.messages, once: load.oneShots, recurring: load.recurring };
  const isOver = (): boolean => Object.entries(wanted).every(([kind, total]) => count(kind) >= total);
  while (!isOver() && clock.now() - recoveredMs < load.patienceMin * 60_000) await advance(stepMs);
  const recoveredAfterMin = (clock.now() - recoveredMs) / 60_000;
  // A second run of anything would have happened by now.
  for (let n = 0; n < 4; n += 1) await advance(stepMs);
  // What has its answer may not be stored yet.
  const open = `SELECT 1 FROM work_item WHERE state NOT IN ('done', 'failed', 'aborted', 'unknown')`;
  for (const until = performance.now() + settleMs; performance.now() < until && (await sql(server.homeDir, open)).length > 0;) await pause(20);

  const wrong: string[] = [];
  for (const [kind, total] of Object.entries(wanted)) {
    if (count(kind) < total) wrong.push(`${total - count(kind)} of ${total} ${kind} never ran`);
    if (kind === 'recurring') continue;
    for (const [marker, times] of answered) if (marker.startsWith(`${kind}-`) && times !== 1) wrong.push(`${marker} ran ${times} times`);
  }
  for (let offset = 0, before: string | undefined; offset < load.webhooks; offset += 200) {
    const { deliveries } = await client.call('webhooks.deliveries', { limit: 200, ...(before !== undefined && { before }) });
    for (const { deliveryId, state } of deliveries) if (state !== 'done') wrong.push(`delivery ${deliveryId} is ${state}`);
    before = deliveries.at(-1)?.deliveryId;
  }
  const { jobs } = await client.call('cron.list', { limit: 200 });
  for (const { name, lifecycle } of jobs) {
    if (lifecycle.state === 'paused') wrong.push(`job ${name} is paused`);
    if (!/^(?:once|recurring)-/.test(name)) continue;
    const { runs } = await client.call('cron.runs', { jobName: name, limit: 50 });
    for (const { status } of runs)
      if (status === 'failed' || status === 'unknown' || status === 'aborted') wrong.push(`a run of ${name} is ${status}`);
    const late = runs.filter(({ status, scheduledForMs }) => status === 'completed' && scheduledForMs < recoveredMs);
    if (late.length !== 1) wrong.push(`${name} ran ${late.length} times for the times of the outage`);
    if (name.startsWith('recurring') && late.some(({ trigger }) => trigger !== 'catchup'))
      wrong.push(`the late run of ${name} is not marked as catch-up`);
  }
  const ran = Object.fromEntries(Object.keys(wanted).map((kind) => [kind, count(kind)]));
  return { ran, refused, recoveredAfterMin, wrong };
}
