import { t } from '../language.ts';
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from 'react';
import { useSession } from '../data/context.ts';
import { useConversations } from '../data/conversations.ts';
import { ago } from '../data/format.ts';
import { useStore } from '../data/store.ts';
import { useLoad } from '../data/use-load.ts';
import { useSettled } from '../data/use-settled.ts';
import { navigate } from '../router.ts';
import { Dialog } from '../ui/dialog.tsx';

const maxConversations = 200;
const maxHits = 20;
/** Most entries of a group, so that the others stay in view. */
const maxShown = 8;

export interface PalettePage {
  readonly path: string;
  readonly name: string;
}

interface Entry {
  readonly key: string;
  readonly group: string;
  readonly label: string;
  readonly hint?: string;
  readonly to: string;
}

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

/** One search over pages, actions, agents, conversations and messages; Enter opens the selected one. */
export function Palette({ pages, onClose }: PaletteProps) {
  const { chats } = useSession();
  const [query, setQuery] = useState('');
  const [selected, setSelected] = useState(0);
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  // After the dialog has opened, which focuses its first button.
  useEffect(() => field.current?.focus(), []);
  const entries = useEntries(pages, query);
  const at = Math.min(selected, entries.length - 1);

  function follow(entry: Entry | undefined): void {
    if (entry === undefined) return;
    onClose();
    if (entry.key === 'new-chat') chats.begin();
    navigate(entry.to);
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.nativeEvent.isComposing) return;
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0 && entries.length > 0) {
      event.preventDefault();
      setSelected((at + step + entries.length) % entries.length);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      follow(entries[at]);
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
          placeholder={t('Pages, agents, conversations, messages')}
          value={query}
          onChange={(event) => {
            setQuery(event.target.value);
            setSelected(0);
          }}
          onKeyDown={onKeyDown}
        />
        <ul id={`${id}-list`} role="listbox" aria-label={t('Results')}>
          {entries.map((entry, index) => (
            <li
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
              <span className="hint cut">{entry.hint ?? entry.group}</span>
            </li>
          ))}
        </ul>
        {entries.length === 0 && <p className="hint pad">{t('Nothing found.')}</p>}
      </div>
    </Dialog>
  );
}

const scrollIntoView = (element: HTMLElement | null): void => element?.scrollIntoView({ block: 'nearest' });

function useEntries(pages: readonly PalettePage[], query: string): readonly Entry[] {
  const { client, agents, agentNames } = useSession();
  const agentIds = useStore(agents);
  const names = useStore(agentNames);
  const wanted = query.trim();
  const settled = useSettled(query);
  const conversations = useConversations(maxConversations, {}).data?.sessions;
  const found = useLoad(
    ['palette.search', settled],
    async (signal) => (settled.length < 2 ? undefined : client.call('session.search', { query: settled, limit: maxHits }, { signal })),
    { keepsPrevious: ([name]) => name === 'palette.search' },
  ).data;
  return useMemo(() => {
    const terms = wanted.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    const matching = (entries: readonly Entry[]): readonly Entry[] =>
      entries.filter(({ label, hint = '' }) => terms.every((term) => `${label} ${hint}`.toLocaleLowerCase().includes(term))).slice(0, maxShown);
    const actions: Entry[] = [{ key: 'new-chat', group: t('Actions'), label: t('New chat'), to: '/chat' }];
    const hits = found?.mode === 'search' && wanted !== '' ? found.results : [];
    return [
      ...matching(actions),
      ...matching(pages.map(({ path, name }) => ({ key: path, group: t('Pages'), label: name, to: path }))),
      ...matching(
        agentIds.map((agentId) => ({
          key: `agent ${agentId}`,
          group: t('Agents'),
          label: names.get(agentId) ?? agentId,
          hint: agentId,
          to: `/agents/${agentId}`,
        })),
      ),
      ...matching(
        (conversations ?? []).map(({ conversationRef, title, sessionKey, agentId, updatedAt }) => ({
          key: conversationRef,
          group: t('Conversations'),
          label: title ?? sessionKey,
          hint: `${names.get(agentId) ?? agentId} · ${ago(updatedAt)}`,
          to: `/chat/${conversationRef}`,
        })),
      ),
      ...hits.slice(0, maxShown).map(({ conversationRef, seq, title, sessionKey, snippet }): Entry => ({
        key: `${conversationRef} ${seq}`,
        group: t('Messages'),
        label: title ?? sessionKey,
        hint: snippet,
        to: `/conversations/${conversationRef}/${seq}`,
      })),
    ];
  }, [wanted, pages, agentIds, names, conversations, found]);
}

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
