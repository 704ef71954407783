import { useEffect, useEffectEvent } from 'react';

/** The width above which nothing lies over the page; as in the style sheets. */
const narrow = '(max-width: 820px)';

/** For a part that lies over the page on narrow screens: closes with Escape, and when the screen becomes wide. */
export function useOverlay(open: boolean, close: () => void): void {
  const onClose = useEffectEvent(close);
  useEffect(() => {
    if (!open) return undefined;
    const screen = matchMedia(narrow);
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') onClose();
    };
    const onWidth = (): void => {
      if (!screen.matches) onClose();
    };
    addEventListener('keydown', onKey);
    screen.addEventListener('change', onWidth);
    return () => {
      removeEventListener('keydown', onKey);
      screen.removeEventListener('change', onWidth);
    };
  }, [open]);
}
