import { commitTurn } from '../../../packages/server/src/transactions/commit-turn.ts';
import { pruneConversation } from '../../../packages/server/src/transactions/prune-conversation.ts';
import { pruneCalls } from '../../../packages/server/src/features/access/budgets/usage/past-store.ts';
import { pruneArchives, pruneReasoning } from '../../../packages/server/src/features/conversations/sessions/changes/retention-store.ts';
import { keepFeedback } from '../../../packages/server/src/features/conversations/sessions/reading/past-turns/feedback-store.ts';
import { deletePrompt, savePrompt } from '../../../packages/server/src/features/conversations/prompts/store.ts';
import { pruneTurns } from '../../../packages/server/src/features/conversations/turns/store.ts';
import { addResult, addRun, endEvaluation, type EvalRow, interruptRuns } from '../../../packages/server/src/features/operations/evaluation/store.ts';
import { pruneAudit } from '../../../packages/server/src/features/operations/observability/audit-store.ts';
import { addActivity, clearActivity } from '../../../packages/server/src/features/operations/observability/reports/activity/activity-store.ts';
import { dropRecords } from '../../../packages/server/src/features/operations/observability/reports/deliveries/delivery-store.ts';
import { recordReset } from '../../../packages/server/src/features/operations/observability/reports/store.ts';
import { pruneTraces } from '../../../packages/server/src/features/operations/traces/prune-store.ts';
import type { EndedRecord } from '../../../packages/server/src/features/operations/traces/api.ts';
import { appendBatch, expandBatch, stripTexts } from '../../../packages/server/src/features/operations/traces/store.ts';
import { writeAudit } from '../../../packages/server/src/kernel/audit.ts';
import { agentId, atMs, differs, driver, type Driver, liveBoot, type Names, namesOf, principalId, quote, valueOf } from './driver.ts';
import { messagesOf, modelCall, turnOf } from './rows.ts';

interface Round {
  readonly round: string;
}

/** A time that the retention of this harness is over; no other driver has rows of it. */
const longAgoMs = 1_000;
const beforeMs = 2_000;
const limit = 3;

const traceOf = (names: Names, index: number): EndedRecord => ({
  id: names.id('tr', index),
  kind: 'turn',
  traceId: names.round,
  conversationRef: names.ref(0),
  agentId,
  principalId,
  origin: 'rpc',
  startedAtMs: index < 3 ? longAgoMs : atMs,
  endedAtMs: atMs,
  outcome: 'failed',
  endReason: 'error',
  model: null,
  modelCalls: 0,
  toolCalls: 0,
  toolErrors: 0,
  tokens: { in: 0, out: 0, cached: 0, cacheWritten: 0 },
  costNano: 0,
  synthetic: false,
  error: { kind: 'auth', text: 'a sentence' },
  refs: {},
  facts: {},
  steps: [],
  droppedSteps: 0,
});

