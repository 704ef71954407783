import { operation, type Tx } from '../../../../kernel/db/operation.ts';
import { countFact, openRow, recordColumns, type StoredRecord, type TraceRow } from '../records.ts';
import { readAutonomy } from './autonomy-store.ts';
import type { GateCounts, HealthFacts, SessionCounts, ValidCounts } from './facts.ts';

const hourMs = 3_600_000;
/** Records whose steps are read at most: the newest with tool calls or facts that the sums of columns do not have. */
const maxRead = 10_000;
const pageRows = 500;

export interface HealthInput {
  readonly untilMs: number;
  readonly windowHours: number;
}

interface Window {
  readonly fromMs: number;
  readonly untilMs: number;
}

interface LastTurn {
  readonly outcome: string;
  readonly endReason: string | null;
  readonly isLate: number;
  readonly delivered: number;
  readonly count: number;
}

/** Sessions by how their newest turn ended. */
async function readSessions(tx: Tx, { fromMs, untilMs }: Window): Promise<LastTurn[]> {
  return tx.build<LastTurn>((db, sql) => {
    const newest = db
      .selectFrom('traceRecord')
      .select([
        'outcome',
        'endReason',
        sql<number>`case when started_at_ms >= ${sql.lit(untilMs - hourMs)} then 1 else 0 end`.as('isLate'),
        sql<number>`case when outcome = 'degraded' and tool_errors > 0 and error_kind is null and end_reason = 'stop' then 1 else 0 end`.as(
          'delivered',
        ),
        sql<number>`row_number() over (partition by coalesce(conversation_ref, id) order by started_at_ms desc, seq desc)`.as('age'),
      ])
      .where('kind', '=', 'turn')
      .where('synthetic', '=', 0)
      .where('startedAtMs', '>=', fromMs)
      .where('startedAtMs', '<', untilMs)
      .as('newest');
    return db
      .selectFrom(newest)
      .select(['outcome', 'endReason', 'isLate', 'delivered', sql<number>`count(*)`.as('count')])
      .where('age', '=', 1)
      .groupBy(['outcome', 'endReason', 'isLate', 'delivered']);
  });
}

const isDegraded = ({ outcome }: LastTurn) => outcome === 'failed' || outcome === 'degraded';

function countSessions(rows: readonly LastTurn[]): SessionCounts {
  const sum = (some: readonly LastTurn[]) => some.reduce((total, { count }) => total + count, 0);
  const degraded = rows.filter(isDegraded);
  return { total: sum(rows), degraded: sum(degraded), delivered: sum(degraded.filter(({ delivered }) => delivered === 1)) };
}

interface Sums {
  readonly turns: number | null;
  readonly tokens: number | null;
  readonly costNano: number | null;
  readonly offSessionNano: number | null;
  readonly withSteps: number | null;
}

async function readSums(tx: Tx, { fromMs, untilMs }: Window): Promise<Sums> {
  const [sums] = await tx.build<Sums>((db, sql) =>
    db
      .selectFrom('traceRecord')
      .select([
        sql<number | null>`sum(case when kind = 'turn' then 1 else 0 end)`.as('turns'),
        sql<number | null>`sum(input_tokens + output_tokens)`.as('tokens'),
        sql<number | null>`sum(cost_nano)`.as('costNano'),
        sql<number | null>`sum(case when conversation_ref is null then cost_nano end)`.as('offSessionNano'),
        sql<number | null>`count(*)`.as('withSteps'),
      ])
      .where('synthetic', '=', 0)
      .where('startedAtMs', '>=', fromMs)
      .where('startedAtMs', '<', untilMs),
  );
  return sums ?? { turns: 0, tokens: 0, costNano: null, offSessionNano: null, withSteps: 0 };
}

type Grouped = 'errorKind' | 'endReason' | 'agentId' | 'channelType';

/** Counts turns by a column, the most frequent first. */
async function countBy(tx: Tx, column: Grouped, { fromMs, untilMs }: Window): Promise<{ readonly name: string | null; readonly count: number }[]> {
  return tx.build<{ name: string | null; count: number }>((db, sql) =>
    db
      .selectFrom('traceRecord')
      .select([`${column} as name`, sql<number>`count(*)`.as('count')])
      .where('kind', '=', 'turn')
      .where('synthetic', '=', 0)
      .where('startedAtMs', '>=', fromMs)
      .where('startedAtMs', '<', untilMs)
      .groupBy(column)
      .orderBy('count', 'desc')
      .orderBy('name'),
  );
}

/** Returns a page of records, newest first, below `before`. */
async function readPage(tx: Tx, { fromMs }: Window, before: { readonly atMs: number; readonly seq: number }): Promise<StoredRecord[]> {
  const rows = await tx.build<TraceRow>((db) =>
    db
      .selectFrom('traceRecord')
      .select(recordColumns)
      .where('synthetic', '=', 0)
      .where('startedAtMs', '>=', fromMs)
      .where('startedAtMs', '<=', before.atMs)
      .where((where) => where.or([where('startedAtMs', '<', before.atMs), where('seq', '<', before.seq)]))
      .orderBy('startedAtMs', 'desc')
      .orderBy('seq', 'desc')
      .limit(pageRows),
  );
  return rows.map(openRow);
}

