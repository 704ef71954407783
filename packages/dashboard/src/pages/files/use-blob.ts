import { useEffect, useEffectEvent, useState } from 'react';

/** Loads bytes when the key changes, and returns their address for an element of this page; the address is revoked with it. */
export function useBlobAddress(
  load: ((signal: AbortSignal) => Promise<Blob>) | undefined,
  key: string,
): { readonly address?: string; readonly failed?: unknown } {
  const [loaded, setLoaded] = useState<{ readonly address?: string; readonly failed?: unknown }>({});
  const start = useEffectEvent((signal: AbortSignal) => load?.(signal));
  const isWanted = load !== undefined;
  useEffect(() => {
    if (!isWanted) return undefined;
    const abort = new AbortController();
    let made: string | undefined;
    start(abort.signal)?.then(
      (blob) => {
        if (abort.signal.aborted) return;
        made = URL.createObjectURL(blob);
        setLoaded({ address: made });
      },
      (failed: unknown) => {
        if (!abort.signal.aborted) setLoaded({ failed });
      },
    );
    return () => {
      abort.abort();
      if (made !== undefined) URL.revokeObjectURL(made);
    };
  }, [key, isWanted]);
  return loaded;
}