/** Records that both processes store and one deletes or strips, and sums of what both count. */
const traces: Driver<Round, { readonly pruned: number }> = {
  name: 'traces',
  async prepare(_db, names) {
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const records = [0, 1, 2, 3, 4, 5].map((index) => JSON.stringify(traceOf(names, index))).join('\n');
    await writer.telemetry(appendBatch, { records });
    await writer.all([0, 1, 2].map(() => () => writer.telemetry(expandBatch, undefined)));
    const activity = { channelType: 'hammer', channelId: round, agentId, lastActiveAtMs: atMs, messagesSent: 1, messagesReceived: 2 };
    let pruned = 0;
    await writer.race([
      ...[0, 1].map(() => async () => {
        const open = { roots: [], turns: [] };
        pruned += valueOf(await writer.telemetry(pruneTraces, { beforeMs, most: 1_000_000, open, limit })) ?? 0;
      }),
      () => writer.telemetry(stripTexts, { ref: names.ref(0), afterSeq: 0 }),
      () => writer.telemetry(dropRecords, { kind: 'delivery', upTo: 0, limit }),
      () => writer.telemetry(addActivity, { rows: [activity], beforeMs: 0 }),
      () => writer.write(recordReset, { marks: [{ name: 'delivery', atMs: atMs + side, upTo: side }], audit: names.audit(`reset-${side}`) }),
    ]);
    await writer.telemetry(stripTexts, { ref: names.ref(0), afterSeq: 0 });
    return { pruned };
  },
  async check(look, { round }) {
    const names = namesOf(round);
    const of = `trace_id = ${quote(round)}`;
    const [kept] = await look(`select count(*) as count from trace_record where ${of} and started_at_ms > ${beforeMs}`);
    const [texts] = await look(`select count(*) as count from trace_record where ${of} and detail_json like '%a sentence%'`);
    const [sums] = await look(`select messages_sent as sent, messages_received as received from channel_activity where channel_id = ${quote(round)}`);
    const [marks] = await look(`select count(*) as count from obs_reset where name = 'delivery'`);
    const [audits] = await look(
      `select count(*) as count from audit where id in (${[0, 1].map((side) => quote(names.id('au', `reset-${side}`))).join(', ')})`,
    );
    return [
      ...differs('records of two stores', kept?.['count'], 3),
      ...differs('records with a text', texts?.['count'], 0),
      ...differs('messages sent', sums?.['sent'], 2),
      ...differs('messages received', sums?.['received'], 4),
      ...differs('marks of one reset', marks?.['count'], 1),
      ...differs('audit rows of the resets', audits?.['count'], 2),
    ];
  },
};

const evaluationOf = (names: Names, index: number | string, bootId: string): EvalRow => ({
  id: names.id('ev', index),
  name: names.round,
  state: 'running',
  reason: null,
  principalId,
  variantsJson: '[]',
  casesJson: '[]',
  caseCount: 1,
  budgetNano: null,
  createdAtMs: atMs,
  endedAtMs: null,
  bootId,
});

/** Results that both store, and an end that one of them writes. */
const evaluations: Driver<Round, null> = {
  name: 'evaluations',
  async prepare(db, names) {
    await db.write(addRun, evaluationOf(names, 0, liveBoot));
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const evalId = names.id('ev', 0);
    await writer.race([
      () => writer.write(addRun, evaluationOf(names, `own-${side}`, liveBoot)),
      ...[0, 1, 2].map((caseNo) => () => {
        const result = { evalId, caseNo, variantNo: 0, outcome: 'passed' as const, costNano: 1, judgeNano: 0, latencyMs: 1, detailJson: '{}' };
        return writer.write(addResult, result);
      }),
      () => writer.write(interruptRuns, { atMs }),
      () => writer.write(endEvaluation, { id: evalId, state: side === 0 ? 'completed' : 'stopped', reason: null, atMs: atMs + 1 }),
    ]);
    return null;
  },
  async check(look, { round }) {
    const names = namesOf(round);
    const [results] = await look(`select count(*) as count from eval_result where eval_id = ${quote(names.id('ev', 0))}`);
    const [runs] = await look(`select count(*) as count from eval_run where name = ${quote(round)}`);
    const [ended] = await look(`select count(*) as count from eval_run where id = ${quote(names.id('ev', 0))} and state in ('completed', 'stopped')`);
    return [
      ...differs('results of three cases', results?.['count'], 3),
      ...differs('evaluations', runs?.['count'], 3),
      ...differs('ends', ended?.['count'], 1),
    ];
  },
};

