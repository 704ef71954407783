import { cutMiddle, splitMiddle } from './bound-text.ts';
import { pointerOf } from './off-load.ts';

/** Of a text from outside fewer characters say nothing. */
const leastBody = 40;

/** A fence with its text; `g`. */
export const wholeFence = /(<<<UNTRUSTED-TEXT ([0-9a-f]{32})[^\n]*>>>\n)([\s\S]*?)(\n<<<END-UNTRUSTED-TEXT \2>>>)/g;

/**
 * As `cutMiddle`, for texts with fences in them: what is from outside stays between its two lines and what is not stays
 * out of them, and the pointer to the rest of an off-loaded result stays whole. May be two lines longer than `kept`.
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
    // The gap is inside of the fence when both ends are.
    if (keepsOpen && closes && endFrom <= bodyTo) continue;
    if (keepsOpen) close = closing;
    if (closes) endFrom = to;
  }
  return `${whole.slice(0, headTo)}${close}${ends.note}${whole.slice(endFrom)}${behind}`;
}

const leftOut = '[text from outside left out]';

/** Shortens the text to about `kept` characters at the cost of what is from outside alone; the rest stays whole, and may be longer than that. */
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

/** The text with what is from outside, but without the lines around it. */
export const unfenced = (text: string) => (text.includes('<<<UNTRUSTED-TEXT ') ? text.replaceAll(wholeFence, '$3') : text);
