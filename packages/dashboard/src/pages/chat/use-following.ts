import { type RefObject, type UIEvent, useCallback, useEffect, useRef, useState } from 'react';

/** Distance in pixels from the end that counts as scrolled to the end. */
const nearEnd = 40;
/** Distance in pixels from the end at which the button to scroll back appears. */
const farFromEnd = 300;

export interface Following {
  /** True when the end is out of sight. */
  readonly away: boolean;
  readonly toEnd: () => void;
  /** Stops following, so that new content doesn't move the page. */
  readonly stay: () => void;
  readonly onScroll: (event: UIEvent<HTMLElement>) => void;
}

/** Keeps the end of `content` in view while it grows, until the reader scrolls up; resumes when scrolled back to the end. */
export function useFollowing(box: RefObject<HTMLElement | null>, content: RefObject<HTMLElement | null>): Following {
  const follows = useRef(true);
  const last = useRef({ top: 0, height: 0 });
  const [away, setAway] = useState(false);

  const toEnd = useCallback(() => {
    follows.current = true;
    const { current: element } = box;
    if (element === null) return;
    element.scrollTo({ top: element.scrollHeight });
    // Recorded now, because the same scroll event may include a move of the reader.
    last.current = { top: element.scrollTop, height: element.scrollHeight };
  }, [box]);

  useEffect(() => {
    // Runs after layout, so reading heights forces none: for text, loaded pictures and window resizing.
    const observer = new ResizeObserver(() => {
      const { current: element } = box;
      if (follows.current) toEnd();
      else if (element !== null) setAway(belowOf(element) > farFromEnd);
    });
    for (const one of [box.current, content.current]) if (one !== null) observer.observe(one);
    return () => observer.disconnect();
  }, [box, content, toEnd]);

  useEffect(() => {
    // Text that arrives with the turn of the wheel scrolls to the end before the scroll event, which then shows no move.
    const onWheel = ({ deltaY }: WheelEvent): void => {
      if (deltaY < 0 && (box.current?.scrollTop ?? 0) > 0) follows.current = false;
    };
    const { current: element } = box;
    element?.addEventListener('wheel', onWheel, { passive: true });
    return () => element?.removeEventListener('wheel', onWheel);
  }, [box]);

  const onScroll = useCallback(({ currentTarget }: UIEvent<HTMLElement>) => {
    const { scrollTop: top, scrollHeight: height } = currentTarget;
    const below = belowOf(currentTarget);
    const up = top < last.current.top;
    // Any scroll up by the reader counts; one caused by shrinking content does not.
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
