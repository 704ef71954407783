import { type RefObject, useEffect, useRef } from 'react';

/** The width up to which what was chosen stands below the list that it was chosen from; as in the style sheet. */
const narrow = '(max-width: 1080px)';

/** For a part that appears because something was chosen: comes into view where it would stand out of sight. */
export function useInView<T extends HTMLElement>(): RefObject<T | null> {
  const part = useRef<T>(null);
  useEffect(() => {
    if (matchMedia(narrow).matches) part.current?.scrollIntoView({ block: 'start' });
  }, []);
  return part;
}
