import { cutMiddle, splitMiddle } from './bound-text.ts';
import { pointerOf } from './off-load.ts';

/** Fewer characters of an untrusted text are useless. */
const leastBody = 40;

/** Matches a fence with its text; `g`. */
export const wholeFence = /(<<<UNTRUSTED-TEXT ([0-9a-f]{32})[^\n]*>>>\n)([\s\S]*?)(\n<<<END-UNTRUSTED-TEXT \2>>>)/g;

/**
 * Like `cutMiddle`, for texts that contain fences: untrusted text stays between its two lines, other text stays
 * outside them, and the pointer to the rest of an off-loaded result stays whole. May be two lines longer than `kept`.
 */
export function cutFenced(text: string, kept: number): string {
  if (text.length <= kept) return text;
  const pointer = pointerOf(text);
  const behind = pointer === undefined ? '' : `\n${pointer}`;
  const whole = text.slice(0, text.length - behind.length);
  const ends = splitMiddle(whole, Math.max(0, kept - behind.length));
  let headTo = ends.head.length;
  let endFrom = whole.length - ends.end.length;
  let close = '';
  for (const match of whole.matchAll(wholeFence)) {
    const [fence, opening = '', , body = '', closing = ''] = match;
    const bodyFrom = match.index + opening.length;
    const bodyTo = bodyFrom + body.length;
    const to = match.index + fence.length;
    const opens = headTo > match.index && headTo < to;
    const closes = endFrom > match.index && endFrom < to;
    if (opens && headTo <= bodyFrom) headTo = match.index;
    else if (opens) headTo = Math.min(headTo, bodyTo);
    const keepsOpen = opens && headTo > match.index;
    // The gap is inside the fence when both ends are.
    if (keepsOpen && closes && endFrom <= bodyTo) continue;
    if (keepsOpen) close = closing;
    if (closes) endFrom = to;
  }
  return `${whole.slice(0, headTo)}${close}${ends.note}${whole.slice(endFrom)}${behind}`;
}

const leftOut = '[text from outside left out]';

/** Shortens the text to about `kept` characters by cutting only untrusted text; the rest stays whole, and may be longer than that. */
export function cutInsideFences(text: string, kept: number): string {
  if (text.length <= kept) return text;
  const own = text.replaceAll(wholeFence, '');
  const fenced = text.length - own.length;
  const share = fenced === 0 ? 0 : Math.max(0, kept - own.length) / fenced;
  return text.replaceAll(wholeFence, (fence, opening: string, _id: string, body: string, closing: string) => {
    const least = Math.floor(body.length * share);
    return least < leastBody ? leftOut : `${opening}${cutMiddle(body, least)}${closing}`;
  });
}

/** Returns the text without the fence lines around untrusted parts. */
export const unfenced = (text: string) => (text.includes('<<<UNTRUSTED-TEXT ') ? text.replaceAll(wholeFence, '$3') : text);
