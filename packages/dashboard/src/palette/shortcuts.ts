import { useEffect, useEffectEvent } from 'react';

export type Shortcut = 'palette' | 'shortcuts';

/** Calls back for the shortcuts of every page: Ctrl-K or Cmd-K, and ? outside of fields. */
export function useShortcuts(open: (shortcut: Shortcut) => void): void {
  const onOpen = useEffectEvent(open);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.isComposing || event.altKey) return;
      const isPalette = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === 'k';
      const isHelp = event.key === '?' && !event.ctrlKey && !event.metaKey && !isField(event.target);
      if (!isPalette && !isHelp) return;
      event.preventDefault();
      // A dialog that is open keeps the focus.
      if (document.querySelector('dialog[open]') === null) onOpen(isPalette ? 'palette' : 'shortcuts');
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}

const isField = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || target.matches('input, textarea, select'));
