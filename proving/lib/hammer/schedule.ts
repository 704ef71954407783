import { nextBackfills, requestBackfill } from '../../../packages/server/src/features/unattended/cron/occurrences/backfill-store.ts';
import { planBackfill, planClaim } from '../../../packages/server/src/features/unattended/cron/occurrences/claim.ts';
import { finishOf } from '../../../packages/server/src/features/unattended/cron/occurrences/finish.ts';
import { keepGate, type OccurrenceRow } from '../../../packages/server/src/features/unattended/cron/occurrences/occurrence-store.ts';
import { CronWork } from '../../../packages/server/src/features/unattended/cron/occurrences/work.ts';
import { parseJob } from '../../../packages/server/src/features/unattended/cron/jobs/job.ts';
import { advanceReset, compareReset, prepareReset, readStatus } from '../../../packages/server/src/features/unattended/cron/jobs/reset-store.ts';
import { realignJobs } from '../../../packages/server/src/features/unattended/cron/schedule/realign-store.ts';
import {
  addJob,
  changeJob,
  type JobRow,
  reconcileBuiltIns,
  removeAgentJobs,
  removeJob,
} from '../../../packages/server/src/features/unattended/cron/store.ts';
import type { WorkClaim } from '../../../packages/server/src/features/unattended/durable/api.ts';
import { claimWork } from '../../../packages/server/src/features/unattended/durable/store.ts';
import { forgetHeartbeat, type HeartbeatStateRow, keepState } from '../../../packages/server/src/features/unattended/heartbeat/store.ts';
import { acceptDelivery } from '../../../packages/server/src/transactions/accept-delivery.ts';
import { claimBackfill, claimManually, claimOccurrence } from '../../../packages/server/src/transactions/claim-occurrence.ts';
import { finishOccurrence } from '../../../packages/server/src/transactions/finish-occurrence.ts';
import { beginBeat, endBeat } from '../../../packages/server/src/transactions/heartbeat-work.ts';
import { atMs, count, differs, driver, type Driver, type Names, namesOf, principalId, quote, valueOf, liveBoot } from './driver.ts';
import { deliveryOf, jobOf, messageOf, workOf } from './rows.ts';

interface Round {
  readonly round: string;
}

const jobs = 8;
const minute = 60_000;

const adding = (names: Names, job: JobRow, index: number | string, maxJobs = 1_000) => ({
  job,
  seed: 'seed',
  ageNowMs: atMs,
  maxJobs,
  audit: names.audit(`job-${index}`),
});

/** The plan that a daemon makes of a job as it has read it. */
function planOf(row: JobRow, bootId: string) {
  const job = parseJob(row);
  if (job === undefined) throw new Error('the job cannot be parsed');
  return planClaim(job, { bootId, nowMs: atMs, bootedAtMs: 0, leastMs: 1_000, staggerWindowMs: 0 });
}

interface Fired {
  readonly claimed: readonly string[];
  readonly executed: readonly string[];
}

