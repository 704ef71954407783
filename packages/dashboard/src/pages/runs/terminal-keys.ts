/** What a key press of the browser types into a terminal; undefined for keys that mean nothing there. */
export type Typed = { readonly text: string } | { readonly keys: string[] } | undefined;

const named: Readonly<Record<string, string>> = {
  Enter: 'enter',
  Backspace: 'backspace',
  ArrowUp: 'up',
  ArrowDown: 'down',
  ArrowLeft: 'left',
  ArrowRight: 'right',
  Home: 'home',
  End: 'end',
  PageUp: 'pageup',
  PageDown: 'pagedown',
  Insert: 'insert',
  Delete: 'delete',
};

/** Tab and Escape stay with the browser, so that the keyboard can leave the terminal: there are buttons for them. */
export function typedBy(event: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'altKey' | 'metaKey'>): Typed {
  const { key, ctrlKey, altKey, metaKey } = event;
  if (metaKey) return undefined;
  if (ctrlKey && !altKey) return /^[a-z]$/i.test(key) && !/^v$/i.test(key) ? { keys: [`ctrl+${key.toLowerCase()}`] } : undefined;
  const name = Object.hasOwn(named, key) ? named[key] : /^F\d{1,2}$/.test(key) ? key.toLowerCase() : undefined;
  if (name !== undefined) return { keys: [name] };
  return [...key].length === 1 ? { text: key } : undefined;
}
