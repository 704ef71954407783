/** Splits a base64 `data:` URL; undefined for any other URL. `base64` is not decoded. */
export function readDataUrl(url: string): { readonly mediaType: string; readonly base64: string } | undefined {
  const comma = url.indexOf(',');
  const match = comma === -1 || comma > 200 ? null : /^data:([\w.+-]+\/[\w.+-]+)((?:;[\w.+-]+=[\w.+-]+)*);base64$/i.exec(url.slice(0, comma));
  return match?.[1] === undefined ? undefined : { mediaType: match[1].toLowerCase(), base64: url.slice(comma + 1) };
}

/** Whether a text is base64 of at least one byte; its padding may be missing. */
export function isBase64(text: string): boolean {
  return /^[A-Za-z0-9+/]{2,}={0,2}$/.test(text);
}
