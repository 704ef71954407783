/** Keys whose sequence depends on the mode of the cursor keys: the last character after `ESC [` or `ESC O`. */
const cursorKeys: Readonly<Record<string, string>> = { up: 'A', down: 'B', right: 'C', left: 'D', home: 'H', end: 'F' };

const plainKeys: Readonly<Record<string, string>> = {
  enter: '\r',
  tab: '\t',
  'shift+tab': '\u001b[Z',
  escape: '\u001b',
  backspace: '\u007f',
  space: ' ',
  insert: '\u001b[2~',
  delete: '\u001b[3~',
  pageup: '\u001b[5~',
  pagedown: '\u001b[6~',
  f1: '\u001bOP',
  f2: '\u001bOQ',
  f3: '\u001bOR',
  f4: '\u001bOS',
  f5: '\u001b[15~',
  f6: '\u001b[17~',
  f7: '\u001b[18~',
  f8: '\u001b[19~',
  f9: '\u001b[20~',
  f10: '\u001b[21~',
  f11: '\u001b[23~',
  f12: '\u001b[24~',
  'ctrl+space': '\0',
  'ctrl+[': '\u001b',
  'ctrl+\\': '\u001c',
  'ctrl+]': '\u001d',
};

export const keyNames =
  'enter, tab, shift+tab, escape, backspace, space, up, down, left, right, home, end, pageup, pagedown, insert, delete, f1 to f12, ctrl+a to ctrl+z, alt+ and a character, or a single character';

/** Returns what a terminal sends for a key; undefined for an unknown name. `isApplication`: the program switched the cursor keys to application mode. */
export function encodeKey(key: string, isApplication: boolean): string | undefined {
  if ([...key].length === 1) return key;
  const name = key.toLowerCase();
  const cursor = own(cursorKeys, name);
  if (cursor !== undefined) return `\u001b${isApplication ? 'O' : '['}${cursor}`;
  const control = /^ctrl\+([a-z])$/.exec(name)?.[1];
  if (control !== undefined) return String.fromCharCode(control.charCodeAt(0) - 96);
  const alt = /^alt\+(.)$/u.exec(key)?.[1];
  return alt === undefined ? own(plainKeys, name) : `\u001b${alt}`;
}

const own = (table: Readonly<Record<string, string>>, name: string) => (Object.hasOwn(table, name) ? table[name] : undefined);
