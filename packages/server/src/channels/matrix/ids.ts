/** An id of Matrix is at most this long, in bytes. */
const longest = 255;

const isId = (text: string, shape: RegExp): boolean => Buffer.byteLength(text) <= longest && shape.test(text);

/** Ids are percent-encoded in paths; what has not their shape never gets there. */
export const isRoomId = (text: string): boolean => isId(text, /^![^\s\p{C}]+$/u);
export const isRoomAlias = (text: string): boolean => isId(text, /^#[^\s\p{C}]+:[^\s\p{C}]+$/u);
export const isEventId = (text: string): boolean => isId(text, /^\$[^\s\p{C}]+$/u);
export const isUserId = (text: string): boolean => isId(text, /^@[^\s\p{C}:]*:[^\s\p{C}/?#]+$/u);

export interface Mxc {
  readonly server: string;
  readonly media: string;
}

/** Parses the address of a file, `mxc://server/id`. */
export function parseMxc(text: string): Mxc | undefined {
  if (text.length > 512) return undefined;
  const [, server, media] = /^mxc:\/\/([A-Za-z0-9[][A-Za-z0-9.:[\]-]*)\/([A-Za-z0-9_-]+)$/.exec(text) ?? [];
  return server === undefined || media === undefined ? undefined : { server, media };
}
