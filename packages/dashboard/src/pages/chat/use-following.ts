import { type RefObject, type UIEvent, useCallback, useEffect, useRef, useState } from 'react';

/** How near the end counts as having scrolled back to it, in pixels. */
const nearEnd = 40;
/** How far from the end a way back is offered, in pixels. */
const farFromEnd = 300;

export interface Following {
  /** True when the end is out of sight. */
  readonly away: boolean;
  readonly toEnd: () => void;
  /** What comes next does not move what is on the screen. */
  readonly stay: () => void;
  readonly onScroll: (event: UIEvent<HTMLElement>) => void;
}

/** Keeps the end of `content` in sight while it grows, until the reader scrolls up; scrolled back to the end, it goes on. */
export function useFollowing(box: RefObject<HTMLElement | null>, content: RefObject<HTMLElement | null>): Following {
  const follows = useRef(true);
  const last = useRef({ top: 0, height: 0 });
  const [away, setAway] = useState(false);

  const toEnd = useCallback(() => {
    follows.current = true;
    const { current: element } = box;
    if (element === null) return;
    element.scrollTo({ top: element.scrollHeight });
    // Now, not with the event of it: a step of the reader may come in the same one.
    last.current = { top: element.scrollTop, height: element.scrollHeight };
  }, [box]);

  useEffect(() => {
    // Told after layout, so that asking for heights forces none: text, pictures that load, and a window that changes alike.
    const observer = new ResizeObserver(() => {
      const { current: element } = box;
      if (follows.current) toEnd();
      else if (element !== null) setAway(belowOf(element) > farFromEnd);
    });
    for (const one of [box.current, content.current]) if (one !== null) observer.observe(one);
    return () => observer.disconnect();
  }, [box, content, toEnd]);

  const onScroll = useCallback(({ currentTarget }: UIEvent<HTMLElement>) => {
    const { scrollTop: top, scrollHeight: height } = currentTarget;
    const below = belowOf(currentTarget);
    const up = top < last.current.top;
    // A step up by the reader counts however small it is; one that content caused by becoming shorter does not.
    if (up && height >= last.current.height) follows.current = false;
    else if (top > last.current.top && below < nearEnd) follows.current = true;
    last.current = { top, height };
    setAway(below > farFromEnd && !follows.current);
  }, []);

  const stay = useCallback(() => {
    follows.current = false;
  }, []);

  return { away, toEnd, stay, onScroll };
}

function belowOf({ scrollHeight, scrollTop, clientHeight }: HTMLElement): number {
  return scrollHeight - scrollTop - clientHeight;
}
