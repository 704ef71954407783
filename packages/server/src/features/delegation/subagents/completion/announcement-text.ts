import { ResultRef } from '@gatehouse/contract';
import { parseJson } from '../../../../kernel/json.ts';
import { countTokens } from '../../../../llm/count-tokens.ts';
import type { FenceLabel } from '../../../../runtime/fence.ts';
import type { TurnNews } from '../../../conversations/turns/api.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import { refusedEffects } from '../../../../runtime/refused-effects.ts';
import { keepEnds } from './result.ts';
import type { RunRow } from '../run/row.ts';
import { telemetryOf } from '../status/view.ts';

/** Runs that one turn is told of. */
export const newsAtOnce = 16;
/** Characters of all results that one turn is told. */
const newsCharacters = 64_000;
const taskCharacters = 200;

const oneLine = (text: string) => headOf(text.replaceAll(/[\p{C}\p{Z}]+/gu, ' ').trim(), taskCharacters);

function headlineOf(row: RunRow): string {
  const seconds = Math.max(0, Math.round(((row.endedAtMs ?? 0) - (row.startedAtMs ?? row.queuedAtMs)) / 1000));
  const how = row.state === 'completed' ? 'completed' : `failed (${row.errorKind ?? row.endReason ?? 'unknown'})`;
  const { effectsRefused } = telemetryOf(row) ?? {};
  return `Sub-agent ${row.id} ${how}${effectsRefused === undefined ? '' : `, ${refusedEffects(effectsRefused)}`}, after ${seconds} s`;
}

/** The end of a run that did not do its work. Its task is the reader's own words, unless a sub-agent asked for it: those would be fenced. */
export function failureNote(row: RunRow): string {
  const task = row.parentRunId === null ? ` Its task: ${JSON.stringify(oneLine(row.task))}.` : '';
  return `[${headlineOf(row)}.${task} No result came.]`;
}

/** What a run said, as far as there is room; the rest can be read. */
export function resultOf(row: RunRow, maxTokens: number, room: number): { readonly text: string; readonly more: string | undefined } {
  const { summary, resultText, resultRefJson } = row;
  const isWhole = resultText !== null && resultRefJson === null && resultText.length <= room && countTokens(resultText) <= maxTokens;
  if (isWhole) return { text: resultText, more: undefined };
  const ref = resultRefJson === null ? undefined : ResultRef.parse(parseJson(resultRefJson));
  const size =
    ref === undefined
      ? `${resultText?.length ?? 0} characters`
      : `${ref.bytes} bytes of ${ref.kind}${ref.rows === undefined ? '' : `, ${ref.rows} rows`}`;
  return { text: keepEnds(summary ?? '', room), more: `[Shortened; the whole result is ${size}: read_result gets it with the id ${row.id}.]` };
}

/** What a conversation is told of runs that ended: our words around what they said, which is fenced. */
export function writeNews(rows: readonly RunRow[], maxTokens: number, fence: (text: string, label: FenceLabel) => string): TurnNews {
  const room = Math.floor(newsCharacters / Math.max(1, rows.length));
  const parts = rows.map((row) => {
    if (row.state !== 'completed') return failureNote(row);
    const { text, more } = resultOf(row, maxTokens, room);
    const told = `${headlineOf(row)}. What it was asked and what it reports:`;
    const fenced = fence(`Task: ${oneLine(row.task)}\n\n${text === '' ? '(nothing)' : text}`, {
      source: 'sub-agent',
      run: row.id,
      clean: row.tainted === 0,
    });
    return [told, fenced, ...(more === undefined ? [] : [more])].join('\n');
  });
  return { message: `[Sub-agents that you asked for ended. Nobody wrote this message.]\n\n${parts.join('\n\n')}` };
}

/** The same for a person; `cause` says why an owner's run failed. */
export function inboxText(row: RunRow, { forOwner }: { readonly forOwner: boolean }): string {
  const ref = row.resultRefJson === null ? undefined : ResultRef.parse(parseJson(row.resultRefJson));
  const whole = ref === undefined ? [] : [`The whole result (${ref.bytes} bytes, ${ref.kind}): ${ref.ref}`];
  const said = row.state === 'completed' ? [row.summary ?? '(nothing)'] : [];
  const cause = forOwner && row.cause !== null ? [`Cause: ${row.cause}`] : [];
  const next = row.state === 'failed' ? [`Next step: look at it with \`gatehouse runs show ${row.id}\`, then start it again.`] : [];
  return [`${headlineOf(row)}: ${oneLine(row.task)}`, ...said, ...whole, ...cause, ...next].join('\n\n');
}
