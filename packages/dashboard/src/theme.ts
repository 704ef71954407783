import { createStore } from './data/store.ts';

export type Theme = 'system' | 'light' | 'dark';

const storageKey = 'gatehouse.theme';

function stored(): Theme {
  // Conversations are also rendered where there is no browser, in tests.
  const value = typeof localStorage === 'undefined' ? null : localStorage.getItem(storageKey);
  return value === 'light' || value === 'dark' ? value : 'system';
}

/** Follows the system until the user chooses light or dark; the choice is kept in this browser. */
export const theme = createStore<Theme>(stored());

export function setTheme(next: Theme): void {
  theme.set(next);
  if (next === 'system') localStorage.removeItem(storageKey);
  else localStorage.setItem(storageKey, next);
  applyTheme();
}

export function applyTheme(): void {
  const chosen = theme.get();
  if (chosen === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = chosen;
  // The bars of the browser and of the phone around the page.
  for (const meta of document.querySelectorAll<HTMLMetaElement>('meta[name=theme-color]')) {
    const scheme = meta.dataset['scheme'];
    meta.media = chosen === 'system' ? `(prefers-color-scheme: ${scheme})` : scheme === chosen ? 'all' : 'not all';
  }
}