/** The same times of the same jobs, claimed and executed by both. */
const occurrences: Driver<Round, Fired> = {
  name: 'occurrences',
  async prepare(db, names) {
    for (let index = 0; index < jobs; index += 1) await db.write(addJob, adding(names, jobOf(names, index), index));
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const claimed: string[] = [];
    const executed: string[] = [];
    await writer.race(
      Array.from({ length: jobs }, (_, index) => async () => {
        const row = jobOf(names, index);
        if (valueOf(await writer.write(claimOccurrence, planOf(row, `boot-${side}`))) === true) claimed.push(row.id);
      }),
    );
    for (let idle = 0; idle < 4;) {
      const kinds = [{ kind: 'cron', free: 3 }];
      const items = valueOf(await writer.write(claimWork, { owner: `owner-${side}`, kinds, held: [], leaseUntilMs: atMs, atMs }));
      idle = items === undefined || items.length === 0 ? idle + 1 : 0;
      await writer.race(
        (items ?? []).map((item) => async () => {
          const work = CronWork().parse(item.payload);
          const claim: WorkClaim = { id: item.id, owner: item.owner, fence: item.fence };
          const gateJson = JSON.stringify({ outcome: 'woke', logs: `of ${side}` });
          await writer.write(keepGate, { executionId: work.executionId, gateJson });
          const result = { status: 'completed' as const, text: 'done', ours: true, dependency: 'dependency_error' as const };
          const plan = finishOf(work, result, {
            defaultMaxErrors: 5,
            nowMs: atMs,
            fence: (text) => text,
            forOwner: true,
            address: (message) => message,
          });
          const event = { agentId: work.agentId, text: 'done', source: 'cron', opKey: names.id('event', `${work.jobId}`), atMs };
          if (valueOf(await writer.write(finishOccurrence, { ...plan, claim, systemEvent: event })) !== undefined) executed.push(work.jobId);
        }),
      );
      if (idle > 0) await new Promise((resolve) => setTimeout(resolve, 4));
    }
    return { claimed, executed };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const wrong: string[] = [];
    for (let index = 0; index < jobs; index += 1) {
      const id = names.id('cj', index);
      const is = (other: string) => other === id;
      const rows = await look(`select status from cron_occurrence where job_id = ${quote(id)}`);
      const [job] = await look(`select active_execution_id, errors from cron_job where id = ${quote(id)}`);
      wrong.push(
        ...differs(`claims of the time of ${id}`, [...first.claimed, ...second.claimed].filter(is).length, 1),
        ...differs(`executions of the time of ${id}`, [...first.executed, ...second.executed].filter(is).length, 1),
        ...differs(`rows of the time of ${id}`, rows.length, 1),
        ...differs(`errors that ${id} counts`, job?.['errors'], 1),
        ...(rows[0]?.['status'] === 'completed' ? [] : [`the time of ${id} is ${String(rows[0]?.['status'])}`]),
        ...(job?.['active_execution_id'] === null ? [] : [`the job ${id} is stuck in ${String(job?.['active_execution_id'])}`]),
      );
    }
    const [events] = await look(`select sum(repeats) as count from heartbeat_event where agent_id = ${quote(names.id('agent', 0))}`);
    return [...wrong, ...differs('events, with repeats', events?.['count'], jobs)];
  },
};

interface Changes {
  readonly added: number;
  readonly limited: number;
  readonly changed: number;
  readonly moved: number;
  readonly removed: number;
  readonly byHand: number;
}

