import { useCallback, useEffect, useRef } from 'react';
import { useSession } from './context.ts';

const settleMs = 200;

/**
 * Returns a throttled function: `run` follows soon, at most once every `leastMs`. Requests count against the rate limit
 * of the token, so a hundred events a second must not cause as many requests.
 */
export function useThrottled(run: () => void, leastMs: number): () => void {
  const { quota } = useSession();
  const latest = useRef(run);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const ranAt = useRef(0);
  useEffect(() => {
    latest.current = run;
  }, [run]);
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [],
  );
  return useCallback(() => {
    timer.current ??= setTimeout(
      () => {
        timer.current = undefined;
        ranAt.current = Date.now();
        latest.current();
      },
      Math.max(settleMs, ranAt.current + leastMs - Date.now(), quota.pauseMs()),
    );
  }, [leastMs, quota]);
}
