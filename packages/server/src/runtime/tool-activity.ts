import type { EventPayload } from '@gatehouse/contract';
import type { Clock } from '../kernel/clock.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import type { ToolCall } from '../llm/model.ts';
import type { TurnInput } from './turn.ts';

export type ActivityOutcome = EventPayload<'tool:finished'>['outcome'];

/** A call that was announced. */
export interface AnnouncedCall {
  /** Announces output while the call runs; absent when nobody wants it. */
  readonly output?: (text: string) => void;
  readonly finish: (outcome: ActivityOutcome, result?: string) => void;
}

/** Announces a call. Undefined while nobody listens. */
export type ToolActivity = (input: TurnInput, call: ToolCall, description: string) => AnnouncedCall | undefined;

const maxResultLength = 2000;
/** Output of this time is one event, with the newest part of it. */
const outputMs = 100;
const maxOutputLength = 4000;

/** Emits the events of tool calls, only while somebody listens. `hide` removes secrets from what is shown. */
export function createToolActivity({
  bus,
  clock,
  hide,
}: {
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly hide: (text: string) => string;
}): ToolActivity {
  return (input, call, description) => {
    if (!bus.wants('tool:started') && !bus.wants('tool:finished')) return undefined;
    const { agentId, conversationRef, sessionKey, turnId, principalId } = input;
    const about = { agentId, conversationRef, sessionKey, turnId, callId: call.id, toolName: call.name, description };
    const begun = clock.monotonic();
    let pending = '';
    let cancel: (() => void) | undefined;
    const flush = (part: string) => {
      if (part !== '') bus.emit('tool:output', { ...about, delta: hide(part).slice(-maxOutputLength), timestamp: clock.now() }, principalId);
    };
    const output = (text: string) => {
      pending = (pending + text).slice(-4 * maxOutputLength);
      cancel ??= clock.after(outputMs, () => {
        cancel = undefined;
        // A secret must not be cut in two: it would not be recognized.
        const end = pending.lastIndexOf('\n') + 1;
        flush(pending.slice(0, end));
        pending = pending.slice(end);
      });
    };
    bus.emit('tool:started', { ...about, timestamp: clock.now() }, principalId);
    return {
      ...(bus.wants('tool:output') && { output }),
      finish(outcome, result) {
        cancel?.();
        const durationMs = Math.max(0, Math.round(clock.monotonic() - begun));
        const shown = result === undefined ? {} : { result: hide(result).slice(0, maxResultLength).toWellFormed() };
        bus.emit('tool:finished', { ...about, durationMs, outcome, ...shown, timestamp: clock.now() }, principalId);
      },
    };
  };
}
