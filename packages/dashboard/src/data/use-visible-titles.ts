import { type RefObject, useEffect } from 'react';
import { useSession } from './context.ts';

const settleMs = 200;

/** Asks for the first words of conversations as the items of `list`, which carry `data-conversation`, come into sight. `refs` names them all. */
export function useVisibleTitles(list: RefObject<HTMLElement | null>, refs: string): void {
  const { titles } = useSession();
  useEffect(() => {
    const visible = new Set<string>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        const ref = target instanceof HTMLElement ? target.dataset['conversation'] : undefined;
        if (ref === undefined) continue;
        if (isIntersecting) visible.add(ref);
        else visible.delete(ref);
      }
      clearTimeout(timer);
      // Titles are a help: without them a conversation goes by its key.
      timer = setTimeout(() => void titles.want([...visible]).catch(() => undefined), settleMs);
    });
    for (const item of list.current?.children ?? []) observer.observe(item);
    return () => {
      clearTimeout(timer);
      observer.disconnect();
    };
  }, [titles, list, refs]);
}
