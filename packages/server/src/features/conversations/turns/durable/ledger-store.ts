import { parseJson } from '../../../../kernel/json.ts';
import { query, type Tx } from '../../../../kernel/db/operation.ts';
import type { ModelMessage } from '../../../../llm/model.ts';
import type { ConversationTarget } from '../../sessions/api.ts';
import type { StepRow, TurnTotals } from './ledger.ts';

interface DurableRow {
  readonly turnId: string;
  readonly resumes: number;
  readonly tainted: 0 | 1;
  readonly refused: number;
  readonly startedAtMs: number;
  readonly steps: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costNano: number | null;
  readonly question: string | null;
  readonly ref: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly traceId: string;
}

const insertDurable = query<{ workId: string; turnId: string }>(({ db, p }) =>
  db.insertInto('durableTurn').values({ workId: p('workId'), turnId: p('turnId'), resumes: 0, firstCallId: null, tainted: 0, refused: 0 }),
);

/** Adds a turn that survives its process. Part of `openDurableTurn`. */
export async function addDurableTurn(tx: Tx, input: { readonly workId: string; readonly turnId: string }): Promise<void> {
  await tx.run(insertDurable, input);
}

const byWork = query<{ workId: string }, DurableRow>(({ db, p }) =>
  db
    .selectFrom('durableTurn as d')
    .innerJoin('turn as t', 't.id', 'd.turnId')
    .select([
      'd.turnId',
      'd.resumes',
      'd.tainted',
      'd.refused',
      't.startedAtMs',
      't.steps',
      't.inputTokens',
      't.outputTokens',
      't.costNano',
      'd.question',
      't.conversationRef as ref',
      't.sessionKey',
      't.agentId',
      't.principalId',
      't.traceId',
    ])
    .where('d.workId', '=', p('workId')),
);

const countResumes = query<{ workId: string; change: number }>(({ db, sql, p }) =>
  db
    .updateTable('durableTurn')
    .set({ resumes: sql<number>`resumes + ${p('change')}` })
    .where('workId', '=', p('workId')),
);

/** Counts a resume of the turn, or with -1 reverts one because of a stop. */
export async function countResume(tx: Tx, input: { readonly workId: string; readonly change: 1 | -1 }): Promise<void> {
  await tx.run(countResumes, input);
}

const setTainted = query<{ turnId: string }>(({ db, p }) => db.updateTable('durableTurn').set({ tainted: 1 }).where('turnId', '=', p('turnId')));

/** Marks the turn as having read untrusted text. Part of `checkpointTurn`. */
export async function taintTurn(tx: Tx, turnId: string): Promise<void> {
  await tx.run(setTainted, { turnId });
}

const setQuestion = query<{ workId: string; question: string }>(({ db, p }) =>
  db
    .updateTable('durableTurn')
    .set({ question: p('question') })
    .where('workId', '=', p('workId'))
    .where('question', 'is', null),
);

/** Stores what a waiting turn answers, for the case that it ends without running again. Part of `checkpointTurn`. */
export async function keepQuestion(tx: Tx, input: { readonly workId: string; readonly question: string }): Promise<void> {
  await tx.run(setQuestion, input);
}

const setRefused = query<{ turnId: string; refused: number }>(({ db, p }) =>
  db
    .updateTable('durableTurn')
    .set({ refused: p('refused') })
    .where('turnId', '=', p('turnId')),
);

/** Stores how many calls of the turn were not run because of a missing approval. Part of `checkpointTurn`. */
export async function keepRefused(tx: Tx, input: { readonly turnId: string; readonly refused: number }): Promise<void> {
  await tx.run(setRefused, input);
}

const stepsOf = query<{ turnId: string }, { step: number; finished: number; messagesJson: string }>(({ db, p }) =>
  db.selectFrom('turnStep').select(['step', 'finished', 'messagesJson']).where('turnId', '=', p('turnId')).orderBy('step'),
);

interface IntentRow {
  readonly step: number;
  readonly callId: string;
  readonly toolName: string;
  readonly resultJson: string | null;
}

const intentsOf = query<{ turnId: string }, IntentRow>(({ db, p }) =>
  db.selectFrom('turnIntent').select(['step', 'callId', 'toolName', 'resultJson']).where('turnId', '=', p('turnId')).orderBy('opKey'),
);

/** The stored state of an interrupted turn. */
export interface InterruptedTurn {
  readonly turnId: string;
  readonly traceId: string;
  readonly target: ConversationTarget;
  /** What it answers, as its conversation will show it; null when it never waited, or its conversation does not keep it. */
  readonly question: string | null;
  readonly resumes: number;
  readonly startedAtMs: number;
  /** Whether it has read untrusted text, which need not be in its steps. */
  readonly isTainted: boolean;
  /** Number of calls not run because of a missing approval. */
  readonly refused: number;
  readonly totals: TurnTotals;
  readonly steps: readonly StepRow[];
  /** Whether a tool of class `once` has started in any step. */
  readonly hasActed: boolean;
  /** Intents of the unfinished step. */
  readonly intents: readonly { readonly callId: string; readonly toolName: string; readonly result: ModelMessage | undefined }[];
}

