import { setTimeout as pause } from 'node:timers/promises';
import { type Client, GatehouseError, RateLimitError } from '@gatehouse/client';
import type { Step } from './plan.ts';

export interface StepResult {
  readonly step: Step;
  /** Why it was not taken. */
  readonly failure?: string;
}

const maxWaitMs = 90_000;

/** Runs the steps in order. One that is refused does not stop the others; a daemon that cannot be reached does. */
export async function runSteps(
  steps: readonly Step[],
  client: Pick<Client, 'call'>,
  { signal, onWait }: { readonly signal: AbortSignal; readonly onWait: (ms: number) => void },
): Promise<StepResult[]> {
  // A limit of writes per minute only delays an import.
  const patient = (async (...given: Parameters<Client['call']>) => {
    for (;;) {
      try {
        return await client.call(...given);
      } catch (error) {
        if (!(error instanceof RateLimitError)) throw error;
        const ms = Math.min(Math.max(error.retryAfterMs ?? 1000, 100), maxWaitMs);
        onWait(ms);
        await pause(ms, undefined, { signal });
      }
    }
  }) as Client['call'];
  const results: StepResult[] = [];
  for (const step of steps) {
    signal.throwIfAborted();
    try {
      await step.run(patient);
      results.push({ step });
    } catch (error) {
      if (!(error instanceof Error) || signal.aborted) throw error;
      if (error instanceof GatehouseError && stops.has(error.code)) throw error;
      results.push({ step, failure: error.message });
    }
  }
  return results;
}

/** Codes after which no other step can succeed. */
const stops: ReadonlySet<string> = new Set(['unauthorized', 'insufficient_scope', 'connection_failed', 'bad_reply', 'unavailable']);
