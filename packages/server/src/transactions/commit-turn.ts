import { bookCalls, rootOfTurn } from './book-calls.ts';
import { addMessages } from '../features/conversations/sessions/store.ts';
import {
  isCharged,
  recordOwnTurn,
  recordOwnTurns,
  takenOver,
  type TurnCommit,
  type TurnCommitted,
  type TurnOpening,
} from '../features/conversations/turns/store.ts';
import { operation, type OperationCall, type OperationResult, type Tx } from '../kernel/db/operation.ts';

/** Writes the row before the first tool of class `once`, so that a crash leaves a trace (decisions §7). */
export const openTurn = operation(
  'turns.open',
  async (tx, input: TurnOpening): Promise<void> => {
    if (!(await recordOwnTurn(tx, input.turn, [], null))) throw takenOver();
    await callAlongside(tx, input.alongside);
  },
  { orderKey: ofConversation },
);

/** The only transaction of a turn bound to a request: messages, usage, cost, terminal row and its caller's operations, all or none (decisions §7). */
export const commitTurn = operation(
  'turns.commit',
  async (tx, input: TurnCommit): Promise<TurnCommitted> => {
    const { turn, calls } = input;
    if (!(await recordOwnTurn(tx, turn, calls, input.conversation === null ? null : turn.conversationRef))) {
      if (!(await isCharged(tx, turn.id))) await bookCalls(tx, { ...turn, rootRunId: rootOfTurn(turn.id) }, calls);
      return { created: false, isRefused: true };
    }
    await callAlongside(tx, input.alongside);
    return input.conversation === null ? { created: false } : addMessages(tx, input.conversation);
  },
  {
    isolation: 'read committed',
    orderKey: ofConversation,
    bulk: {
      accepts: ({ conversation, alongside = [] }) => conversation === null && alongside.length === 0,
      async run(tx, inputs): Promise<readonly TurnCommitted[]> {
        await recordOwnTurns(tx, inputs);
        return inputs.map(() => ({ created: false }));
      },
    },
  },
);

/** Turns of a conversation keep their order. */
function ofConversation({ turn }: TurnOpening): string {
  return turn.conversationRef === '' ? turn.id : turn.conversationRef;
}

/** Runs the operations of a turn's caller in order, and returns what they returned. */
export async function callAlongside(tx: Tx, calls: readonly OperationCall[] = []): Promise<readonly OperationResult[]> {
  const outputs: OperationResult[] = [];
  for (const call of calls) outputs.push({ operation: call.operation, output: await tx.call(call) });
  return outputs;
}
