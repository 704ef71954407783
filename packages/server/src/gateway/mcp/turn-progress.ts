import type { Clock } from '../../kernel/clock.ts';
import type { EventBus } from '../../kernel/event-bus.ts';
import type { TurnSink } from '../../runtime/turn.ts';
import type { McpProgress } from './offer.ts';

/** Minimum interval between two reports. */
const paceMs = 500;
/** Interval of reports while nothing happens: clients give up on a call after a minute of silence. */
const silenceMs = 10_000;

/** Reports the progress of a turn, by the text that it writes and the tools that it calls, until disposed. */
export function reportTurn({
  conversationRef,
  bus,
  clock,
  onProgress,
}: {
  readonly conversationRef: string;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly onProgress: (progress: McpProgress) => void;
}): Disposable & { readonly sink: TurnSink } {
  const startedMs = clock.monotonic();
  let reports = 0;
  let characters = 0;
  let calls = 0;
  let running: string | undefined;
  let lastMs = startedMs;
  let cancel = clock.after(silenceMs, report);

  function report(): void {
    cancel();
    lastMs = clock.monotonic();
    reports += 1;
    const seconds = Math.round((lastMs - startedMs) / 1000);
    const parts = [running, `${calls} tool call${calls === 1 ? '' : 's'}`, `${characters} characters`, `${seconds} s`];
    onProgress({ progress: reports, message: parts.filter((part) => part !== undefined).join(', ') });
    cancel = clock.after(silenceMs, report);
  }

  function changed(): void {
    const waitMs = lastMs + paceMs - clock.monotonic();
    if (reports === 0 || waitMs <= 0) return report();
    cancel();
    cancel = clock.after(waitMs, report);
  }

  const unlisten = bus.listen(['tool:started', 'tool:finished'], ({ kind, payload }) => {
    if (!('callId' in payload) || payload.conversationRef !== conversationRef) return;
    if (kind === 'tool:started') {
      calls += 1;
      running = `calling ${payload.toolName}`;
    } else running = undefined;
    changed();
  });

  return {
    sink: {
      text(fragment) {
        characters += fragment.length;
      },
      flush() {
        changed();
        return true;
      },
      drained: () => Promise.resolve(),
    },
    [Symbol.dispose]() {
      unlisten();
      cancel();
    },
  };
}
