import { operation, query, type Tx } from '../../../../kernel/db/operation.ts';
import { byAge, openRow, recordColumns, rootRunOf, starterOf, type StoredRecord, type TraceRow, turnIdOf } from '../records.ts';
import { explain, type ExplainedReport } from './explain.ts';
import type { Material, Reference, SessionTotals } from './material.ts';
import { readDurableRows } from './rows-store.ts';

const sessionRecords = 50;
const executionRecords = 200;

type Session = Pick<Material, 'conversationRef' | 'sessionKey' | 'agentId'>;

/** Session of a turn that runs now. */
export interface RunningSession extends Session {
  readonly agentId: string;
}

export interface ExplainInput extends Reference {
  readonly depth: 'summary' | 'full';
  readonly includeSynthetic: boolean;
  /** The only agents whose sessions may be explained; null: all. */
  readonly agents: readonly string[] | null;
  /** The session of a turn that runs now, where nothing is stored under the reference. */
  readonly running: RunningSession | null;
}

type Mark = 'conversationRef' | 'sessionKey' | 'traceId' | 'rootRunId' | 'id';

async function recordsBy(tx: Tx, column: Mark, value: string, input: ExplainInput, order: 'asc' | 'desc', limit: number): Promise<StoredRecord[]> {
  const rows = await tx.build<TraceRow>((db) => {
    let found = db.selectFrom('traceRecord').select(recordColumns).where(column, '=', value);
    if (!input.includeSynthetic) found = found.where('synthetic', '=', 0);
    if (input.agents !== null) found = found.where('agentId', 'in', input.agents);
    return found.orderBy('startedAtMs', order).orderBy('seq', order).limit(limit);
  });
  return rows.map(openRow);
}

const conversationBy = query<{ ref: string }, { conversationRef: string; sessionKey: string; agentId: string }>(({ db, p }) =>
  db.selectFrom('conversation').select(['ref as conversationRef', 'sessionKey', 'agentId']).where('ref', '=', p('ref')),
);

const conversationByKey = query<{ sessionKey: string }, { conversationRef: string; sessionKey: string; agentId: string }>(({ db, p }) =>
  db
    .selectFrom('conversation')
    .select(['ref as conversationRef', 'sessionKey', 'agentId'])
    .where('sessionKey', '=', p('sessionKey'))
    .orderBy('updatedAtMs', 'desc')
    .limit(1),
);

const rootOf = query<{ id: string }, { conversationRef: string | null; agentId: string }>(({ db, p }) =>
  db.selectFrom('rootRun').select(['conversationRef', 'agentId']).where('id', '=', p('id')),
);

const totalsOf = query<
  { conversationRef: string; withSynthetic: boolean },
  { turns: number; inputTokens: number | null; outputTokens: number | null; cachedTokens: number | null; costNano: number | null }
>(({ db, sql, p }) =>
  db
    .selectFrom('traceRecord')
    .select([
      sql<number>`sum(case when kind = 'turn' and outcome <> 'waiting' then 1 else 0 end)`.as('turns'),
      sql<number | null>`sum(input_tokens)`.as('inputTokens'),
      sql<number | null>`sum(output_tokens)`.as('outputTokens'),
      sql<number | null>`sum(cache_read_tokens)`.as('cachedTokens'),
      sql<number | null>`sum(cost_nano)`.as('costNano'),
    ])
    .where('conversationRef', '=', p('conversationRef'))
    .where(sql<boolean>`synthetic <= ${p('withSynthetic')}`),
);

const noTotals: SessionTotals = { turns: 0, inputTokens: 0, outputTokens: 0, cachedTokens: 0, costNano: null };

/** Resolves a reference to a session; undefined: nothing is stored under it, and nothing of it runs. */
async function findSession(tx: Tx, input: ExplainInput): Promise<Session | undefined> {
  const mayShow = (agentId: string) => input.agents === null || input.agents.includes(agentId);
  const stored = await findStored(tx, input, mayShow);
  return stored ?? (input.running !== null && mayShow(input.running.agentId) ? input.running : undefined);
}

async function findStored(tx: Tx, input: ExplainInput, mayShow: (agentId: string) => boolean): Promise<Session | undefined> {
  const { sessionKey, traceId, rootRunId } = input;
  if (sessionKey !== null) {
    const isRef = sessionKey.startsWith('cv_');
    const [newest] = await recordsBy(tx, isRef ? 'conversationRef' : 'sessionKey', sessionKey, input, 'desc', 1);
    if (newest !== undefined) return sessionOf(newest);
    const kept = isRef ? await tx.get(conversationBy, { ref: sessionKey }) : await tx.get(conversationByKey, { sessionKey });
    if (kept !== undefined && mayShow(kept.agentId)) return kept;
  }
  for (const [column, value] of [
    ['traceId', traceId],
    ['rootRunId', rootRunId],
  ] as const) {
    if (value === null) continue;
    const found = column === 'traceId' ? await recordsBy(tx, column, value, input, 'asc', executionRecords) : await recordsOfRoot(tx, value, input);
    // The first turn is that of the request; sub-agents have separate conversations.
    const first = found.find(({ kind, refs }) => kind === 'turn' && refs['runId'] === undefined) ?? found[0];
    if (first !== undefined) return sessionOf(first);
  }
  const root = rootRunId === null ? undefined : await tx.get(rootOf, { id: rootRunId });
  if (root === undefined || !mayShow(root.agentId)) return undefined;
  const kept = root.conversationRef === null ? undefined : await tx.get(conversationBy, { ref: root.conversationRef });
  return kept ?? { conversationRef: root.conversationRef, sessionKey: null, agentId: root.agentId };
}

