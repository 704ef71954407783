import { useCallback, useEffect, useRef, useState } from 'react';

/** The state of a load. Earlier data stays visible during a reload. */
export interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly loading: boolean;
  readonly reload: () => void;
}

/** The outcome of the latest finished load. */
interface Settled<T> {
  readonly key: string;
  readonly round: number;
  readonly data: T | undefined;
  readonly error: unknown;
}

/** Loads on mount, when `key` changes and on `reload`; the newest load wins and aborts an earlier one. */
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [settled, setSettled] = useState<Settled<T>>();
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  useEffect(() => {
    latest.current = load;
  }, [load]);

  useEffect(() => {
    const abort = new AbortController();
    latest.current(abort.signal).then(
      (data) => {
        if (!abort.signal.aborted) setSettled({ key, round, data, error: undefined });
      },
      (error: unknown) => {
        if (!abort.signal.aborted) setSettled((before) => ({ key, round, data: before?.key === key ? before.data : undefined, error }));
      },
    );
    return () => abort.abort();
  }, [key, round]);

  const reload = useCallback(() => setRound((before) => before + 1), []);
  const loading = settled?.key !== key || settled.round !== round;
  return { data: settled?.key === key ? settled.data : undefined, error: loading ? undefined : settled.error, loading, reload };
}
