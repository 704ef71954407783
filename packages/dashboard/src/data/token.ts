const storageKey = 'gatehouse.token';

/**
 * The token of this tab: from the fragment of a printed link (`#token=…`), which no server and no log ever sees and which
 * leaves the address at once, or as it was pasted before. Kept for the tab only.
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

/** Keeps a token for the tab; what was read with another one goes. */
export function keepToken(token: string): void {
  if (sessionStorage.getItem(storageKey) !== token) clearTab();
  sessionStorage.setItem(storageKey, token);
}

/** Forgets all that this tab keeps: the token, and what was read with it. */
export function clearTab(): void {
  sessionStorage.clear();
}

/** The token in what somebody pasted: itself, the header that carries it, or the whole printed link. */
export function tokenOfText(pasted: string): string {
  const text = pasted.trim();
  const hash = text.indexOf('#');
  const ofLink = hash === -1 ? undefined : tokenOfFragment(text.slice(hash + 1));
  return ofLink ?? text.replace(/^(?:authorization:\s*)?bearer\s+/i, '');
}

/** What a header can carry; anything else was mistyped, and the browser would refuse to send it. */
export function canBeToken(text: string): boolean {
  return /^[\x20-\x7e]{1,4096}$/.test(text);
}

function tokenOfFragment(fragment: string): string | undefined {
  const given = new URLSearchParams(fragment).get('token')?.trim();
  return given === '' ? undefined : given;
}
