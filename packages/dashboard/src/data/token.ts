const storageKey = 'gatehouse.token';

/**
 * The token of this tab: from the fragment of a printed link (`#token=…`), which no server and no log ever sees and which
 * leaves the address at once, or as it was pasted before. Kept for the tab only.
 */
export function takeToken(): string | undefined {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const given = fragment.get('token')?.trim();
  if (location.hash !== '') history.replaceState(null, '', location.pathname);
  if (given !== undefined && given !== '') {
    keepToken(given);
    return given;
  }
  return sessionStorage.getItem(storageKey) ?? undefined;
}

export function keepToken(token: string): void {
  sessionStorage.setItem(storageKey, token);
}

/** Forgets all that this tab keeps: the token, and what was read with it. */
export function clearTab(): void {
  sessionStorage.clear();
}