/** Rows that are too old, deleted by both; the mark of an answer, set by both. */
const retention: Driver<Round, { readonly audits: number }> = {
  name: 'retention',
  async prepare(db, names) {
    for (let index = 0; index < 4; index += 1) await db.write(writeAudit, { ...names.audit(`old-${index}`), atMs: longAgoMs });
    const turn = turnOf(names, 0, names.ref(0));
    await db.write(commitTurn, { turn, calls: [modelCall], conversation: messagesOf(names, turn.id, names.ref(0)) });
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const turnId = names.id('tn', 0);
    let audits = 0;
    await writer.race([
      ...[0, 1].map(() => async () => {
        audits += valueOf(await writer.write(pruneAudit, { beforeMs, limit })) ?? 0;
      }),
      () => writer.write(pruneTurns, { beforeMs, limit }),
      () => writer.write(pruneCalls, { beforeMs, limit }),
      () => writer.write(pruneArchives, { beforeMs, limit }),
      () => writer.write(pruneReasoning, { beforeMs, limit }),
      () => writer.write(pruneConversation, { ref: names.ref(0), beforeMs }),
      ...(['good', 'bad'] as const).map((rating) => () => {
        const mark = { turnId, rating, note: null, principalId, atMs: atMs + side, audit: names.audit(`mark-${rating}-${side}`) };
        return writer.write(keepFeedback, { ...mark, ref: names.ref(0) });
      }),
    ]);
    return { audits };
  },
  async check(look, { round }) {
    const names = namesOf(round);
    const old = await look(`select id from audit where at_ms = ${longAgoMs} and target = ${quote(round)}`);
    const [marks] = await look(`select count(*) as count from message_feedback where turn_id = ${quote(names.id('tn', 0))}`);
    const [turns] = await look(`select count(*) as count from turn where id = ${quote(names.id('tn', 0))}`);
    return [
      ...differs('old audit rows', old.length, 0),
      ...differs('marks of one answer', marks?.['count'], 1),
      ...differs('turns that are not old', turns?.['count'], 1),
    ];
  },
};

/** Prompts of one person: the same name saved by both, and one that only one of them deletes. */
const prompts: Driver<Round, { readonly deleted: number }> = {
  name: 'prompts',
  async prepare(db, names) {
    const prompt = { text: 'x', updatedAtMs: atMs };
    await db.write(savePrompt, { principalId: names.round, name: 'gone', ...prompt, audit: names.audit('prompt') });
    const full = Array.from({ length: 199 }, (_, at) => ({ ...prompt, name: `p${at}`, audit: names.audit(`prompt-${at}`) }));
    await Promise.all(full.map((one) => db.write(savePrompt, { principalId: `${names.round}-full`, ...one })));
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    let deleted = 0;
    const save = (name: string) => () =>
      writer.write(savePrompt, { principalId: round, name, text: `${side}`, updatedAtMs: atMs + side, audit: names.audit(`prompt-${name}-${side}`) });
    await writer.race([
      save('shared'),
      save(`own-${side}`),
      async () => {
        const last = { principalId: `${round}-full`, name: `last-${side}`, text: 'x', updatedAtMs: atMs, audit: names.audit(`prompt-last-${side}`) };
        await writer.write(savePrompt, last, ['precondition_failed']);
      },
      async () => {
        const isDeleted = await writer.write(deletePrompt, { principalId: round, name: 'gone', audit: names.audit(`prompt-gone-${side}`) });
        deleted += Number(valueOf(isDeleted) === true);
      },
    ]);
    return { deleted };
  },
  async check(look, { round }, [first, second]) {
    const rows = await look(`select name from saved_prompt where principal_id = ${quote(round)} order by name`);
    const [full] = await look(`select count(*) as count from saved_prompt where principal_id = ${quote(`${round}-full`)}`);
    return [
      ...differs('prompts of somebody who has as many as allowed', full?.['count'], 200),
      ...differs('prompts', rows.length, 3),
      ...differs('deletions of one prompt', first.deleted + second.deleted, 1),
    ];
  },
};

/** Forgets the activity of all channels: last, because other drivers look at it. */
const activity: Driver<Round, null> = {
  name: 'activity',
  async prepare(_db, names) {
    return { round: names.round };
  },
  async run(writer) {
    await writer.telemetry(clearActivity, {});
    return null;
  },
  async check(look) {
    const [kept] = await look('select count(*) as count from channel_activity');
    return differs('channels', kept?.['count'], 0);
  },
};

export const observationDrivers = [driver(traces), driver(evaluations), driver(retention), driver(prompts), driver(activity)];
