/** The place of a removed node. */
interface Gap {
  readonly parent: Node;
  readonly previous: Node | null;
  readonly next: Node | null;
}

const controls = 'a[href], button, input, select, textarea, summary, [tabindex]';
const headings = 'h1, h2, h3, h4, h5, h6, th[scope="row"]';
/** Removed neighbours and ancestors that are passed on the way to one that is still there. */
const maxSteps = 200;

const gaps = new WeakMap<Node, Gap>();
/** The element that has the focus, or had it when it was removed, disabled or hidden. */
let last: Element | undefined;
/** True from a change of the page until its heading, or something that the page chose, has the focus. */
let isArriving = false;
const observer = new MutationObserver(onChange);

/**
 * Keeps the focus in the page: browsers drop it when its element is removed, and a screen reader then starts again at the top. It goes to the
 * same control of the next row, or else to what names the place where the element was.
 */
export function keepFocus(root: Element): void {
  observer.observe(root, { childList: true, subtree: true, attributeFilter: ['disabled', 'inert'] });
  addEventListener('focusin', ({ target }) => {
    isArriving = false;
    last = target instanceof Element ? target : undefined;
  });
  addEventListener('focusout', ({ target, relatedTarget }) => {
    if (relatedTarget !== null) return;
    // Some browsers report this before they remove the element.
    queueMicrotask(() => {
      // Nothing was lost: the user clicked elsewhere.
      if (target === last && target instanceof Element && isUsable(target) && document.hasFocus()) last = undefined;
    });
  });
}

/** Moves the focus to the heading of the page that was opened, as soon as it is shown, unless the page moves it elsewhere itself. */
export function focusHeading(): void {
  isArriving = true;
  // After the changes of this commit, and what the page itself focuses.
  queueMicrotask(restore);
}

/** Returns the element that has the focus, or that lost it by being removed. */
export function focusedElement(): Element | undefined {
  return hasFocus() ? (document.activeElement ?? undefined) : last;
}

/** Makes the focus go to an element, or what is left where it was, when the element that has it is removed in this commit. */
export function returnFocus(element: Element): void {
  // Not here: React hears no events while it changes the page, and would not know which field is selected.
  last = element;
}

function onChange(records: readonly MutationRecord[]): void {
  noteGaps(records);
  restore();
}

function noteGaps(records: readonly MutationRecord[]): void {
  for (const { target, addedNodes, removedNodes, previousSibling, nextSibling } of records) {
    for (const node of removedNodes) gaps.set(node, { parent: target, previous: previousSibling, next: nextSibling });
    // It was moved; its gap would keep what was next to it, and so on, in memory.
    for (const node of addedNodes) gaps.delete(node);
  }
}

function restore(): void {
  if (isArriving) arrive();
  else if (!hasFocus() && last !== undefined && (isUsable(last) || !last.isConnected)) focusNear(last);
}

function focusNear(element: Element): void {
  const target = isUsable(element) ? element : survivorOf(element);
  if (target !== undefined) focus(target);
}

function arrive(): void {
  const page = document.getElementById('content');
  const { activeElement } = document;
  if (page === null || activeElement === null) return;
  if (activeElement !== page && page.contains(activeElement) && isUsable(activeElement)) isArriving = false;
  else {
    const heading = [...page.querySelectorAll('h1')].find((one) => one.checkVisibility());
    if (heading !== undefined) focus(heading);
  }
}

const hasFocus = (): boolean => document.activeElement !== null && document.activeElement !== document.body;
const isUsable = (element: Element): boolean => element.isConnected && element.checkVisibility() && !element.matches(':disabled');
const controlsIn = (element: Element): readonly Element[] =>
  [element, ...element.querySelectorAll('*')].filter((one) => one.matches(controls) && isUsable(one));

/** Returns what takes the place of a removed element. */
function survivorOf(lost: Element): Element | undefined {
  let from = lost;
  for (let steps = 0; steps < maxSteps && !from.isConnected; steps++) {
    const removed = topOf(from);
    const gap = gaps.get(removed);
    if (gap === undefined || !(gap.parent instanceof Element)) return undefined;
    if (gap.parent.isConnected) return replacementOf(removed, gap, lost) ?? placeOf(gap.parent);
    from = gap.parent;
  }
  return from === lost ? undefined : placeOf(from);
}

function topOf(element: Element): Element {
  let top = element;
  while (top.parentElement !== null) top = top.parentElement;
  return top;
}

/** Returns the control that takes the place of what was removed: of what was inserted instead, or of the next row, or the one before. */
function replacementOf(removed: Element, gap: Gap, lost: Element): Element | undefined {
  const [next, previous] = [neighbour(gap, 'next'), neighbour(gap, 'previous')];
  for (let node = previous === null ? gap.parent.firstChild : previous.nextSibling; node !== null && node !== next; node = node.nextSibling) {
    const found = node instanceof Element ? (isRowLike(node, removed) ? counterpartOf(node, removed, lost) : controlsIn(node).at(0)) : undefined;
    if (found !== undefined) return found;
  }
  if (removed === lost) return undefined;
  const row = [next, previous].find((node): node is Element => node instanceof Element && isRowLike(node, removed));
  return row === undefined ? undefined : counterpartOf(row, removed, lost);
}

const isRowLike = (one: Element, other: Element): boolean => one.tagName === other.tagName && one.className === other.className;

/** Returns the nearest node on one side of a gap that is still there. */
function neighbour(gap: Gap, side: 'previous' | 'next'): Node | null {
  let node = gap[side];
  for (let steps = 0; node !== null && node.parentNode !== gap.parent; steps++) node = steps < maxSteps ? (gaps.get(node)?.[side] ?? null) : null;
  return node;
}

/**
 * Returns the control of another row that does what the lost one did in its row. A card that takes the focus itself gets it: what it asks is
 * read before it is decided.
 */
function counterpartOf(other: Element, row: Element, lost: Element): Element | undefined {
  if (row === lost) return isUsable(other) ? other : undefined;
  if (other.hasAttribute('tabindex')) return other;
  const found = sameControl(row, other, lost);
  const card = found?.parentElement?.closest('[tabindex]') ?? undefined;
  return card !== undefined && other.contains(card) ? card : (found ?? placeOf(other));
}

function sameControl(row: Element, other: Element, lost: Element): Element | undefined {
  const isAlike = (one: Element): boolean => one.tagName === lost.tagName && one.className === lost.className;
  const [own, others] = [[...row.querySelectorAll(controls)].filter(isAlike), controlsIn(other).filter(isAlike)];
  const text = lost.textContent.trim();
  // Names of icons have the name of the row in them, so these go by their place.
  return text === '' ? (own.length === others.length ? others[own.indexOf(lost)] : undefined) : others.find((one) => one.textContent.trim() === text);
}

/** Returns what names a place: the item of the list, the field that the section is about, or the heading of the row, card, section or page. */
function placeOf(element: Element): Element | undefined {
  for (let place: Element | null = element; place !== null && place !== document.body; place = place.parentElement) {
    if (place.matches('li, [tabindex]')) return place;
    const named = place.querySelector('[data-focus-home]') ?? [...place.querySelectorAll(headings)].find((one) => one.checkVisibility());
    if (named !== undefined) return named;
  }
  return undefined;
}

function focus(element: Element): void {
  if (!(element instanceof HTMLElement || element instanceof SVGElement)) return;
  if (!element.matches(controls)) element.setAttribute('tabindex', '-1');
  element.focus();
}
