import { useCallback, useEffect, useRef } from 'react';

const settleMs = 200;

/**
 * A function that may be called at any rate: `run` follows soon, and at most once in `leastMs`. Calls count against the limit
 * of the token, so what happens a hundred times in a second must not be asked for as often.
 */
export function usePaced(run: () => void, leastMs: number): () => void {
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
      Math.max(settleMs, ranAt.current + leastMs - Date.now()),
    );
  }, [leastMs]);
}
