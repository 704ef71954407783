const allowedSchemes = new Set(['http:', 'https:', 'mailto:']);

/** Returns the canonical address of a link that may be followed; undefined for any other, which is shown as text. */
export function safeLink(href: string): string | undefined {
  // A model must not be able to link into the dashboard itself.
  if (!URL.canParse(href)) return undefined;
  const url = new URL(href);
  return allowedSchemes.has(url.protocol) ? url.href : undefined;
}

/**
 * Returns the page of the dashboard that shows a cited passage of a knowledge source: the only page that a model can link to, because
 * it only reads.
 */
export function citedPage(href: string): string | undefined {
  const [, fileId, part] = /^knowledge:(kf_[0-9a-f]{32})\/(\d{1,6})$/.exec(href) ?? [];
  return fileId === undefined ? undefined : `/knowledge/${fileId}/${part}`;
}

/** Returns the host or mail address that shows where a link leads. */
export function linkHost(href: string): string {
  const url = new URL(href);
  return url.protocol === 'mailto:' ? url.pathname : url.host;
}
