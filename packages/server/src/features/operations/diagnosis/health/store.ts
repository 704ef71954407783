import { operation, type Tx } from '../../../../kernel/db/operation.ts';
import { countFact, isVoice, openRow, recordColumns, type StoredRecord, type TraceRow } from '../records.ts';
import { readAutonomy } from './autonomy-store.ts';
import { readDeliveries, readSilent } from './channel-store.ts';
import type { GateCounts, HealthFacts, SessionCounts, ValidCounts } from './facts.ts';

const hourMs = 3_600_000;
/** Records whose steps are read at most: the newest with tool calls or facts that the sums of columns do not have. */
const maxRead = 10_000;
const pageRows = 500;

export interface HealthInput {
  readonly untilMs: number;
  readonly windowHours: number;
  readonly channels: {
    readonly down: readonly string[];
    readonly paused: readonly string[];
    /** Connected ones: only these can be silent. */
    readonly connected: readonly string[];
  };
}

interface Window {
  readonly fromMs: number;
  readonly untilMs: number;
}

type LastTurn = Pick<TraceRow, 'outcome' | 'endReason' | 'errorKind' | 'toolErrors' | 'startedAtMs'>;

/** Returns the newest turn of each session. Records are numbered in the order in which they ended. */
async function readSessions(tx: Tx, { fromMs, untilMs }: Window): Promise<LastTurn[]> {
  return tx.build<LastTurn>((db, sql) => {
    const newest = db
      .selectFrom('traceRecord')
      .select(sql<number>`max(seq)`.as('last'))
      .where('kind', '=', 'turn')
      .where('synthetic', '=', 0)
      .where('startedAtMs', '>=', fromMs)
      .where('startedAtMs', '<', untilMs)
      .groupBy(sql`coalesce(conversation_ref, id)`)
      .as('newest');
    return db
      .selectFrom('traceRecord')
      .innerJoin(newest, 'newest.last', 'traceRecord.seq')
      .select(['outcome', 'endReason', 'errorKind', 'toolErrors', 'startedAtMs']);
  });
}

const isDegraded = ({ outcome }: LastTurn) => outcome === 'failed' || outcome === 'degraded';

/** Whether it was answered although a tool failed. */
const isDelivered = ({ outcome, endReason, errorKind, toolErrors }: LastTurn) =>
  outcome === 'degraded' && toolErrors > 0 && errorKind === null && endReason === 'stop';

function countSessions(turns: readonly LastTurn[]): SessionCounts {
  return { total: turns.length, degraded: turns.filter(isDegraded).length, delivered: turns.filter(isDelivered).length };
}

/** Records that agree in these columns, as sums: there are few such groups. */
interface Group {
  readonly kind: string;
  readonly errorKind: string | null;
  readonly endReason: string | null;
  readonly agentId: string | null;
  readonly channelType: string | null;
  readonly isOffSession: number;
  readonly count: number;
  readonly tokens: number;
  readonly costNano: number | null;
}

async function readGroups(tx: Tx, { fromMs, untilMs }: Window): Promise<Group[]> {
  return tx.build<Group>((db, sql) => {
    const offSession = sql<number>`case when conversation_ref is null then 1 else 0 end`;
    return db
      .selectFrom('traceRecord')
      .select([
        'kind',
        'errorKind',
        'endReason',
        'agentId',
        'channelType',
        offSession.as('isOffSession'),
        sql<number>`count(*)`.as('count'),
        sql<number>`sum(input_tokens + output_tokens)`.as('tokens'),
        sql<number | null>`sum(cost_nano)`.as('costNano'),
      ])
      .where('synthetic', '=', 0)
      .where('startedAtMs', '>=', fromMs)
      .where('startedAtMs', '<', untilMs)
      .groupBy(['kind', 'errorKind', 'endReason', 'agentId', 'channelType', offSession]);
  });
}

type Grouped = 'errorKind' | 'endReason' | 'agentId' | 'channelType';

/** Counts records by a column, the most frequent first; equal counts in alphabetical order. */
function countBy(groups: readonly Group[], column: Grouped): { readonly name: string | null; readonly count: number }[] {
  const counts = new Map<string | null, number>();
  for (const group of groups) counts.set(group[column], (counts.get(group[column]) ?? 0) + group.count);
  return [...counts].map(([name, count]) => ({ name, count })).toSorted((a, b) => b.count - a.count || ((a.name ?? '') < (b.name ?? '') ? -1 : 1));
}

