import type { TraceRecord } from '@gatehouse/contract';
import type { Selectable } from 'kysely';
import type { Tables } from '../../../kernel/db/tables.ts';
import { parseJson } from '../../../kernel/json.ts';

export type TraceRow = Selectable<Tables['traceRecord']>;
type TraceDetail = Pick<TraceRecord, 'error' | 'refs' | 'facts' | 'steps' | 'droppedSteps'>;

/** A stored record with its steps. */
export interface StoredRecord extends Omit<TraceRow, 'detailJson'>, TraceDetail {}

export type StoredStep = TraceRecord['steps'][number];
type Fact = string | number | boolean | undefined;

export const recordColumns = [
  'seq',
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

/** Only the recorder of traces writes `detail_json`. */
export function openRow({ detailJson, ...row }: TraceRow): StoredRecord {
  return { ...row, ...(parseJson(detailJson) as TraceDetail) };
}

/** Returns a fact that is a number that counts something; 0 otherwise. */
export function countFact(fact: Fact): number {
  return typeof fact === 'number' && fact > 0 ? Math.round(fact) : 0;
}

export function textFact(fact: Fact): string | undefined {
  return typeof fact === 'string' && fact !== '' ? fact : undefined;
}

/** Whether a record is about speech or a transcription. */
export function isVoice({ kind, facts }: Pick<StoredRecord, 'kind' | 'facts'>): boolean {
  return kind === 'media' && (facts['operation'] === 'speech' || facts['operation'] === 'transcription');
}

/** Id of the turn of a record, without the number of its part. */
export function turnIdOf({ id }: Pick<TraceRow, 'id'>): string {
  return id.replace(/\.\d+$/, '');
}

export function byAge(a: Pick<TraceRow, 'startedAtMs' | 'seq'>, b: Pick<TraceRow, 'startedAtMs' | 'seq'>): number {
  return a.startedAtMs - b.startedAtMs || a.seq - b.seq;
}

/** The root run that a turn belongs to, or that it starts when it delegates something. */
export function rootRunOf(record: Pick<TraceRow, 'id' | 'rootRunId'>): string {
  return record.rootRunId ?? `${ownRoot}${turnIdOf(record)}`;
}

const ownRoot = 'root-turn-';

/** Id of the turn that starts this root run; undefined for other roots. */
export function starterOf(rootRunId: string): string | undefined {
  return rootRunId.startsWith(ownRoot) ? rootRunId.slice(ownRoot.length) : undefined;
}
