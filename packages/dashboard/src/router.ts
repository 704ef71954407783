import { useSyncExternalStore } from 'react';

const listeners = new Set<() => void>();

function changed(): void {
  for (const listener of listeners) listener();
}

addEventListener('popstate', changed);

/** The path of the page; its query is never read, so nothing can be told to the dashboard by a link. */
export function usePath(): string {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => location.pathname,
  );
}

export function navigate(path: string, how: { readonly replace?: boolean } = {}): void {
  if (path === location.pathname) return;
  if (how.replace === true) history.replaceState(null, '', path);
  else history.pushState(null, '', path);
  changed();
}
