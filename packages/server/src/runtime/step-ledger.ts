import type { ModelMessage, ToolCall } from '../llm/model.ts';
import type { ApprovalWait, LedgerStep, TurnLedger } from './turn.ts';

/** The ledger of a turn as the calls of one step see it. */
export interface StepLedger {
  /** Returns the result of a call that ran before a crash. */
  resultOf(call: ToolCall): ModelMessage | undefined;
  begin(call: ToolCall): Promise<void>;
  /** The first call waiting for a person; nothing after it is called. */
  waitsFor: ApprovalWait | undefined;
  /** Calls that were not made because of that. */
  readonly unmade: Set<string>;
  /** Has no effect for a call that did not start. */
  end(call: ToolCall, result: ModelMessage): Promise<void>;
}

export function stepLedger(ledger: TurnLedger, step: LedgerStep, results: readonly ModelMessage[]): StepLedger {
  const known = new Map(results.flatMap((message) => (message.role === 'tool' ? [[message.toolCallId, message] as const] : [])));
  const begun = new Set<string>();
  return {
    waitsFor: undefined,
    unmade: new Set(),
    resultOf: ({ id }) => known.get(id),
    async begin(call) {
      await ledger.begin(step, call);
      begun.add(call.id);
    },
    async end(call, result) {
      if (begun.delete(call.id)) await ledger.end(call, result);
    },
  };
}
