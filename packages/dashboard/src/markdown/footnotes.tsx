import { t } from '../language.ts';
import { createContext, type ReactNode, use, useId, useMemo } from 'react';

interface Numbers {
  /** Part of the ids of this text. */
  readonly prefix: string;
  readonly byLabel: ReadonlyMap<string, number>;
}

const NumbersContext = createContext<Numbers | undefined>(undefined);

/** Numbers the footnotes of a text, in the order of their texts. */
export function FootnotesOf({ labels, children }: { readonly labels: readonly string[]; readonly children: ReactNode }) {
  const prefix = useId();
  // References draw again only when a footnote is added.
  const all = labels.join(' ');
  const numbers = useMemo(
    () => ({ prefix, byLabel: new Map([...new Set(all.split(' '))].map((label, at) => [label, at + 1] as const)) }),
    [prefix, all],
  );
  return <NumbersContext value={numbers}>{children}</NumbersContext>;
}

/** The number of a footnote, which leads to it; a reference to a missing footnote stays as it is written. */
export function FootnoteRef({ label, raw }: { readonly label: string; readonly raw: string }) {
  const numbers = use(NumbersContext);
  const number = numbers?.byLabel.get(label);
  if (numbers === undefined || number === undefined) return raw;
  return (
    <sup>
      <button
        type="button"
        className="footnote-ref"
        id={`${numbers.prefix}-ref-${number}`}
        aria-label={t('Footnote {number}', { number })}
        onClick={() => show(`${numbers.prefix}-note-${number}`)}
      >
        {number}
      </button>
    </sup>
  );
}

/** The texts of the footnotes, below the text that they belong to. */
export function Footnotes({ notes }: { readonly notes: readonly { readonly label: string; readonly content: ReactNode }[] }) {
  const numbers = use(NumbersContext);
  return (
    <section className="footnotes" aria-label={t('Footnotes')}>
      <ol>
        {notes.map(({ label, content }, at) => {
          const number = numbers?.byLabel.get(label) ?? at + 1;
          return (
            <li key={at} id={`${numbers?.prefix}-note-${number}`} tabIndex={-1} dir="auto">
              {content}{' '}
              <button
                type="button"
                className="footnote-ref"
                aria-label={t('Back to the text of footnote {number}', { number })}
                onClick={() => show(`${numbers?.prefix}-ref-${number}`)}
              >
                ↩
              </button>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

/** Addresses with a fragment belong to the login, so that links into the page can't be used. */
function show(id: string): void {
  const element = document.getElementById(id);
  element?.scrollIntoView({ block: 'nearest' });
  element?.focus();
}