/** Jobs that both add, change, move, start by hand and remove. */
const schedules: Driver<Round, Changes> = {
  name: 'schedules',
  async prepare(db, names) {
    for (let index = 0; index < 4; index += 1) await db.write(addJob, adding(names, jobOf(names, index), index));
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const agent = { agentId: names.id('agent', 0) };
    const refusals = ['conflict', 'precondition_failed', 'not_found'];
    const added = await writer.all(
      [0, 1, 2, 3].map((index) => () => {
        const job = { ...jobOf(names, `same-${index}`), id: names.id('cj', `same-${index}-${side}`) };
        return writer.write(addJob, adding(names, job, `same-${index}-${side}`), refusals);
      }),
    );
    const limited = await writer.all(
      [0, 1, 2, 3].map((index) => () => {
        const job = jobOf(names, `limited-${index}-${side}`, { agentId: names.id('agent', 'limited') });
        return writer.write(addJob, adding(names, job, `limited-${index}-${side}`, 5), refusals);
      }),
    );
    const row = jobOf(names, 0);
    const change = {
      id: row.id,
      revision: 1,
      name: `renamed ${side}`,
      scheduleJson: row.scheduleJson,
      payloadJson: row.payloadJson,
      policiesJson: '{}',
      state: 'scheduled' as const,
      pauseReason: null,
      nextRunAtMs: atMs,
      dueAtMs: atMs,
      errors: 0,
      authorJson: null,
    };
    const changed = await writer.write(changeJob, { change, row: { ...agent, principalId }, audit: names.audit(`change-${side}`) }, refusals);
    const moved = await writer.write(realignJobs, {
      changes: [{ id: names.id('cj', 1), revision: 1, nextRunAtMs: atMs + minute, dueAtMs: atMs + minute, highWaterMs: atMs }],
    });
    const started = await writer.all(
      [0, 1, 2, 3].map((index) => () => {
        const job = jobOf(names, 3);
        const plan = planOf(job, `boot-${side}`);
        const executionId = names.id('ce', `hand-${index}-${side}`);
        const occurrence: OccurrenceRow = { ...plan.occurrence, executionId, triggerClass: executionId, trigger: 'manual' };
        return writer.write(
          claimManually,
          { occurrence, work: { ...workOf(names, 'hand', `${index}-${side}`), key: executionId }, maxOpen: 4 },
          refusals,
        );
      }),
    );
    const removed = await writer.write(
      removeJob,
      { id: names.id('cj', 2), ...agent, name: names.id('job', 2), audit: names.audit(`remove-${side}`) },
      refusals,
    );
    const builtIn = jobOf(names, `built-in-${side}`, {
      agentId: names.id('agent', 'built-in'),
      name: 'built-in',
      source: 'built_in',
      principalId: 'system',
    });
    await writer.write(reconcileBuiltIns, { wanted: [builtIn], agentIds: [builtIn.agentId], seed: 'seed', atMs });
    await writer.write(removeAgentJobs, { agentId: names.id('agent', 'gone') });
    const did = (outcomes: readonly object[]) => outcomes.filter((outcome) => 'value' in outcome).length;
    return {
      added: did(added),
      limited: did(limited),
      changed: count([changed], Boolean),
      moved: valueOf(moved) ?? 0,
      removed: did([removed]),
      byHand: did(started),
    };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const sum = (of: (changes: Changes) => number) => of(first) + of(second);
    const [same] = await look(`select count(*) as count from cron_job where id like 'cj_${round}-same-%'`);
    const [limited] = await look(`select count(*) as count from cron_job where agent_id = ${quote(names.id('agent', 'limited'))}`);
    const [builtIn] = await look(`select count(*) as count from cron_job where agent_id = ${quote(names.id('agent', 'built-in'))}`);
    const [open] = await look(`select count(*) as count from cron_occurrence where job_id = ${quote(names.id('cj', 3))} and terminal_at_ms is null`);
    return [
      ...differs(
        'jobs of the same names that were added',
        sum(({ added }) => added),
        4,
      ),
      ...differs('jobs of the same names', same?.['count'], 4),
      ...differs(
        'jobs that were added within the limit',
        sum((each) => each.limited),
        5,
      ),
      ...differs('jobs within the limit', limited?.['count'], 5),
      ...differs(
        'changes of one revision',
        sum(({ changed }) => changed),
        1,
      ),
      ...differs(
        'moves of one revision',
        sum(({ moved }) => moved),
        1,
      ),
      ...differs(
        'removals of one job',
        sum(({ removed }) => removed),
        1,
      ),
      ...differs(
        'starts by hand within the limit',
        sum(({ byHand }) => byHand),
        4,
      ),
      ...differs('running starts by hand', open?.['count'], 4),
      ...differs('built-in jobs of one name', builtIn?.['count'], 1),
    ];
  },
};