/** The turn that starts a root run does not name it. */
async function recordsOfRoot(tx: Tx, rootRunId: string, input: ExplainInput): Promise<StoredRecord[]> {
  const starter = starterOf(rootRunId);
  const below = await recordsBy(tx, 'rootRunId', rootRunId, input, 'asc', executionRecords);
  return starter === undefined ? below : unique([...(await recordsBy(tx, 'id', starter, input, 'asc', 1)), ...below]);
}

const sessionOf = ({ conversationRef, sessionKey, agentId }: StoredRecord): Session => ({ conversationRef, sessionKey, agentId });

/** Returns the turn that is explained: that of the requested trace or root run, otherwise the newest of the session. */
function findFocus(records: readonly StoredRecord[], { traceId, rootRunId }: Reference, session: Session): StoredRecord | undefined {
  const turns = records.filter(
    (one) =>
      one.kind === 'turn' &&
      one.conversationRef === session.conversationRef &&
      (traceId === null || one.traceId === traceId) &&
      (rootRunId === null || rootRunOf(one) === rootRunId),
  );
  return turns.at(-1);
}

async function readMaterial(tx: Tx, input: ExplainInput, session: Session): Promise<Material> {
  const { conversationRef } = session;
  const newest = conversationRef === null ? [] : await recordsBy(tx, 'conversationRef', conversationRef, input, 'desc', sessionRecords);
  const requested = [
    ...(input.traceId === null ? [] : await recordsBy(tx, 'traceId', input.traceId, input, 'asc', executionRecords)),
    ...(input.rootRunId === null ? [] : await recordsOfRoot(tx, input.rootRunId, input)),
  ];
  const focus = findFocus(unique([...newest, ...requested]), input, session);
  const around = [
    ...requested,
    ...(focus === undefined ? [] : await recordsBy(tx, 'traceId', focus.traceId, input, 'asc', executionRecords)),
    ...(focus === undefined ? [] : await recordsOfRoot(tx, rootRunOf(focus), input)),
  ];
  const execution = unique(focus === undefined ? around : [...around, focus, ...following(newest, focus)]);
  const totals = conversationRef === null ? undefined : await tx.get(totalsOf, { conversationRef, withSynthetic: input.includeSynthetic });
  return {
    ...session,
    session: newest.toReversed(),
    execution: execution.slice(-executionRecords),
    focus,
    totals:
      totals === undefined
        ? noTotals
        : {
            turns: totals.turns ?? 0,
            inputTokens: totals.inputTokens ?? 0,
            outputTokens: totals.outputTokens ?? 0,
            cachedTokens: totals.cachedTokens ?? 0,
            costNano: totals.costNano,
          },
    rows: await readDurableRows(tx, {
      conversationRef,
      agentId: session.agentId,
      turnId: focus === undefined ? undefined : turnIdOf(focus),
      traceId: focus?.traceId ?? input.traceId,
      rootRunId: focus === undefined ? input.rootRunId : rootRunOf(focus),
      execution,
    }),
    cut: { session: newest.length === sessionRecords, execution: execution.length >= executionRecords },
  };
}

/** Work of the session that its turn caused, or that followed it: deliveries, reviews, wake gates. */
function following(records: readonly StoredRecord[], focus: StoredRecord): StoredRecord[] {
  const after = records.filter((one) => one.kind === 'turn' && byAge(one, focus) > 0 && turnIdOf(one) !== turnIdOf(focus));
  const next = after.toSorted(byAge)[0];
  return records.filter(
    (one) => one.kind !== 'turn' && (one.parentId === turnIdOf(focus) || (byAge(one, focus) > 0 && (next === undefined || byAge(one, next) < 0))),
  );
}

function unique(records: readonly StoredRecord[]): StoredRecord[] {
  return [...new Map(records.map((record) => [record.id, record])).values()].toSorted(byAge);
}

/** Reads what belongs to a session and explains it, here in the storage thread: hundreds of records would hold up the event loop. */
export const explainSession = operation('diagnosis.explain', async (tx, input: ExplainInput): Promise<ExplainedReport> => {
  const session = await findSession(tx, input);
  return explain(session === undefined ? undefined : await readMaterial(tx, input, session), input);
});
