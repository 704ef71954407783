import type { ParamsInput } from '@gatehouse/contract';

export type InputEvent = ParamsInput<'browser.input'>['events'][number];
type Key = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'altKey' | 'metaKey' | 'shiftKey'>;

const named: ReadonlySet<string> = new Set([
  'Enter',
  'Backspace',
  'Delete',
  'Home',
  'End',
  'PageUp',
  'PageDown',
  'ArrowUp',
  'ArrowDown',
  'ArrowLeft',
  'ArrowRight',
]);

/** What a key press means in the page; undefined for keys that stay with this page: Tab and Escape have buttons. */
export function keyEvent({ key, ctrlKey, altKey, metaKey, shiftKey }: Key): InputEvent | undefined {
  if (metaKey || altKey) return undefined;
  if (ctrlKey) return /^[a-z]$/i.test(key) && !/^v$/i.test(key) ? { type: 'key', key: `Control+${key.toLowerCase()}` } : undefined;
  if (named.has(key)) return { type: 'key', key: shiftKey ? `Shift+${key}` : key };
  return [...key].length === 1 ? { type: 'text', text: key } : undefined;
}

/** Returns the position in the page, in its CSS pixels, of a position in the picture. */
export function placeIn(
  picture: { readonly left: number; readonly top: number; readonly width: number; readonly height: number },
  page: { readonly width: number; readonly height: number },
  at: { readonly clientX: number; readonly clientY: number },
): { readonly x: number; readonly y: number } {
  const within = (offset: number, shown: number, whole: number) => Math.min(whole, Math.max(0, Math.round((offset / Math.max(1, shown)) * whole)));
  return { x: within(at.clientX - picture.left, picture.width, page.width), y: within(at.clientY - picture.top, picture.height, page.height) };
}

/** Joins what was typed or scrolled in a row, so that one call delivers it. */
export function joined(events: readonly InputEvent[], next: InputEvent): InputEvent[] {
  const last = events.at(-1);
  if (last?.type === 'text' && next.type === 'text' && last.text.length + next.text.length <= 4096)
    return [...events.slice(0, -1), { type: 'text', text: last.text + next.text }];
  if (last?.type === 'scroll' && next.type === 'scroll') return [...events.slice(0, -1), { ...next, dx: last.dx + next.dx, dy: last.dy + next.dy }];
  return [...events, next].slice(-100);
}
