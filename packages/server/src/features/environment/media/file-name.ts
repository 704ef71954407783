const maxCharacters = 120;

/**
 * Returns the last part of a client's file name, safe to show and to offer for saving: no folders, no control characters,
 * no bidirectional overrides. Undefined when nothing is left. It never names a file of this server.
 */
export function cleanFileName(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const last = text.toWellFormed().normalize('NFC').split(/[/\\]/).at(-1) ?? '';
  const name = last
    .replaceAll(/[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffd<>:"|?*]/gu, '_')
    // The lookbehind keeps a long run in the middle from being tried at each of its characters.
    .replaceAll(/^[. ]+|(?<![. ])[. ]+$/g, '');
  const characters = [...name];
  if (characters.length <= maxCharacters) return name === '' ? undefined : name;
  // Keep the end, which has the extension.
  const extension = /\.[A-Za-z0-9]{1,10}$/.exec(name)?.[0] ?? '';
  return characters.slice(0, maxCharacters - extension.length).join('') + extension;
}

/** Returns the lower-case extension of a name without its dot, or undefined. */
export function extensionOf(name: string | undefined): string | undefined {
  return /\.([A-Za-z0-9]{1,10})$/.exec(name ?? '')?.[1]?.toLowerCase();
}
