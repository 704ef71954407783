const allowedSchemes = new Set(['http:', 'https:', 'mailto:']);

/** The address of a link that may be followed, in its canonical form; undefined for any other, which is then shown as text. */
export function safeLink(href: string): string | undefined {
  // Relative links would lead into the dashboard itself, which what a model writes has no business with.
  if (!URL.canParse(href)) return undefined;
  const url = new URL(href);
  return allowedSchemes.has(url.protocol) ? url.href : undefined;
}

/** What tells the reader where a link leads. */
export function linkHost(href: string): string {
  const url = new URL(href);
  return url.protocol === 'mailto:' ? url.pathname : url.host;
}
