const storageKey = 'gatehouse.token';

/**
 * Returns the token of this tab: from the fragment of the login link (`#token=…`), which no server or log ever sees and which
 * is removed from the address at once, or as pasted earlier. Kept for this tab only.
 */
export function takeToken(): string | undefined {
  const given = tokenOfFragment(location.hash.slice(1));
  if (location.hash !== '') history.replaceState(null, '', location.pathname);
  if (given !== undefined) {
    keepToken(given);
    return given;
  }
  return sessionStorage.getItem(storageKey) ?? undefined;
}

/** Keeps a token for the tab and deletes the data of another token. */
export function keepToken(token: string): void {
  if (sessionStorage.getItem(storageKey) !== token) clearTab();
  sessionStorage.setItem(storageKey, token);
}

/** Deletes everything that this tab keeps: the token, and the data read with it. */
export function clearTab(): void {
  sessionStorage.clear();
}

/** Extracts the token from pasted text: the token itself, an Authorization header, or the whole login link. */
export function tokenOfText(pasted: string): string {
  const text = pasted.trim();
  const hash = text.indexOf('#');
  const ofLink = hash === -1 ? undefined : tokenOfFragment(text.slice(hash + 1));
  return ofLink ?? text.replace(/^(?:authorization:\s*)?bearer\s+/i, '');
}

/** Accepts what a header can carry; the browser would refuse to send anything else. */
export function canBeToken(text: string): boolean {
  return /^[\x20-\x7e]{1,4096}$/.test(text);
}

function tokenOfFragment(fragment: string): string | undefined {
  const given = new URLSearchParams(fragment).get('token')?.trim();
  return given === '' ? undefined : given;
}
