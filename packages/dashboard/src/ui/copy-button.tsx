import { t } from '../language.ts';
import { useEffect, useState } from 'react';
import { Icon } from './icon.tsx';

/** Copies a text and confirms it for a moment. */
export function CopyButton({ text, label, wide = false }: { readonly text: string; readonly label: string; readonly wide?: boolean }) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  useEffect(() => {
    if (state === 'idle') return undefined;
    const timer = setTimeout(() => setState('idle'), 2_000);
    return () => clearTimeout(timer);
  }, [state]);
  const caption = state === 'idle' ? label : state === 'copied' ? t('Copied') : t('Copy failed');
  return (
    <button
      type="button"
      className={wide ? 'button' : 'button quiet small'}
      onClick={() => {
        copy(text).then(
          () => setState('copied'),
          () => setState('failed'),
        );
      }}
    >
      <Icon name={state === 'copied' ? 'check' : 'copy'} />
      <span aria-live="polite">{caption}</span>
    </button>
  );
}

/** Falls back to a selection: browsers block the clipboard API on pages loaded over plain HTTP from another machine. */
async function copy(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'visually-hidden';
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  if (!done) throw new Error('The browser blocked copying.');
}
