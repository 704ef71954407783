import type { TracedError, TracedText, TraceRecord } from '@gatehouse/contract';
import { parseJson } from '../../../kernel/json.ts';
import type { EndedRecord } from './api.ts';
import type { TraceRow } from './tables.ts';

/** What a row keeps as JSON: read as a whole, never searched. */
type TraceDetail = Pick<TraceRecord, 'error' | 'refs' | 'facts' | 'steps' | 'droppedSteps'>;

export function toRow(record: EndedRecord): TraceRow {
  const { error, refs, facts, steps, droppedSteps, tokens } = record;
  const detail: TraceDetail = { error, refs, facts, steps, droppedSteps };
  return {
    id: record.id,
    kind: record.kind,
    traceId: record.traceId,
    rootRunId: record.rootRunId ?? null,
    parentId: record.parentId ?? null,
    conversationRef: record.conversationRef ?? null,
    sessionKey: record.sessionKey ?? null,
    agentId: record.agentId ?? null,
    principalId: record.principalId,
    origin: record.origin ?? null,
    messageId: record.messageId ?? null,
    channelType: record.channelType ?? null,
    channelId: record.channelId ?? null,
    startedAtMs: record.startedAtMs,
    endedAtMs: record.endedAtMs,
    outcome: record.outcome,
    endReason: record.endReason,
    errorKind: error?.kind ?? null,
    model: record.model,
    modelCalls: record.modelCalls,
    toolCalls: record.toolCalls,
    toolErrors: record.toolErrors,
    inputTokens: tokens.in,
    outputTokens: tokens.out,
    cacheReadTokens: tokens.cached,
    cacheWriteTokens: tokens.cacheWritten,
    costNano: record.costNano,
    synthetic: record.synthetic ? 1 : 0,
    detailJson: JSON.stringify(detail),
  };
}

/** Columns of a record, in the order of the values of a line. */
export const columns = [
  'id',
  'kind',
  'traceId',
  'rootRunId',
  'parentId',
  'conversationRef',
  'sessionKey',
  'agentId',
  'principalId',
  'origin',
  'messageId',
  'channelType',
  'channelId',
  'startedAtMs',
  'endedAtMs',
  'outcome',
  'endReason',
  'errorKind',
  'model',
  'modelCalls',
  'toolCalls',
  'toolErrors',
  'inputTokens',
  'outputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'costNano',
  'synthetic',
  'detailJson',
] as const satisfies readonly (keyof TraceRow)[];

const searched = columns.slice(0, -1) as readonly Exclude<(typeof columns)[number], 'detailJson'>[];

/** Returns a record as two lines: what is searched, as a list, and the detail, which becomes a column without being parsed. JSON has no line breaks. */
export function toLines(record: EndedRecord): string {
  const { detailJson, ...row } = toRow(record);
  return `${JSON.stringify(searched.map((name) => row[name]))}\n${detailJson}`;
}

/** Returns the rows of the lines of a batch. Only the recorder writes these. */
export function fromLines(records: string): TraceRow[] {
  const rows: TraceRow[] = [];
  const lines = records.split('\n');
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    // One line with the whole record: a batch from before an update.
    if (line.startsWith('{')) rows.push(toRow(parseJson(line) as EndedRecord));
    else {
      const values = parseJson(line) as readonly unknown[];
      at += 1;
      rows.push(Object.fromEntries([...searched.map((name, column) => [name, values[column]]), ['detailJson', lines[at]]]) as TraceRow);
    }
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
