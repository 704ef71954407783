import { ResultRef } from '@gatehouse/contract';
import { parseJson } from '../../../../kernel/json.ts';
import { countTokens } from '../../../../llm/count-tokens.ts';
import type { FenceText } from '../../../../runtime/fence.ts';
import type { TurnAnnouncement } from '../../../conversations/turns/api.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import { refusedEffects } from '../../../../runtime/refused-effects.ts';
import { keepEnds } from './result.ts';
import type { RunRow } from '../run/row.ts';
import { telemetryOf } from '../status/view.ts';

/** Maximum number of runs announced in one turn. */
export const maxAnnouncedAtOnce = 16;
/** Maximum characters of all results announced in one turn. */
const announcementCharacters = 64_000;
const taskCharacters = 200;

const oneLine = (text: string) => headOf(text.replaceAll(/[\p{C}\p{Z}]+/gu, ' ').trim(), taskCharacters);

function headlineOf(row: RunRow): string {
  const seconds = Math.max(0, Math.round(((row.endedAtMs ?? 0) - (row.startedAtMs ?? row.queuedAtMs)) / 1000));
  const how = row.state === 'completed' ? 'completed' : `failed (${row.errorKind ?? row.endReason ?? 'unknown'})`;
  const { effectsRefused } = telemetryOf(row) ?? {};
  return `Sub-agent ${row.id} ${how}${effectsRefused === undefined ? '' : `, ${refusedEffects(effectsRefused)}`}, after ${seconds} s`;
}

/** Describes a failed run. Its task is the reader's own text, unless a sub-agent requested it: that text would have to be fenced. */
export function failureNote(row: RunRow): string {
  const task = row.parentRunId === null ? ` Its task: ${JSON.stringify(oneLine(row.task))}.` : '';
  return `[${headlineOf(row)}.${task} No result was returned.]`;
}

/** Returns the text of a run as far as it fits; the rest can be read with a tool. */
export function resultOf(row: RunRow, maxTokens: number, capacity: number): { readonly text: string; readonly more: string | undefined } {
  const { summary, resultText, resultRefJson } = row;
  const isWhole = resultText !== null && resultRefJson === null && resultText.length <= capacity && countTokens(resultText) <= maxTokens;
  if (isWhole) return { text: resultText, more: undefined };
  const ref = resultRefJson === null ? undefined : ResultRef().parse(parseJson(resultRefJson));
  const size =
    ref === undefined
      ? `${resultText?.length ?? 0} characters`
      : `${ref.bytes} bytes of ${ref.kind}${ref.rows === undefined ? '' : `, ${ref.rows} rows`}`;
  return { text: keepEnds(summary ?? '', capacity), more: `[Shortened; the whole result is ${size}: read_result gets it with the id ${row.id}.]` };
}

/** Writes the announcement of ended runs for a conversation: our text around theirs, which is fenced. */
export function writeAnnouncement(rows: readonly RunRow[], maxTokens: number, fence: FenceText): TurnAnnouncement {
  const capacity = Math.floor(announcementCharacters / Math.max(1, rows.length));
  const parts = rows.map((row) => {
    if (row.state !== 'completed') return failureNote(row);
    const { text, more } = resultOf(row, maxTokens, capacity);
    const intro = `${headlineOf(row)}. Its task and its report:`;
    const fenced = fence(`Task: ${oneLine(row.task)}\n\n${text === '' ? '(nothing)' : text}`, {
      source: 'sub-agent',
      run: row.id,
      clean: row.tainted === 0,
    });
    return [intro, fenced, ...(more === undefined ? [] : [more])].join('\n');
  });
  return { message: `[Sub-agents that you asked for ended. Nobody wrote this message.]\n\n${parts.join('\n\n')}` };
}

/** Writes the same for a person; includes the cause of a failure for an owner. */
export function inboxText(row: RunRow, { forOwner }: { readonly forOwner: boolean }): string {
  const ref = row.resultRefJson === null ? undefined : ResultRef().parse(parseJson(row.resultRefJson));
  const whole = ref === undefined ? [] : [`The whole result (${ref.bytes} bytes, ${ref.kind}): ${ref.ref}`];
  const said = row.state === 'completed' ? [row.summary ?? '(nothing)'] : [];
  const cause = forOwner && row.cause !== null ? [`Cause: ${row.cause}`] : [];
  const next = row.state === 'failed' ? [`Next step: inspect it with \`gatehouse runs show ${row.id}\`, then start it again.`] : [];
  return [`${headlineOf(row)}: ${oneLine(row.task)}`, ...said, ...whole, ...cause, ...next].join('\n\n');
}
