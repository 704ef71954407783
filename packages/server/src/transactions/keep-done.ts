import { doneBefore } from '../features/conversations/turns/durable/interrupted-turn.ts';
import { type InterruptedTurn, linkCalls } from '../features/conversations/turns/durable/ledger-store.ts';
import { addMessages, growUsage } from '../features/conversations/sessions/store.ts';
import type { Tx } from '../kernel/db/operation.ts';
import type { ModelMessage } from '../llm/model.ts';
import { encodeReasoning, encodeToolColumn } from '../runtime/stored-message.ts';

/** Stores in its conversation what a turn did before it was ended from outside, with a note. Nothing of it may run again. */
export async function keepDone(
  tx: Tx,
  left: InterruptedTurn & { readonly question: string },
  { errorKind, atMs }: { readonly errorKind: string; readonly atMs: number },
): Promise<void> {
  const { target, totals, startedAtMs, turnId, question, isTainted } = left;
  const { ref } = target;
  const done = doneBefore(left);
  // Its results say what became of each call of an interrupted step.
  const isWhole = left.steps.every(({ finished }) => finished);
  const what =
    done.length === 0 ? 'Nothing was done.' : isWhole ? 'What is above was done.' : 'What is above was done, unless its result says otherwise.';
  const note: ModelMessage = { role: 'assistant', content: `[Ended before it was done: ${errorKind}. ${what}]` };
  const all: readonly ModelMessage[] = [{ role: 'user', content: question }, ...done, note];
  await addMessages(tx, {
    ...target,
    turnId,
    steps: totals.steps,
    toolCalls: done.filter(({ role }) => role === 'tool').length,
    // Calls charged so far are linked below.
    inputTokens: 0,
    outputTokens: 0,
    costNano: 0,
    messages: all.map((each, index) => ({
      role: each.role,
      content: each.content,
      toolJson: encodeToolColumn(each),
      attachmentsJson: null,
      reasoningJson: encodeReasoning(each),
      createdAtMs: index === 0 ? startedAtMs : atMs,
    })),
    atMs,
    tainted: isTainted,
  });
  await growUsage(tx, { ref, ...(await linkCalls(tx, { turnId, conversationRef: ref })) });
}
