import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';

/** Returns the agents whose records a caller may see; null: all. Diagnosis spans all conversations, so agents never may. */
export function agentsOf(call: CallContext): readonly string[] | null {
  if (call.agentCaller !== undefined) throw new AppError('denied', 'Traces of all conversations are for administrators, not for agents');
  return call.identity.agents ?? null;
}
