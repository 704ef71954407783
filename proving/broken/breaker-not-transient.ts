import { buildIn } from './patch.ts';

/** Treats a turn that met an open breaker as failed for good. */
buildIn({
  name: 'breaker-not-transient',
  module: 'runtime/turn-end.ts',
  replace: [
    {
      from: "return withRetry(transient('circuit_open', 'circuit_open', message, cause), retryAfterMs);",
      to: "return withRetry(failed('circuit_open', message), retryAfterMs);",
    },
  ],
});