// Only `keepStep` and `closeIntent` write these columns.
const toMessages = (json: string) => parseJson(json) as readonly ModelMessage[];
const toMessage = (json: string) => parseJson(json) as ModelMessage;

/** Returns the turn of a work item with its progress; undefined when none was started. */
export async function findDurableTurn(tx: Tx, workId: string): Promise<InterruptedTurn | undefined> {
  const row = await tx.get(byWork, { workId });
  if (row === undefined) return undefined;
  const { turnId, resumes, startedAtMs, tainted, refused, question, ref, sessionKey, agentId, principalId, traceId, ...totals } = row;
  const steps = await tx.all(stepsOf, { turnId });
  const intents = await tx.all(intentsOf, { turnId });
  const isFinished = new Set(steps.filter(({ finished }) => finished === 1).map(({ step }) => step));
  return {
    turnId,
    traceId,
    target: { ref, sessionKey, agentId, principalId },
    question,
    resumes,
    startedAtMs,
    isTainted: tainted === 1,
    refused,
    totals,
    hasActed: intents.length > 0,
    steps: steps.map(({ step, finished, messagesJson }) => ({ step, finished: finished === 1, messages: toMessages(messagesJson) })),
    intents: intents
      .filter(({ step }) => !isFinished.has(step))
      .map(({ callId, toolName, resultJson }) => ({ callId, toolName, result: resultJson === null ? undefined : toMessage(resultJson) })),
  };
}

const upsertStep = query<{ turnId: string; step: number; finished: number; messagesJson: string }>(({ db, sql, each }) =>
  db
    .insertInto('turnStep')
    .values(each(['turnId', 'step', 'finished', 'messagesJson']))
    .onConflict((conflict) =>
      conflict
        .columns(['turnId', 'step'])
        .doUpdateSet({ finished: sql<number>`excluded.finished`, messagesJson: sql<string>`excluded.messages_json` }),
    ),
);

/** Stores a started step with only its answer, or a finished one. Part of `checkpointTurn`. */
export async function keepStep(tx: Tx, turnId: string, { step, finished, messages }: StepRow): Promise<void> {
  await tx.run(upsertStep, { turnId, step, finished: finished ? 1 : 0, messagesJson: JSON.stringify(messages) });
}

interface NewIntent {
  readonly opKey: string;
  readonly turnId: string;
  readonly step: number;
  readonly callId: string;
  readonly toolName: string;
}

const insertIntent = query<NewIntent>(({ db, each }) =>
  db.insertInto('turnIntent').values({ ...each(['opKey', 'turnId', 'step', 'callId', 'toolName']), resultJson: null }),
);

/** Records the intent of a run-once operation. Part of `checkpointTurn`. */
export async function openIntent(tx: Tx, intent: NewIntent): Promise<void> {
  await tx.run(insertIntent, intent);
}

const setResult = query<{ opKey: string; resultJson: string }>(({ db, p }) =>
  db
    .updateTable('turnIntent')
    .set({ resultJson: p('resultJson') })
    .where('opKey', '=', p('opKey')),
);

/** Records the result of an intent. Part of `checkpointTurn`. */
export async function closeIntent(tx: Tx, { opKey, result }: { readonly opKey: string; readonly result: ModelMessage }): Promise<void> {
  await tx.run(setResult, { opKey, resultJson: JSON.stringify(result) });
}

const setTotals = query<TurnTotals & { turnId: string }>(({ db, p }) =>
  db
    .updateTable('turn')
    .set({
      steps: p('steps'),
      inputTokens: p('inputTokens'),
      outputTokens: p('outputTokens'),
      costNano: p('costNano'),
      reservedNano: null,
    })
    .where('id', '=', p('turnId')),
);

/** Stores the usage so far and clears the reservation. Part of `checkpointTurn`. */
export async function keepTotals(tx: Tx, turnId: string, { steps, inputTokens, outputTokens, costNano }: TurnTotals): Promise<void> {
  await tx.run(setTotals, { turnId, steps, inputTokens, outputTokens, costNano });
}

const lastCallId = query<Record<string, never>, { id: number | null }>(({ db, sql }) =>
  db.selectFrom('modelCall').select(sql<number | null>`max(id)`.as('id')),
);

const setFirstCall = query<{ turnId: string; callId: number }>(({ db, sql, p }) =>
  db
    .updateTable('durableTurn')
    .set({ firstCallId: sql<number | null>`coalesce(first_call_id, ${p('callId')})` })
    .where('turnId', '=', p('turnId')),
);

