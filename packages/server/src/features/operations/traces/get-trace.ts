import type { TraceRecord, TraceStep } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { type CallContext, isAdmin } from '../../../kernel/call-context.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { fromRow } from './record-row.ts';
import { findRecords, maxFound } from './store.ts';

export interface GetTraceDeps {
  readonly db: Db;
  /** Stores what has ended and is not stored yet. */
  readonly flush: () => Promise<unknown>;
  /** Records of turns that run now. */
  readonly running: () => readonly TraceRecord[];
  /** Returns what people think of the answers of turns of a conversation. */
  readonly feedbackOf: (
    conversationRef: string,
    turnIds: readonly string[],
  ) => Promise<readonly { readonly turnId: string; readonly rating: string }[]>;
}

/** Handler of `obs.trace.get`. */
export function createGetTrace({ db, flush, running, feedbackOf }: GetTraceDeps): HandlersOf<'obs.trace.get'> {
  return {
    async 'obs.trace.get'({ ref }, call) {
      await flush();
      const { rows, roots } = await db.read(findRecords, { ref });
      const ended = rows.map(fromRow);
      const stored = new Set(ended.map(({ id }) => id));
      const named = new Set([ref, ...roots, ...ended.map(({ traceId }) => traceId)]);
      const live = running().filter(
        ({ id, traceId, rootRunId, conversationRef }) =>
          !stored.has(id) && [id, traceId, rootRunId, `root-turn-${id}`, conversationRef].some((one) => one !== undefined && named.has(one)),
      );
      const visible = await withFeedback(
        [...ended, ...live].filter((record) => maySee(record, call)),
        feedbackOf,
      );
      if (visible.length === 0) throw new AppError('not_found', 'No trace has this reference', { param: 'ref' });
      const forOwner = isAdmin(call);
      return { records: forOwner ? visible : visible.map(withoutSentences), truncated: rows.length >= maxFound };
    },
  };
}

/** Adds the mark that people gave an answer; it comes later than the record. */
async function withFeedback(records: readonly TraceRecord[], feedbackOf: GetTraceDeps['feedbackOf']): Promise<TraceRecord[]> {
  const turnOf = ({ id }: TraceRecord) => id.replace(/\.\d+$/, '');
  const ratings = new Map<string, string>();
  for (const [ref, own] of Map.groupBy(records, ({ kind, conversationRef }) => (kind === 'turn' ? conversationRef : undefined)))
    if (ref !== undefined) for (const { turnId, rating } of await feedbackOf(ref, own.map(turnOf))) ratings.set(turnId, rating);
  return records.map((record) => {
    const rating = ratings.get(turnOf(record));
    return rating === undefined ? record : { ...record, facts: { ...record.facts, feedback: rating } };
  });
}

function maySee({ principalId, agentId }: TraceRecord, call: CallContext): boolean {
  const { agents } = call.identity;
  if (agents !== undefined && (agentId === undefined || !agents.includes(agentId))) return false;
  return isAdmin(call) || principalId === call.identity.principalId;
}

/** Removes what a model provider said: it may concern the account. */
function withoutSentences(record: TraceRecord): TraceRecord {
  return { ...record, error: withoutText(record.error), steps: record.steps.map(withoutSentence) };
}

function withoutSentence(step: TraceStep): TraceStep {
  return step.error === undefined || step.kind === 'tool' ? step : { ...step, error: withoutText(step.error) };
}

function withoutText<E extends TraceRecord['error'] | TraceStep['error']>(error: E): E {
  if (error === null || error === undefined) return error;
  const { text: _text, ...rest } = error;
  return rest as E;
}