/** Counts what only the steps and facts of records hold. */
class StepCounts {
  readonly tools = new Map<string, { ok: number; failed: number }>();
  readonly gates = new Map<string, { -readonly [Name in keyof GateCounts]: number }>();
  readonly authored = { small: { total: 0, valid: 0 }, frontier: { total: 0, valid: 0 } };
  readonly orchestrate = { total: 0, failed: 0 };
  readonly events = new Map<string, number>();
  breakerTrips = 0;
  servedBelow = 0;
  read = 0;

  add(record: StoredRecord): void {
    const { kind, facts } = record;
    this.read += 1;
    if (typeof facts['servedBelowConfigured'] === 'string' && facts['servedBelowConfigured'] !== '') this.servedBelow += 1;
    if (kind === 'breaker' && facts['event'] === 'opened') this.breakerTrips += 1;
    if (kind === 'wake_gate') this.#addGate(record);
    if (kind === 'pipeline') this.#addAuthored(facts);
    if (kind === 'autonomy') this.#addEvent(String(facts['event']));
    if (kind === 'turn' && record.errorKind === 'denial_breaker') this.#addEvent('denial_breaker_turn');
    this.#addSteps(record);
  }

  #addSteps({ steps }: StoredRecord): void {
    for (const { kind, name, outcome, facts } of steps) {
      if (kind === 'breaker' && facts?.['event'] === 'opened') this.breakerTrips += 1;
      if (kind !== 'tool' || outcome === undefined) continue;
      const isFailed = outcome === 'error' || outcome === 'denied';
      const counts = this.tools.get(name) ?? { ok: 0, failed: 0 };
      this.tools.set(name, counts);
      counts[isFailed ? 'failed' : 'ok'] += 1;
      if (name !== 'orchestrate') continue;
      this.orchestrate.total += 1;
      if (outcome === 'error') this.orchestrate.failed += 1;
    }
  }

  #addGate({ agentId, facts }: StoredRecord): void {
    const counts = this.gates.get(agentId ?? '') ?? { fires: 0, skipped: 0, failedOpen: 0, turnsSaved: 0, toolCalls: 0 };
    this.gates.set(agentId ?? '', counts);
    counts.fires += 1;
    if (facts['wake'] === false) counts.skipped += 1;
    if (facts['failedOpen'] === true) counts.failedOpen += 1;
    counts.turnsSaved += countFact(facts['turnsSaved']);
    counts.toolCalls += countFact(facts['toolCalls']);
  }

  #addAuthored({ tier, valid }: StoredRecord['facts']): void {
    if (tier !== 'small' && tier !== 'frontier') return;
    const counts: { -readonly [Name in keyof ValidCounts]: number } = this.authored[tier];
    counts.total += 1;
    if (valid === true) counts.valid += 1;
  }

  #addEvent(event: string): void {
    this.events.set(event, (this.events.get(event) ?? 0) + 1);
  }
}

async function readSteps(tx: Tx, window: Window): Promise<StepCounts> {
  const counts = new StepCounts();
  let before = { atMs: window.untilMs - 1, seq: Number.MAX_SAFE_INTEGER };
  while (counts.read < maxRead) {
    const page = await readPage(tx, window, before);
    for (const record of page) counts.add(record);
    const last = page.at(-1);
    if (last === undefined || page.length < pageRows) break;
    before = { atMs: last.startedAtMs, seq: last.seq };
  }
  return counts;
}

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) => (a < b ? -1 : 1);

function causesOf(rows: readonly LastTurn[]): Record<string, number> {
  const causes = new Map<string, number>();
  for (const { endReason, count } of rows.filter(isDegraded)) causes.set(endReason ?? 'unknown', (causes.get(endReason ?? 'unknown') ?? 0) + count);
  return Object.fromEntries([...causes].toSorted(byName));
}

const named = (rows: readonly { readonly name: string | null }[]) => rows.flatMap(({ name }) => (name === null ? [] : [name]));

/** Reads the sums of a window. */
export const readHealth = operation('diagnosis.health', async (tx, { untilMs, windowHours }: HealthInput): Promise<HealthFacts> => {
  const window = { fromMs: untilMs - Math.round(windowHours * hourMs), untilMs };
  const sessions = await readSessions(tx, window);
  const sums = await readSums(tx, window);
  const errors = await countBy(tx, 'errorKind', window);
  const reasons = await countBy(tx, 'endReason', window);
  const steps = await readSteps(tx, window);
  return {
    windowHours,
    sessions: countSessions(sessions),
    lastHour: countSessions(sessions.filter(({ isLate }) => isLate === 1)),
    degradedByCause: causesOf(sessions),
    errorKinds: errors.flatMap(({ name, count }) => (name === null ? [] : [{ kind: name, count }])),
    exitReasons: Object.fromEntries(reasons.map(({ name, count }) => [name ?? 'unknown', count] as const).toSorted(byName)),
    turns: sums.turns ?? 0,
    tokens: sums.tokens ?? 0,
    costNano: sums.costNano,
    offSessionNano: sums.offSessionNano,
    agents: named(await countBy(tx, 'agentId', window)).toSorted(),
    channels: named(await countBy(tx, 'channelType', window)).toSorted(),
    tools: Object.fromEntries([...steps.tools].toSorted(byName)),
    breakerTrips: steps.breakerTrips,
    servedBelow: steps.servedBelow,
    orchestrate: steps.orchestrate,
    authored: steps.authored,
    gates: [...steps.gates].toSorted(byName).map(([agentId, counts]) => ({ agentId, ...counts })),
    autonomy: await readAutonomy(tx, window, steps.events, steps.breakerTrips),
    read: steps.read,
    skipped: Math.max(0, (sums.withSteps ?? 0) - steps.read),
  };
});
