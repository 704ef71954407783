import { useCallback, useState } from 'react';

/** Work that the user starts, such as saving a form. */
export interface Action {
  readonly busy: boolean;
  /** The name that the running work was started with. */
  readonly running: string | undefined;
  /** Why the last work failed; undefined while work is running. */
  readonly error: unknown;
  /** Starts work and forgets an earlier failure. */
  readonly run: (work: () => Promise<unknown>, name?: string) => void;
  readonly clearError: () => void;
}

/** Returns an idle action; a component with several independent ones uses one for each. */
export function useAction(): Action {
  const [running, setRunning] = useState<string>();
  const [error, setError] = useState<unknown>();
  const run = useCallback((work: () => Promise<unknown>, name = '') => {
    setRunning(name);
    setError(undefined);
    work()
      .catch((failure: unknown) => setError(failure))
      .finally(() => setRunning(undefined));
  }, []);
  const clearError = useCallback(() => setError(undefined), []);
  return { busy: running !== undefined, running, error, run, clearError };
}
