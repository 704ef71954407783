import { DatabaseSync } from 'node:sqlite';
import * as z from 'zod';
import { answerTo, noncesIn } from './provider.ts';
import type { Order, WeekJob, WeekRecord } from './week.ts';

const Run = z.object({
  execution: z.string(),
  job: z.string(),
  atMs: z.number(),
  trigger: z.string(),
  status: z.string(),
  delivery: z.string(),
});
const Message = z.object({ role: z.string(), content: z.string() });
const Inbox = z.object({ opKey: z.string(), text: z.string() });
const Delivery = z.object({ message: z.string(), state: z.string(), errorKind: z.string().nullable() });
const Beat = z.object({ payload: z.string(), state: z.string() });

/** Compares the database after a week with what was requested. */
export function checkWeek(
  file: string,
  record: WeekRecord,
): { readonly occurrences: number; readonly unknown: number; readonly wrong: readonly string[] } {
  const db = new DatabaseSync(file, { readOnly: true });
  const rows = <T extends z.ZodType>(shape: T, sql: string): z.output<T>[] =>
    db
      .prepare(sql)
      .all()
      .map((row) => shape.parse({ ...row }));
  const runs = rows(
    Run,
    `SELECT execution_id AS execution, name AS job, scheduled_for_ms AS atMs, trigger_kind AS "trigger", cron_occurrence.status, delivery_status AS delivery
      FROM cron_occurrence JOIN cron_job ON cron_job.id = job_id`,
  );
  const messages = rows(Message, `SELECT role, content FROM message ORDER BY conversation_id, seq`);
  const inbox = rows(Inbox, `SELECT op_key AS opKey, text FROM inbox_message`);
  const deliveries = rows(
    Delivery,
    `SELECT message, coalesce(own_state, state, 'gone') AS state, error_kind AS errorKind FROM webhook_delivery
      LEFT JOIN work_item ON work_key = webhook_delivery.id AND kind = 'webhook'`,
  );
  const beats = rows(Beat, `SELECT payload_json AS payload, state FROM work_item WHERE kind LIKE '%beat%'`);
  db.close();

  const wrong = [
    ...record.jobs.flatMap((job) => checkJob(job, runs, record)),
    ...checkRuns(runs, inbox, record),
    ...record.orders.flatMap((order) => checkOrder(order, { runs, messages, inbox, deliveries, beats }, record)),
    ...inboxTwice(inbox),
    ...chargedTwice(record.world.chargedBy),
    ...record.world.ruleless.map((said) => `a model was called without a reason: ${said}`),
  ];
  const unknown = [...runs.map(({ status }) => status), ...deliveries.map(({ state }) => state), ...beats.map(({ state }) => state)];
  return { occurrences: runs.length, unknown: unknown.filter((state) => state === 'unknown').length, wrong };
}

type Run = z.output<typeof Run>;
/** Deliveries, and ends of work, are kept a little longer. */
const keptMs = 6.5 * 24 * 60 * 60_000;
const isoOf = (ms: number) => new Date(ms).toISOString();

/** Checks that there is one row for each time, none for any other, and that each was executed at most once. */
function checkJob(job: WeekJob, runs: readonly Run[], { world, endMs }: WeekRecord): string[] {
  const wrong: string[] = [];
  const own = runs.filter((run) => run.job === job.name);
  const byTime = Map.groupBy(
    own.filter(({ trigger }) => trigger !== 'manual'),
    ({ atMs }) => atMs,
  );
  for (const atMs of job.times(endMs)) {
    const count = byTime.get(atMs)?.length ?? 0;
    if (count !== 1) wrong.push(`${job.name} at ${isoOf(atMs)} has ${count} rows`);
  }
  for (const atMs of byTime.keys()) if (!job.isTime(atMs)) wrong.push(`${job.name} has a row for ${isoOf(atMs)}, which is none of its times`);
  if (job.charges === undefined) return wrong;
  const charged = world.charges.filter((what) => what === job.charges).length;
  const done = own.filter(({ status }) => status === 'completed').length;
  // The others ended as unknown, or failed afterwards.
  const most = own.filter(({ status }) => status !== 'skipped').length;
  if (charged < done || charged > most) wrong.push(`${job.name} charged ${charged} times, completed ${done} of ${most} runs`);
  return wrong;
}

