import type { TracedError, TracedText, TraceRecord } from '@gatehouse/contract';
import type { BulkColumns } from '../../../kernel/db/bulk-rows.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { EndedRecord } from './api.ts';
import type { TraceRow } from './tables.ts';

/** What a row keeps as JSON: read as a whole, never searched. */
type TraceDetail = Pick<TraceRecord, 'error' | 'refs' | 'facts' | 'steps' | 'droppedSteps'>;

/** Columns of a record, in the order of the values of a line, with their types on PostgreSQL. */
export const columnTypes: BulkColumns<TraceRow> = {
  id: 'text',
  kind: 'text',
  traceId: 'text',
  rootRunId: 'text',
  parentId: 'text',
  conversationRef: 'text',
  sessionKey: 'text',
  agentId: 'text',
  principalId: 'text',
  origin: 'text',
  messageId: 'text',
  channelType: 'text',
  channelId: 'text',
  startedAtMs: 'bigint',
  endedAtMs: 'bigint',
  outcome: 'text',
  endReason: 'text',
  errorKind: 'text',
  model: 'text',
  modelCalls: 'bigint',
  toolCalls: 'bigint',
  toolErrors: 'bigint',
  inputTokens: 'bigint',
  outputTokens: 'bigint',
  cacheReadTokens: 'bigint',
  cacheWriteTokens: 'bigint',
  costNano: 'bigint',
  synthetic: 'bigint',
  detailJson: 'text',
};

export const columns = Object.keys(columnTypes) as (keyof TraceRow)[];

const searched = columns.slice(0, -1);

/** The values of a line, in the order of `columns`: an array, because an object for each record would cost a tenth of what a small turn pays for its trace. */
const searchedValues = (record: EndedRecord): readonly (string | number | null)[] => [
  record.id,
  record.kind,
  record.traceId,
  record.rootRunId ?? null,
  record.parentId ?? null,
  record.conversationRef ?? null,
  record.sessionKey ?? null,
  record.agentId ?? null,
  record.principalId,
  record.origin ?? null,
  record.messageId ?? null,
  record.channelType ?? null,
  record.channelId ?? null,
  record.startedAtMs,
  record.endedAtMs,
  record.outcome,
  record.endReason,
  record.error?.kind ?? null,
  record.model,
  record.modelCalls,
  record.toolCalls,
  record.toolErrors,
  record.tokens.in,
  record.tokens.out,
  record.tokens.cached,
  record.tokens.cacheWritten,
  record.costNano,
  record.synthetic ? 1 : 0,
];

function detailOf({ error, refs, facts, steps, droppedSteps }: EndedRecord): string {
  const detail: TraceDetail = { error, refs, facts, steps, droppedSteps };
  return JSON.stringify(detail);
}

function rowOf(values: readonly unknown[], detailJson: string | undefined): TraceRow {
  const row: Record<string, unknown> = {};
  for (const [column, name] of searched.entries()) row[name] = values[column];
  row['detailJson'] = detailJson;
  // Only `searchedValues` and `detailOf` make these values.
  return row as unknown as TraceRow;
}

export const toRow = (record: EndedRecord): TraceRow => rowOf(searchedValues(record), detailOf(record));

/** Returns a record as two lines: what is searched, as a list, and the detail, which becomes a column without being parsed. JSON has no line breaks. */
export const toLines = (record: EndedRecord): string => `${JSON.stringify(searchedValues(record))}\n${detailOf(record)}`;

/** Returns the rows of the lines of a batch. Only the recorder writes these. */
export function fromLines(records: string): TraceRow[] {
  const rows: TraceRow[] = [];
  const lines = records.split('\n');
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    // One line with the whole record: a batch from before an update.
    if (line.startsWith('{')) rows.push(toRow(parseJson(line) as EndedRecord));
    else rows.push(rowOf(parseJson(line) as readonly unknown[], lines[(at += 1)]));
  }
  return rows;
}

export function fromRow(row: TraceRow): EndedRecord {
  // Only `toRow` writes this column.
  const detail = parseJson(row.detailJson) as TraceDetail;
  const { rootRunId, parentId, conversationRef, sessionKey, agentId, origin, messageId, channelType, channelId } = row;
  return {
    id: row.id,
    kind: row.kind,
    traceId: row.traceId,
    ...(rootRunId !== null && { rootRunId }),
    ...(parentId !== null && { parentId }),
    ...(conversationRef !== null && { conversationRef }),
    ...(sessionKey !== null && { sessionKey }),
    ...(agentId !== null && { agentId }),
    principalId: row.principalId,
    ...(origin !== null && { origin }),
    ...(messageId !== null && { messageId }),
    ...(channelType !== null && { channelType }),
    ...(channelId !== null && { channelId }),
    startedAtMs: row.startedAtMs,
    endedAtMs: row.endedAtMs,
    outcome: row.outcome,
    endReason: row.endReason,
    model: row.model,
    modelCalls: row.modelCalls,
    toolCalls: row.toolCalls,
    toolErrors: row.toolErrors,
    tokens: { in: row.inputTokens, out: row.outputTokens, cached: row.cacheReadTokens, cacheWritten: row.cacheWriteTokens },
    costNano: row.costNano,
    synthetic: row.synthetic === 1,
    ...detail,
  };
}

/** Returns the detail of a row without what texts, results and errors said; digests and sizes stay. */
export function withoutTexts(detailJson: string): string {
  if (!detailJson.includes('"preview":') && !detailJson.includes('"text":')) return detailJson;
  const { error, steps, ...rest } = parseJson(detailJson) as TraceDetail;
  const bare: TraceDetail = {
    ...rest,
    error: error === null ? null : withoutSentence(error),
    steps: steps.map(({ error: failure, input, output, ...step }) => ({
      ...step,
      ...(failure !== undefined && { error: withoutSentence(failure) }),
      ...(input !== undefined && { input: withoutPreview(input) }),
      ...(output !== undefined && { output: withoutPreview(output) }),
    })),
  };
  return JSON.stringify(bare);
}

const withoutSentence = ({ text: _text, ...error }: TracedError): TracedError => error;
const withoutPreview = ({ preview: _preview, ...text }: TracedText): TracedText => text;
