import { useEffect, useState } from 'react';
import { useStore } from '../data/store.ts';
import { theme } from '../theme.ts';
import { type Drawn, drawDiagram } from './diagrams.ts';

/** Shows a diagram as a picture; reports when it cannot be drawn. */
export function Diagram({ code, onFailed }: { readonly code: string; readonly onFailed: (reason: string) => void }) {
  const chosen = useStore(theme);
  const isSystemDark = useSystemDark();
  const isDark = chosen === 'system' ? isSystemDark : chosen === 'dark';
  const [result, setResult] = useState<Drawn>();
  const [address, setAddress] = useState<string>();

  useEffect(() => {
    let isWanted = true;
    drawDiagram(code, isDark).then(
      (drawn) => {
        if (isWanted) setResult(drawn);
      },
      (error: unknown) => {
        if (isWanted) setResult({ error: error instanceof Error ? error.message : String(error) });
      },
    );
    return () => {
      isWanted = false;
    };
  }, [code, isDark]);

  useEffect(() => {
    if (result === undefined) return undefined;
    if ('error' in result) {
      onFailed(result.error);
      return undefined;
    }
    const made = URL.createObjectURL(new Blob([result.svg], { type: 'image/svg+xml' }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [result, onFailed]);

  return address === undefined ? (
    <p className="hint diagram-wait" role="status">
      Drawing the diagram…
    </p>
  ) : (
    <img className="diagram" src={address} alt={`Diagram: ${code.trim().split('\n')[0] ?? ''}`} />
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