/**
 * Stores where the turn's calls start; call before the first are booked. Part of `checkpointTurn`. Safe with several writers: ids are
 * given in order, if not made visible in order, and those of the turn are given after this one was read.
 */
export async function markFirstCall(tx: Tx, turnId: string): Promise<void> {
  const last = await tx.get(lastCallId, {});
  await tx.run(setFirstCall, { turnId, callId: (last?.id ?? 0) + 1 });
}

const unlinked = query<{ turnId: string }, { inputTokens: number; outputTokens: number; costNano: number }>(({ db, sql, p }) =>
  db
    .selectFrom('modelCall')
    .select([
      sql<number>`coalesce(sum(input_tokens), 0)`.as('inputTokens'),
      sql<number>`coalesce(sum(output_tokens), 0)`.as('outputTokens'),
      sql<number>`coalesce(sum(cost_nano), 0)`.as('costNano'),
    ])
    .where(sql<boolean>`id >= (select first_call_id from durable_turn where turn_id = ${p('turnId')})`)
    .where('turnId', '=', p('turnId'))
    .where('conversationRef', 'is', null),
);

const link = query<{ turnId: string; conversationRef: string }>(({ db, sql, p }) =>
  db
    .updateTable('modelCall')
    .set({ conversationRef: p('conversationRef') })
    .where(sql<boolean>`id >= (select first_call_id from durable_turn where turn_id = ${p('turnId')})`)
    .where('turnId', '=', p('turnId'))
    .where('conversationRef', 'is', null),
);

/** Assigns calls booked before their conversation had a row to it; returns their totals. Part of `commitDurableTurn`. */
export async function linkCalls(tx: Tx, input: { readonly turnId: string; readonly conversationRef: string }) {
  const sums = await tx.get(unlinked, { turnId: input.turnId });
  await tx.run(link, input);
  return sums ?? { inputTokens: 0, outputTokens: 0, costNano: 0 };
}

const dropSteps = query<{ turnId: string }>(({ db, p }) => db.deleteFrom('turnStep').where('turnId', '=', p('turnId')));
const dropIntents = query<{ turnId: string }>(({ db, p }) => db.deleteFrom('turnIntent').where('turnId', '=', p('turnId')));
const dropDurable = query<{ turnId: string }>(({ db, p }) => db.deleteFrom('durableTurn').where('turnId', '=', p('turnId')));

/** Deletes the ledger of an ended turn. Part of `commitDurableTurn`. */
export async function dropLedger(tx: Tx, turnId: string): Promise<void> {
  await tx.run(dropSteps, { turnId });
  await tx.run(dropIntents, { turnId });
  await tx.run(dropDurable, { turnId });
}

const workOfTurn = query<{ turnId: string }, { workId: string }>(({ db, p }) =>
  db.selectFrom('durableTurn').select('workId').where('turnId', '=', p('turnId')),
);

/** Returns the work item of a turn; undefined for turns bound to a request. Part of `abortOpenTurns`. */
export async function workOf(tx: Tx, turnId: string): Promise<string | undefined> {
  return (await tx.get(workOfTurn, { turnId }))?.workId;
}

interface LostUse {
  readonly turnId: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** 1e-9 US dollars; null when a price is unknown. */
  readonly costNano: number | null;
}

const addLost = query<LostUse>(({ db, sql, p }) =>
  db
    .updateTable('turn')
    .set({
      inputTokens: sql<number>`input_tokens + ${p('inputTokens')}`,
      outputTokens: sql<number>`output_tokens + ${p('outputTokens')}`,
      // Turns bound to a request have none before their end; in those of work it is null once a price is unknown.
      costNano: sql<number>`case when exists (select 1 from durable_turn where turn_id = turn.id) then cost_nano else coalesce(cost_nano, 0) end + ${p('costNano')}`,
      reservedNano: null,
    })
    .where('id', '=', p('turnId')),
);

/** Adds what a crashed run used, or may have used, to its turn. Part of `abortOpenTurns`. */
export async function addLostUse(tx: Tx, input: LostUse): Promise<void> {
  await tx.run(addLost, input);
}

const abandon = query<{ turnId: string; atMs: number }>(({ db, p }) =>
  db
    .updateTable('turn')
    .set({ state: 'aborted', finishReason: 'aborted', failureKind: 'aborted', reservedNano: null, endedAtMs: p('atMs') })
    .where('id', '=', p('turnId'))
    .where('endedAtMs', 'is', null),
);

/** Ends the turn of cancelled work; its owner still books its own calls. */
export async function abandonTurn(tx: Tx, input: { readonly turnId: string; readonly atMs: number }): Promise<void> {
  await tx.run(abandon, input);
  await dropLedger(tx, input.turnId);
}
