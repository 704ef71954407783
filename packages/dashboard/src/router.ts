import { useEffect, useEffectEvent, useSyncExternalStore } from 'react';

const listeners = new Set<() => void>();
/** Asked before the page is left; false stays. */
const guards = new Set<() => boolean>();
let shown = location.pathname;

function changed(): void {
  shown = location.pathname;
  for (const listener of listeners) listener();
}

addEventListener('popstate', () => {
  if (location.pathname === shown || mayLeave()) return changed();
  // The browser has gone there already: who stays is put back, and can go again.
  history.pushState(null, '', shown);
});

/** The path of the page; its query is never read, so nothing can be told to the dashboard by a link. */
export function usePath(): string {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => shown,
  );
}

export function navigate(path: string, how: { readonly replace?: boolean } = {}): void {
  if (path === location.pathname || !mayLeave()) return;
  if (how.replace === true) history.replaceState(null, '', path);
  else history.pushState(null, '', path);
  changed();
}

/** False when somebody was asked and would rather stay. */
export function mayLeave(): boolean {
  return [...guards].every((guard) => guard());
}

/** While `unsaved`, asks before the page is left by a link, by the history or by closing the tab. */
export function useLeaveGuard(unsaved: boolean, question: string): void {
  const ask = useEffectEvent(() => confirm(question));
  useEffect(() => {
    if (!unsaved) return undefined;
    const guard = (): boolean => ask();
    const onUnload = (event: BeforeUnloadEvent): void => event.preventDefault();
    guards.add(guard);
    addEventListener('beforeunload', onUnload);
    return () => {
      guards.delete(guard);
      removeEventListener('beforeunload', onUnload);
    };
  }, [unsaved]);
}
