import type { TaskRow } from './store.ts';

/** What stands in place of the result of a task whose process died. */
export const unknownEnd = 'The daemon stopped while this ran. Nobody knows how far it came: look at what it left behind before you start it again.';

type Told = Pick<TaskRow, 'id' | 'toolName' | 'description' | 'outcome' | 'content' | 'startedAtMs' | 'endedAtMs'>;

/** The message by which a result comes into its conversation; `wasCutOff`: an earlier turn was told of it and died. */
export function newsOf(task: Told, wasCutOff: boolean): string {
  const { id, toolName, description, outcome, content, startedAtMs, endedAtMs } = task;
  const ran = endedAtMs === null || outcome === 'unknown' ? '' : `, after ${Math.max(0, Math.round((endedAtMs - startedAtMs) / 1000))} s`;
  const again = wasCutOff
    ? '\n[An earlier turn began to work on this and was cut off when the daemon stopped: look at what it did before you do it again.]'
    : '';
  return `[Background task ${id} ended: ${outcome ?? 'unknown'}${ran}. It was a call of "${toolName}": ${JSON.stringify(description)}. Nobody wrote this message; its result follows.]${again}\n${content ?? ''}`;
}
