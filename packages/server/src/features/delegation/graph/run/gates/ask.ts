import type { Clock } from '../../../../../kernel/clock.ts';
import { sleep } from '../../../../../kernel/timers.ts';
import type { InboxMessage } from '../../../../unattended/inbox/api.ts';
import type { LiveNode } from '../../nodes/live-node.ts';
import type { NodeEnd, NodeHost } from '../../nodes/run-node.ts';
import type { NodeRow } from '../../rows.ts';

export interface AskDeps extends Pick<NodeHost, 'halted' | 'expired' | 'cancelled' | 'save' | 'announce' | 'phase'> {
  readonly clock: Clock;
  /** Writes the question for people. */
  readonly question: (node: LiveNode, kind: 'ask' | 'reminder') => InboxMessage;
  /** Expires a question unless it was answered; returns the valid answer. */
  readonly expire: (node: LiveNode) => Promise<Pick<NodeRow, 'answer' | 'answerText'>>;
}

/** Asks a person, reminds once at half time, and waits for the answer, even when an earlier process asked. */
export async function askPerson(node: LiveNode, deps: AskDeps): Promise<NodeEnd> {
  const { clock } = deps;
  if (node.state !== 'running') {
    const atMs = clock.now();
    Object.assign(node, { state: 'running', startedAtMs: atMs, deadlineMs: atMs + (node.spec.timeoutMs ?? 0), answer: null, answerText: null });
    await deps.save([node], [deps.question(node, 'ask')]);
    deps.phase(node, 'initialized');
  }
  if (node.answer === null) await waitForAnswer(node, deps);
  if (node.answer === null) Object.assign(node, await deps.expire(node));
  if (node.answer === 'approved') return { state: 'completed', output: `Approved: ${node.answerText ?? ''}` };
  if (node.answer === 'denied') return { state: 'failed', error: `Refused: ${node.answerText ?? ''}` };
  if (deps.cancelled.aborted && !deps.expired.aborted) return { state: 'skipped', error: 'The graph was cancelled while it waited for an answer' };
  return { state: 'failed', error: 'timeout: nobody answered in time' };
}

async function waitForAnswer(node: LiveNode, deps: AskDeps): Promise<void> {
  const { clock, halted, expired, cancelled } = deps;
  const { startedAtMs, deadlineMs } = node;
  if (startedAtMs === null || deadlineMs === null) return;
  const answered = new AbortController();
  const over = AbortSignal.any([halted, expired, cancelled, answered.signal]);
  node.progress = 'is waiting for an answer';
  node.answered = () => answered.abort();
  deps.announce(node);
  const nowMs = clock.now();
  const endsAtMs = clock.monotonic() + deadlineMs - nowMs;
  const remindAtMs = startedAtMs + (deadlineMs - startedAtMs) / 2;
  try {
    await sleep(clock, Math.max(0, remindAtMs - nowMs), over);
    // A reminder that was sent before is recognized by its key and not sent again.
    if (!over.aborted && clock.monotonic() < endsAtMs) await deps.save([node], [deps.question(node, 'reminder')]).catch(() => answered.abort());
    const leftMs = endsAtMs - clock.monotonic();
    if (leftMs > 0) await sleep(clock, leftMs, over);
  } finally {
    node.answered = undefined;
  }
  halted.throwIfAborted();
}
