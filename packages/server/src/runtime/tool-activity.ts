import type { EventPayload } from '@gatehouse/contract';
import type { Clock } from '../kernel/clock.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import type { ToolCall } from '../llm/model.ts';
import type { TurnInput } from './turn.ts';

export type ActivityOutcome = EventPayload<'tool:finished'>['outcome'];

/** Announces a call; the returned function announces its end. Undefined while nobody listens. */
export type ToolActivity = (input: TurnInput, call: ToolCall, description: string) => ((outcome: ActivityOutcome) => void) | undefined;

/** Emits the events `tool:started` and `tool:finished`, only while somebody listens. */
export function createToolActivity({ bus, clock }: { readonly bus: EventBus; readonly clock: Clock }): ToolActivity {
  return (input, call, description) => {
    if (!bus.wants('tool:started') && !bus.wants('tool:finished')) return undefined;
    const { agentId, conversationRef, sessionKey, turnId, principalId } = input;
    const about = { agentId, conversationRef, sessionKey, turnId, callId: call.id, toolName: call.name, description };
    const begun = clock.monotonic();
    bus.emit('tool:started', { ...about, timestamp: clock.now() }, principalId);
    return (outcome) => {
      const durationMs = Math.max(0, Math.round(clock.monotonic() - begun));
      bus.emit('tool:finished', { ...about, durationMs, outcome, timestamp: clock.now() }, principalId);
    };
  };
}