/** A reset of a schedule against jobs that are added and start: nothing that was acknowledged disappears without a copy. */
const resets: Driver<Round, { readonly prepared: number; readonly added: readonly string[] }> = {
  name: 'resets of schedules',
  async prepare(db, names) {
    for (let index = 0; index < 3; index += 1) await db.write(addJob, adding(names, jobOf(names, index), index));
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const agentId = names.id('agent', 0);
    const added: string[] = [];
    let prepared = 0;
    const refusals = ['conflict', 'precondition_failed'];
    await writer.race([
      ...[0, 1, 2].map((index) => async () => {
        const job = jobOf(names, `more-${index}-${side}`);
        if ('value' in (await writer.write(addJob, adding(names, job, `more-${index}-${side}`), refusals))) added.push(job.id);
      }),
      async () => {
        const status = await writer.read(readStatus, { agentId, principalId: null, bootId: 'boot' });
        const expected = { store: status.store.digest, ledger: status.ledger.digest };
        const asked = { agentId, target: 'all' as const, expected };
        await writer.write(compareReset, asked, refusals);
        const reset = { ...asked, operationId: names.id('op', side), bootId: liveBoot, atMs, audit: names.audit(`reset-${side}`) };
        if ('value' in (await writer.write(prepareReset, reset, refusals))) prepared += 1;
      },
    ]);
    for (let phase = 0; phase < 5; phase += 1) await writer.write(advanceReset, { agentId, atMs });
    return { prepared, added };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const kept = await look(`select id from cron_job where agent_id = ${quote(names.id('agent', 0))}`);
    const archives = await look(`select content from cron_archive where agent_id = ${quote(names.id('agent', 0))} and part = 'store'`);
    const [intents] = await look(`select count(*) as count from cron_intent where agent_id = ${quote(names.id('agent', 0))}`);
    const has = (id: string) => kept.some((row) => row['id'] === id) || archives.some(({ content }) => String(content).includes(`"${id}"`));
    return [
      ...[0, 1, 2]
        .map((index) => names.id('cj', index))
        .concat(first.added, second.added)
        .flatMap((id) => (has(id) ? [] : [`the job ${id} is neither stored nor archived`])),
      ...differs('resets that are unfinished', intents?.['count'], 0),
    ];
  },
};

/** The same times of the same jobs, queued and claimed by both, next to the claims of the scheduler. */
const backfills: Driver<Round, { readonly queued: number; readonly claimed: readonly string[]; readonly scheduled: readonly string[] }> = {
  name: 'backfills',
  async prepare(db, names) {
    for (let index = 0; index < 4; index += 1) await db.write(addJob, adding(names, jobOf(names, index), index));
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const claimed: string[] = [];
    const scheduled: string[] = [];
    const queued = await writer.all(
      [0, 1, 2, 3].map((index) => () => {
        const { id: jobId, agentId } = jobOf(names, index);
        return writer.write(requestBackfill, {
          jobId,
          agentId,
          timesMs: [atMs],
          maxQueued: 100,
          atMs,
          audit: names.audit(`backfill-${index}-${side}`),
        });
      }),
    );
    await writer.race(
      [0, 1, 2, 3].flatMap((index) => {
        const row = jobOf(names, index);
        const job = parseJob(row);
        if (job === undefined) throw new Error('the job cannot be parsed');
        return [
          async () => {
            const plan = planBackfill(job, atMs, { bootId: `boot-${side}`, nowMs: atMs });
            if (valueOf(await writer.write(claimBackfill, plan)) === true) claimed.push(row.id);
          },
          async () => {
            if (valueOf(await writer.write(claimOccurrence, planOf(row, `boot-${side}`))) === true) scheduled.push(row.id);
          },
        ];
      }),
    );
    await writer.read(nextBackfills, { except: [], atOnce: 4 });
    return { queued: queued.reduce((sum, outcome) => sum + (valueOf(outcome)?.length ?? 0), 0), claimed, scheduled };
  },
  async check(look, { round }, sides) {
    const names = namesOf(round);
    const wrong: string[] = [];
    for (let index = 0; index < 4; index += 1) {
      const id = names.id('cj', index);
      const claims = sides.flatMap(({ claimed, scheduled }) => [...claimed, ...scheduled]).filter((other) => other === id);
      const [rows] = await look(`select count(*) as count from cron_occurrence where job_id = ${quote(id)} and status <> 'skipped'`);
      wrong.push(...differs(`claims of the time of ${id}`, claims.length, 1), ...differs(`runs of the time of ${id}`, rows?.['count'], 1));
    }
    const queued = sides.reduce((sum, each) => sum + each.queued, 0);
    return queued > 4 ? [...wrong, `the four times were queued ${queued} times`] : wrong;
  },
};

