import type { TaskRow } from './store.ts';

/** Stored as the result of a task whose process died. */
export const unknownEnd = 'The daemon stopped while this was running. It is not known how far it got: check its effects before you start it again.';

type EndedTask = Pick<TaskRow, 'id' | 'toolName' | 'description' | 'outcome' | 'content' | 'startedAtMs' | 'endedAtMs'>;

/** Formats the message that brings a result into its conversation; `wasInterrupted`: an earlier turn received it and died. */
export function announcementOf(task: EndedTask, wasInterrupted: boolean): string {
  const { id, toolName, description, outcome, content, startedAtMs, endedAtMs } = task;
  const ran = endedAtMs === null || outcome === 'unknown' ? '' : `, after ${Math.max(0, Math.round((endedAtMs - startedAtMs) / 1000))} s`;
  const again = wasInterrupted
    ? '\n[An earlier turn started to act on this and was interrupted when the daemon stopped: check what it did before you repeat it.]'
    : '';
  return `[Background task ${id} ended: ${outcome ?? 'unknown'}${ran}. It was a call of "${toolName}": ${JSON.stringify(description)}. This message is automatic; the result follows.]${again}\n${content ?? ''}`;
}