function checkRuns(runs: readonly Run[], inbox: readonly z.output<typeof Inbox>[], { byHand }: WeekRecord): string[] {
  const wrong: string[] = [];
  const delivered = Map.groupBy(
    inbox.filter(({ opKey }) => opKey.startsWith('cron:')),
    ({ opKey }) => opKey.slice('cron:'.length),
  );
  for (const { execution, job, atMs, status, delivery } of runs) {
    const line = `${job} at ${isoOf(atMs)} (${status}, delivery ${delivery})`;
    const count = delivered.get(execution)?.length ?? 0;
    delivered.delete(execution);
    if (status === 'started') wrong.push(`${line} has no end`);
    if (count !== (delivery === 'accepted' ? 1 : 0)) wrong.push(`${line} is ${count} times in the inbox`);
    if (status === 'completed' && delivery !== 'accepted') wrong.push(`${line} was not delivered`);
  }
  for (const execution of delivered.keys()) wrong.push(`the inbox holds a message of ${execution}, which is not a run`);
  for (const execution of byHand) if (!runs.some((run) => run.execution === execution)) wrong.push(`${execution}, started manually, has no row`);
  return wrong;
}

/** Texts that a model says once. */
function inboxTwice(inbox: readonly z.output<typeof Inbox>[]): string[] {
  const unique = inbox.filter(({ text }) => noncesIn(text).length > 0 || text.startsWith('The plants'));
  return [...Map.groupBy(unique, ({ text }) => text)].flatMap(([text, { length }]) =>
    length > 1 ? [`"${text}" is ${length} times in the inbox`] : [],
  );
}

/** A turn of this week charges once, however often it is resumed. */
const chargedTwice = (chargedBy: readonly string[]): string[] =>
  [...Map.groupBy(chargedBy, (turnId) => turnId)].flatMap(([turnId, { length }]) =>
    length > 1 ? [`the turn ${turnId} charged ${length} times`] : [],
  );

interface Left {
  readonly runs: readonly Run[];
  readonly messages: readonly z.output<typeof Message>[];
  readonly inbox: readonly z.output<typeof Inbox>[];
  readonly deliveries: readonly z.output<typeof Delivery>[];
  readonly beats: readonly z.output<typeof Beat>[];
}

function checkOrder({ kind, nonce, acked, charges, atMs }: Order, left: Left, { world, endMs }: WeekRecord): string[] {
  const asked = left.messages.filter(({ role, content }) => role === 'user' && noncesIn(content).includes(nonce)).length;
  const answered = left.messages.filter(({ role, content }) => role === 'assistant' && content === answerTo(nonce)).length;
  const inboxed = left.inbox.filter(({ text }) => noncesIn(text).includes(nonce)).length;
  const charged = world.charges.filter((what) => what === nonce).length;
  const own = left.deliveries.filter(({ message }) => message.includes(nonce));
  const ends = own.map(({ state, errorKind }) => `${state}${errorKind === null ? '' : ` ${errorKind}`}`).join();
  const line = `${kind} ${nonce} (${acked ? 'promised' : 'not promised'}): ${own.length} deliveries (${ends}), question ${asked} times, answer ${answered} times, in the inbox ${inboxed} times, charged ${charged} times`;
  const isWrong = (): boolean => {
    if (kind === 'chat') return asked > 1 || answered > 1 || asked < answered || (acked && answered !== 1);
    if (kind === 'once') {
      const { length } = left.runs.filter(({ job }) => job === nonce);
      return length > 1 || inboxed > 1 || (acked && (length !== 1 || inboxed !== 1));
    }
    if (own.length > 1 || charged > 1 || inboxed > 1 || answered > 1) return true;
    if (atMs < endMs - keptMs) return false;
    if (acked && own.length === 0) return true;
    if (own[0] === undefined) return charged + answered + inboxed > 0;
    if (kind === 'wake') {
      // A beat that is given up, or whose outcome is unknown, says so in its own end.
      const lost = left.beats.some(({ payload, state }) => payload.includes(nonce) && (state === 'unknown' || state === 'failed'));
      return inboxed !== 1 && !lost;
    }
    const { state, errorKind } = own[0];
    if (state === 'done') return asked !== 1 || answered !== 1 || charged !== (charges ? 1 : 0);
    // A clock that jumps uses up the time of a turn.
    return state !== 'unknown' && !(state === 'failed' && (world.faults() > 0 || errorKind === 'timeout'));
  };
  const said = left.messages.findIndex(({ role, content }) => role === 'user' && noncesIn(content).includes(nonce));
  const beats = left.beats.filter(({ payload }) => payload.includes(nonce)).map(({ state }) => state);
  return isWrong() ? [`${line}; beats ${beats.join()}; answered with "${left.messages[said + 1]?.content}"`] : [];
}