const sumOf = (groups: readonly Group[], name: 'count' | 'tokens') => groups.reduce((sum, group) => sum + group[name], 0);

/** Null when no price is known. */
function costOf(groups: readonly Group[]): number | null {
  const priced = groups.flatMap(({ costNano }) => (costNano === null ? [] : [costNano]));
  return priced.length === 0 ? null : priced.reduce((sum, nano) => sum + nano, 0);
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
  readonly voice = { total: 0, failed: 0 };
  readonly events = new Map<string, number>();
  breakerTrips = 0;
  servedBelow = 0;
  read = 0;

  add(record: StoredRecord): void {
    const { kind, facts } = record;
    this.read += 1;
    if (typeof facts['servedBelowConfigured'] === 'string' && facts['servedBelowConfigured'] !== '') this.servedBelow += 1;
    if (kind === 'wake_gate') this.#addGate(record);
    if (isVoice(record) && record.outcome !== 'cancelled') {
      this.voice.total += 1;
      if (record.outcome === 'failed') this.voice.failed += 1;
    }
    if (kind === 'pipeline') this.#addAuthored(facts);
    if (kind === 'autonomy') this.#addEvent(String(facts['event']));
    if (kind === 'turn' && record.errorKind === 'denial_breaker') this.#addEvent('denial_breaker_turn');
    this.#addSteps(record);
  }

  #addSteps({ steps }: StoredRecord): void {
    for (const { kind, name, outcome, facts } of steps) {
      if (kind === 'breaker' && facts?.['event'] === 'opened') this.breakerTrips += 1;
      if (kind !== 'tool' || outcome === undefined || outcome === 'waiting') continue;
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
  for (const { endReason } of rows.filter(isDegraded)) causes.set(endReason ?? 'unknown', (causes.get(endReason ?? 'unknown') ?? 0) + 1);
  return Object.fromEntries([...causes].toSorted(byName));
}

const named = (rows: readonly { readonly name: string | null }[]) => rows.flatMap(({ name }) => (name === null ? [] : [name]));

/** Reads the sums of a window. */
export const readHealth = operation('diagnosis.health', async (tx, { untilMs, windowHours, channels }: HealthInput): Promise<HealthFacts> => {
  const window = { fromMs: untilMs - Math.round(windowHours * hourMs), untilMs };
  const sessions = await readSessions(tx, window);
  const groups = await readGroups(tx, window);
  const turns = groups.filter(({ kind }) => kind === 'turn');
  const steps = await readSteps(tx, window);
  return {
    windowHours,
    sessions: countSessions(sessions),
    lastHour: countSessions(sessions.filter(({ startedAtMs }) => startedAtMs >= untilMs - hourMs)),
    degradedByCause: causesOf(sessions),
    errorKinds: countBy(turns, 'errorKind').flatMap(({ name, count }) => (name === null ? [] : [{ kind: name, count }])),
    exitReasons: Object.fromEntries(
      countBy(turns, 'endReason')
        .map(({ name, count }) => [name ?? 'unknown', count] as const)
        .toSorted(byName),
    ),
    turns: sumOf(turns, 'count'),
    tokens: sumOf(groups, 'tokens'),
    costNano: costOf(groups),
    offSessionNano: costOf(groups.filter(({ isOffSession }) => isOffSession === 1)),
    agents: named(countBy(turns, 'agentId')).toSorted(),
    channels: named(countBy(turns, 'channelType')).toSorted(),
    tools: Object.fromEntries([...steps.tools].toSorted(byName)),
    breakerTrips: steps.breakerTrips,
    servedBelow: steps.servedBelow,
    orchestrate: steps.orchestrate,
    authored: steps.authored,
    voice: steps.voice,
    gates: [...steps.gates].toSorted(byName).map(([agentId, counts]) => ({ agentId, ...counts })),
    autonomy: await readAutonomy(tx, window, steps.events, steps.breakerTrips),
    transports: {
      down: channels.down,
      paused: channels.paused,
      silent: channels.connected.length === 0 ? [] : (await readSilent(tx, untilMs)).filter((name) => channels.connected.includes(name)),
    },
    deliveries: await readDeliveries(tx, window),
    read: steps.read,
    skipped: Math.max(0, sumOf(groups, 'count') - steps.read),
  };
});
