import { t } from '../language.ts';
import { useEffect, useState } from 'react';
import { useStore } from '../data/store.ts';
import { theme } from '../theme.ts';
import type { Drawn } from './diagrams.ts';

/** Shows a diagram as a picture; reports when it cannot be drawn. */
export function Diagram({ code, onFailed }: { readonly code: string; readonly onFailed: (reason: string) => void }) {
  const chosen = useStore(theme);
  const isSystemDark = useSystemDark();
  const isDark = chosen === 'system' ? isSystemDark : chosen === 'dark';
  const [address, setAddress] = useState<string>();

  useEffect(() => {
    let isWanted = true;
    let made: string | undefined;
    const show = (drawn: Drawn): void => {
      if (!isWanted) return;
      if ('error' in drawn) return onFailed(drawn.error);
      made = URL.createObjectURL(new Blob([drawn.svg], { type: 'image/svg+xml' }));
      setAddress(made);
    };
    const drawing = import('./diagrams.ts').then(({ drawDiagram }) => drawDiagram(code, isDark));
    drawing.then(show, (error: unknown) => show({ error: error instanceof Error ? error.message : String(error) }));
    return () => {
      isWanted = false;
      // The picture is shown until the next one is there.
      if (made !== undefined) setTimeout(URL.revokeObjectURL, 5_000, made);
    };
  }, [code, isDark, onFailed]);

  return address === undefined ? (
    <p className="hint diagram-wait" role="status">
      {t('Drawing the diagram…')}
    </p>
  ) : (
    <img className="diagram" src={address} alt={t('Diagram: {split}', { split: code.trim().split('\n')[0] ?? '' })} />
  );
}

function useSystemDark(): boolean {
  const [isDark, setDark] = useState(() => matchMedia('(prefers-color-scheme: dark)').matches);
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)');
    const onChange = (): void => setDark(query.matches);
    query.addEventListener('change', onChange);
    return () => query.removeEventListener('change', onChange);
  }, []);
  return isDark;
}
