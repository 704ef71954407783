import { type RefObject, useEffect, useRef } from 'react';

/** Up to this width the details are below the list; as in the style sheet. */
const narrow = '(max-width: 1080px)';

/** Scrolls a part that appears after a selection into view when it would be off screen. */
export function useInView<T extends HTMLElement>(): RefObject<T | null> {
  const part = useRef<T>(null);
  useEffect(() => {
    if (matchMedia(narrow).matches) part.current?.scrollIntoView({ block: 'start' });
  }, []);
  return part;
}
