import { useEffect, useEffectEvent, useSyncExternalStore } from 'react';

const listeners = new Set<() => void>();
/** Called with the path to go to before leaving the page, without one for another reason; returning false stays. */
const guards = new Set<(to: string | undefined) => boolean>();
let shown = location.pathname;
/** Pages that the user opened, without those that only changed their address. */
let visits = 0;

function changed(): void {
  shown = location.pathname;
  for (const listener of listeners) listener();
}

function visited(): void {
  visits += 1;
  changed();
}

addEventListener('popstate', () => {
  if (location.pathname === shown || mayLeave(location.pathname)) return visited();
  // The browser has already changed the address: restore it if the user stays.
  history.pushState(null, '', shown);
});

/** The path of the page; its query is never read, so a link can't pass anything to the dashboard. */
export function usePath(): string {
  return useSyncExternalStore(subscribe, () => shown);
}

/** Returns a number that grows with each page that the user opens. */
export function useVisits(): number {
  return useSyncExternalStore(subscribe, () => visits);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function navigate(path: string, how: { readonly replace?: boolean } = {}): void {
  if (path === location.pathname || !mayLeave(path)) return;
  if (how.replace === true) {
    history.replaceState(null, '', path);
    changed();
  } else {
    history.pushState(null, '', path);
    visited();
  }
}

/** Returns false when the user was asked and chose to stay. */
export function mayLeave(to?: string): boolean {
  return [...guards].every((guard) => guard(to));
}

/**
 * While `unsaved`, asks before the user leaves the page by a link, the history or closing the tab. Pages at `within` and below it keep
 * what is unsaved.
 */
export function useLeaveGuard(unsaved: boolean, question: string, within?: string): void {
  const ask = useEffectEvent(() => confirm(question));
  useEffect(() => {
    if (!unsaved) return undefined;
    const guard = (to: string | undefined): boolean =>
      (within !== undefined && to !== undefined && (to === within || to.startsWith(`${within}/`))) || ask();
    const onUnload = (event: BeforeUnloadEvent): void => event.preventDefault();
    guards.add(guard);
    addEventListener('beforeunload', onUnload);
    return () => {
      guards.delete(guard);
      removeEventListener('beforeunload', onUnload);
    };
  }, [unsaved, within]);
}
