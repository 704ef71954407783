import { useEffect, useEffectEvent } from 'react';

/** Above this width nothing overlays the page; as in the style sheets. */
const narrow = '(max-width: 820px)';

/** Closes an overlay of narrow screens with Escape, and when the screen becomes wide. */
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
