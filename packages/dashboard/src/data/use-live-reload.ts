import { useEffect, useEffectEvent } from 'react';
import { useSession } from './context.ts';

const settleMs = 400;

/** Reloads a moment after an event of one of these kinds, or a gap. */
export function useLiveReload(prefix: string, reload: () => void): void {
  const { live } = useSession();
  const run = useEffectEvent(reload);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = live.listen(({ kind }) => {
      if (kind !== 'gap' && !kind.startsWith(prefix)) return;
      clearTimeout(timer);
      timer = setTimeout(() => run(), settleMs);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [live, prefix]);
}
