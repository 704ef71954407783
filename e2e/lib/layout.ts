import type { Page } from 'playwright-core';

/**
 * Returns what is wrong with the layout of the page as it is shown: it scrolls sideways, text is cut off without an ellipsis and cannot be
 * scrolled to, or a text or control covers another one. Each line names the text.
 */
export async function layoutProblems(page: Page): Promise<string[]> {
  // Playwright sends the function as text: it uses nothing from outside.
  return page.evaluate(() => {
    const found: string[] = [];
    const slack = 1.5;
    const root = document.documentElement;
    if (root.scrollWidth > innerWidth + 1) found.push(`the page scrolls sideways: ${root.scrollWidth} px of ${innerWidth}`);

    interface Box {
      readonly element: Element;
      readonly name: string;
      readonly left: number;
      readonly top: number;
      readonly right: number;
      readonly bottom: number;
      /** The nearest ancestor that is placed over others, such as a dialog: what it covers is meant to be covered. */
      readonly layer: Element | null;
    }
    const nameOf = (element: Element, text: string): string =>
      `"${text.trim().replace(/\s+/g, ' ').slice(0, 50)}" in ${element.tagName.toLowerCase()}${element.className === '' || typeof element.className !== 'string' ? '' : `.${element.className.split(' ').join('.')}`}`;
    const styles = new Map<Element, CSSStyleDeclaration>();
    const styleOf = (element: Element): CSSStyleDeclaration => {
      const known = styles.get(element);
      if (known !== undefined) return known;
      const style = getComputedStyle(element);
      styles.set(element, style);
      return style;
    };
    const layerOf = (element: Element): Element | null => {
      for (let at: Element | null = element; at !== null; at = at.parentElement)
        if (['fixed', 'sticky', 'absolute'].includes(styleOf(at).position) || at.matches('dialog, [popover]')) return at;
      return null;
    };
    /** Cuts a rectangle by what its ancestors show of it, and reports what cannot be reached. */
    function shown(element: Element, rect: DOMRect, text: string): Omit<Box, 'name' | 'element' | 'layer'> | undefined {
      let { left, top, right, bottom } = rect;
      for (let at: Element | null = element; at !== null && at !== document.body; at = at.parentElement) {
        const style = styleOf(at);
        if (style.visibility !== 'visible' || style.opacity === '0' || style.clipPath !== 'none') return undefined;
        if (style.overflowX === 'visible' && style.overflowY === 'visible') continue;
        const outer = at.getBoundingClientRect();
        // Folded, or for screen readers alone.
        if (outer.width <= 2 || outer.height <= 2) return undefined;
        const isShortened = style.textOverflow === 'ellipsis' || (style.webkitLineClamp !== 'none' && style.webkitLineClamp !== '');
        const cut = (kind: string): number => found.push(`cut off ${kind}: ${nameOf(element, text)}`);
        if (
          /hidden|clip/.test(style.overflowX) &&
          !isShortened &&
          at.scrollWidth > at.clientWidth &&
          (right > outer.right + slack || left < outer.left - slack)
        )
          cut('at the side');
        if (
          /hidden|clip/.test(style.overflowY) &&
          !isShortened &&
          at.scrollHeight > at.clientHeight &&
          bottom > outer.bottom + 4 &&
          top < outer.bottom - 4
        )
          cut('below');
        left = Math.max(left, outer.left);
        right = Math.min(right, outer.right);
        top = Math.max(top, outer.top);
        bottom = Math.min(bottom, outer.bottom);
        if (right - left < 2 || bottom - top < 2) return undefined;
      }
      return { left, top, right, bottom };
    }

    const boxes: Box[] = [];
    const add = (element: Element, rect: DOMRect, text: string): void => {
      if (rect.width < 2 || rect.height < 2 || !element.checkVisibility({ contentVisibilityAuto: true })) return;
      const seen = shown(element, rect, text);
      if (seen !== undefined) boxes.push({ ...seen, element, name: nameOf(element, text), layer: layerOf(element) });
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      const element = node.parentElement;
      const text = node.textContent ?? '';
      if (element === null || text.trim() === '' || element.closest('svg, script, style, textarea, select, option, noscript, math') !== null)
        continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const rect of range.getClientRects()) add(element, rect, text);
    }
    for (const control of document.querySelectorAll('input:not([type=hidden]), select, textarea, button'))
      add(control, control.getBoundingClientRect(), control.getAttribute('aria-label') ?? control.textContent ?? '');

    const isInside = (one: Box, other: Box): boolean => one.element.contains(other.element) || other.element.contains(one.element);
    const sorted = boxes.toSorted((one, other) => one.top - other.top);
    const reported = new Set<string>();
    for (const [at, one] of sorted.entries())
      for (let next = at + 1; next < sorted.length; next += 1) {
        const other = sorted[next];
        if (other === undefined || other.top >= one.bottom) break;
        const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
        const high = Math.min(one.bottom, other.bottom) - other.top;
        if (wide < 4 || high < 5 || one.layer !== other.layer || isInside(one, other)) continue;
        const line = `${one.name} and ${other.name} overlap`;
        if (!reported.has(line)) found.push(line);
        reported.add(line);
      }
    return [...new Set(found)];
  });
}
