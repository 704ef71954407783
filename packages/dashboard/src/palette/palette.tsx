import { t } from '../language.ts';
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { Dialog } from '../ui/dialog.tsx';
import { type Entry, type PalettePage, useEntries } from './use-entries.ts';

const shortcuts: readonly (readonly [keys: string, what: string])[] = [
  [t('Ctrl K'), t('Search and go to anything')],
  ['?', t('Show the shortcuts')],
  [t('Enter'), t('Send the message')],
  [t('Shift Enter'), t('Start a new line in the message')],
  [t('Ctrl Enter'), t('Save or send what a dialog asks for')],
  [t('Esc'), t('Stop the answer, or close what is open')],
];

interface PaletteProps {
  readonly pages: readonly PalettePage[];
  readonly onClose: () => void;
}

/** One search over actions, pages and all objects that have a page; Enter opens the selected one. */
export function Palette({ pages, onClose }: PaletteProps) {
  const [query, setQuery] = useState('');
  /** Key of the entry that was selected by an arrow: it stays selected while other groups arrive. */
  const [selected, setSelected] = useState<string>();
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  // After the dialog has opened, which focuses its first button.
  useEffect(() => field.current?.focus(), []);
  const { groups, loading, failed } = useEntries(pages, query);
  const entries = groups.flatMap((group) => group.entries);
  const at = Math.max(
    0,
    entries.findIndex(({ key }) => key === selected),
  );

  function follow(entry: Entry | undefined): void {
    if (entry === undefined) return;
    onClose();
    entry.open();
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.nativeEvent.isComposing) return;
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0 && entries.length > 0) {
      event.preventDefault();
      setSelected(entries.at((at + step) % entries.length)?.key);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      follow(entries[at]);
    } else if (event.key === 'Escape') {
      // The browser would only empty the field, so that a second one closes the dialog.
      event.preventDefault();
      onClose();
    }
  }

  return (
    <Dialog title={t('Go to')} onClose={onClose}>
      <div className="palette">
        <input
          ref={field}
          type="search"
          role="combobox"
          aria-label={t('Search everything')}
          aria-expanded={entries.length > 0}
          aria-controls={`${id}-list`}
          aria-activedescendant={entries[at] === undefined ? undefined : `${id}-${at}`}
          autoComplete="off"
          placeholder={t('Pages, conversations, jobs, runs, settings, …')}
          value={query}
          onChange={(event) => {
            setQuery(event.target.value);
            setSelected(undefined);
          }}
          onKeyDown={onKeyDown}
        />
        <ul id={`${id}-list`} role="listbox" aria-label={t('Results')}>
          {groups.map(({ name, entries: inGroup }) => (
            <li key={name} role="group" aria-label={name}>
              <span className="palette-group-name" aria-hidden="true">
                {name}
              </span>
              {inGroup.map((entry) => {
                const index = entries.indexOf(entry);
                return (
                  <div
                    key={entry.key}
                    id={`${id}-${index}`}
                    role="option"
                    aria-selected={index === at}
                    ref={index === at ? scrollIntoView : undefined}
                    onClick={() => follow(entry)}
                  >
                    <span className="palette-label" dir="auto">
                      {entry.label}
                    </span>
                    {entry.hint !== undefined && <span className="hint cut">{entry.hint}</span>}
                  </div>
                );
              })}
            </li>
          ))}
        </ul>
        {entries.length === 0 && <p className="hint pad">{loading ? t('Searching…') : t('Nothing found.')}</p>}
        {failed && <p className="hint pad">{t('Some results could not be loaded.')}</p>}
      </div>
    </Dialog>
  );
}

const scrollIntoView = (element: HTMLElement | null): void => element?.scrollIntoView({ block: 'nearest' });

/** The list of keyboard shortcuts. */
export function Shortcuts({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title={t('Keyboard shortcuts')} onClose={onClose}>
      <dl className="dialog-body shortcuts">
        {shortcuts.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
