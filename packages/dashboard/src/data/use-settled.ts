import { useEffect, useState } from 'react';

const settleMs = 250;

/** Returns a text without surrounding spaces as it was when typing last paused, so that a search does not ask for every letter. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text.trim());
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text.trim()), settleMs);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