const stateOf = (agentId: string): HeartbeatStateRow => ({
  agentId,
  lastSlotMs: atMs,
  lastRunAtMs: atMs,
  consecutiveErrors: 0,
  backoffUntilMs: null,
  lastErrorKind: null,
  lastAlertAtMs: null,
  stoppedBy: null,
  stoppedUnder: null,
});

/** Events that beats take while more come, and ends of the same beats. */
const beats: Driver<Round, { readonly closed: number; readonly delivered: number; readonly planned: number }> = {
  name: 'beats',
  async prepare(db, names) {
    const agentId = names.id('agent', 0);
    for (let index = 0; index < 4; index += 1) {
      const event = { agentId, text: `event ${index}`, source: 'webhook', opKey: names.id('event', `first-${index}`), atMs };
      await db.write(acceptDelivery, { ...deliveryOf(names, `first-${index}`), event });
    }
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const agentId = names.id('agent', 0);
    const state = stateOf(agentId);
    const beatOf = (index: string) => {
      const work = { ...workOf(names, 'heartbeat', index), key: names.id('wi', `heartbeat-${index}`) };
      const beat = {
        workId: work.id,
        agentId,
        correlationId: '',
        lane: 'normal' as const,
        reason: 'interval' as const,
        eventCount: 1,
        bootId: liveBoot,
        startedAtMs: atMs,
      };
      return { beat, state, isPlanned: false, lastEventId: 1_000_000_000, work };
    };
    const begun = beatOf(`own-${side}`);
    await writer.race([
      ...[0, 1, 2].map((index) => () => {
        const event = { agentId, text: 'again', source: 'webhook', opKey: names.id('event', `${index}-${side}`), atMs };
        return writer.write(acceptDelivery, { ...deliveryOf(names, `${index}-${side}`), event });
      }),
      () => writer.write(beginBeat, begun),
      () => writer.write(keepState, state),
      () => writer.write(forgetHeartbeat, { agentId: names.id('agent', 'gone') }),
    ]);
    const alone = names.id('agent', 'planned');
    const { beat, work, ...rest } = beatOf(`planned-${side}`);
    const time = { ...rest, beat: { ...beat, agentId: alone, eventCount: 0 }, work, state: stateOf(alone), isPlanned: true };
    const planned = count([await writer.write(beginBeat, time)], Boolean);
    const ending = { agentId, handled: false, state, once: true, atMs, ageNowMs: atMs };
    const ends = await writer.all(
      [0, 1].map(
        (other) => () =>
          writer.write(endBeat, {
            ...ending,
            workId: names.id('wi', `heartbeat-own-${other}`),
            messages: [{ ...messageOf(names, `beat-${other}`, side), digest: 'same' }],
          }),
      ),
    );
    return {
      planned,
      closed: count(ends, ({ closed }) => closed),
      delivered: ends.reduce((sum, end) => sum + (valueOf(end)?.delivered.length ?? 0), 0),
    };
  },
  async check(look, { round }, [first, second]) {
    const names = namesOf(round);
    const [beatsLeft] = await look(`select count(*) as count from heartbeat_beat where agent_id = ${quote(names.id('agent', 0))}`);
    const [events] = await look(`select sum(repeats) as count from heartbeat_event where agent_id = ${quote(names.id('agent', 0))}`);
    const closed = first.closed + second.closed;
    return [
      ...differs('beats of one time', first.planned + second.planned, 1),
      ...differs('beats that are open or closed once', Number(beatsLeft?.['count']) + closed, 2),
      ...differs('events, with repeats', events?.['count'], 10),
      ...(first.delivered + second.delivered > 1 ? ['the same text was delivered twice'] : []),
    ];
  },
};

export const scheduleDrivers = [driver(occurrences), driver(schedules), driver(resets), driver(backfills), driver(beats)];
