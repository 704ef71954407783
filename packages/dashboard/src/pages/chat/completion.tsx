import { t } from '../../language.ts';
import { type KeyboardEvent, type Ref, type RefObject, useEffect, useImperativeHandle, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { usePrompts } from '../../data/prompts.ts';
import { useStore } from '../../data/store.ts';
import { useLoad } from '../../data/use-load.ts';
import type { ChatCommand } from './chat-commands.ts';
import { asked, type Asked } from './completion-text.ts';

export interface CompletionHandle {
  /** Looks again at what is before the cursor. */
  refresh(): void;
  close(): void;
  /** Returns true when the list has used the key. */
  onKey(event: KeyboardEvent): boolean;
}

interface Candidate {
  /** What replaces the text that is completed. */
  readonly insert: string;
  readonly label: string;
  readonly text: string;
  /** What is typed for it, where that is not what replaces the text. */
  readonly name?: string;
  /** A folder is completed further. */
  readonly continues?: true;
}

interface CompletionProps {
  readonly ref: Ref<CompletionHandle>;
  readonly listId: string;
  readonly field: RefObject<HTMLTextAreaElement | null>;
  readonly text: string;
  readonly agentId: string;
  readonly commands: readonly ChatCommand[];
  readonly onComplete: (text: string) => void;
  /** Receives the id of the marked candidate. */
  readonly onActive: (id: string | undefined) => void;
}

const maxShown = 8;
const maxPreview = 80;

/** Completes `/` to commands, skills and saved prompts, and `@` to agents and files of the workspace, above the message field. */
export function Completion(props: CompletionProps) {
  const { ref, field, text, onActive } = props;
  const [given, setGiven] = useState<Asked>();
  const [handle, setHandle] = useState<(event: KeyboardEvent) => boolean>();

  const refresh = (): void => {
    const { current: area } = field;
    const next = area === null || area.selectionStart !== area.selectionEnd ? undefined : asked(area.value, area.selectionStart);
    setGiven((before) => (before?.query === next?.query && before?.start === next?.start && before?.kind === next?.kind ? before : next));
  };
  const close = (): void => {
    setGiven(undefined);
    onActive(undefined);
  };
  useImperativeHandle(ref, () => ({ refresh, close, onKey: (event) => given !== undefined && handle?.(event) === true }));
  if (given === undefined || text.length < given.end) return null;
  const list = { ...props, given, onKeys: (onKey: (event: KeyboardEvent) => boolean) => setHandle(() => onKey), onClose: close };
  return given.kind === 'command' ? <Commands {...list} /> : <Names {...list} />;
}

interface ListProps extends CompletionProps {
  readonly given: Asked;
  readonly onKeys: (onKey: (event: KeyboardEvent) => boolean) => void;
  readonly onClose: () => void;
}

function Commands(props: ListProps) {
  const { client } = useSession();
  const { commands, given, agentId } = props;
  const skills = useLoad(['skills.list', agentId], (signal) => client.call('skills.list', { agentId }, { signal }), { changedBy: ['skill:'] });
  const prompts = usePrompts();
  const candidates: Candidate[] = [
    ...commands.map(({ name, argument, text }) => ({ insert: `/${name} `, label: `/${name}${argument === undefined ? '' : ` ${argument}`}`, text })),
    ...(skills.data?.skills ?? [])
      .filter(({ state, userInvocable }) => state === 'active' && userInvocable)
      .map(({ name, description }) => ({ insert: `/${name} `, label: `/${name}`, text: description })),
    ...(prompts.data ?? []).map(({ name, text }) => ({
      insert: text,
      name,
      label: `/${name}`,
      text: text.replaceAll(/\s+/g, ' ').slice(0, maxPreview),
    })),
  ];
  const wanted = given.query.toLowerCase();
  return <Candidates {...props} candidates={candidates.filter(({ insert, name = insert.slice(1) }) => name.toLowerCase().startsWith(wanted))} />;
}

function Names(props: ListProps) {
  const session = useSession();
  const { given, agentId } = props;
  const agents = useStore(session.agents);
  const folder = given.query.slice(0, given.query.lastIndexOf('/') + 1).replace(/\/$/, '');
  const listed = useLoad(['workspace.listDir', agentId, folder], (signal) =>
    session.client.call('workspace.listDir', { agentId, ...(folder !== '' && { subdir: folder }) }, { signal }),
  );
  const inFolder = folder === '' ? '' : `${folder}/`;
  const candidates: Candidate[] = [
    ...(folder === '' ? agents.map((id) => ({ insert: `@${id} `, label: `@${id}`, text: t('Agent') })) : []),
    ...(listed.data?.entries ?? [])
      .filter(({ name }) => !name.startsWith('.'))
      .map(({ name, type }) =>
        type === 'directory'
          ? { insert: `@${inFolder}${name}/`, label: `${inFolder}${name}/`, text: t('Folder'), continues: true as const }
          : { insert: `${inFolder}${name} `, label: `${inFolder}${name}`, text: t('File of the workspace') },
      ),
  ];
  const wanted = given.query.toLowerCase();
  return <Candidates {...props} candidates={candidates.filter(({ label }) => label.replace(/^@/, '').toLowerCase().startsWith(wanted))} />;
}

function Candidates({
  candidates,
  given,
  text,
  listId,
  field,
  onComplete,
  onActive,
  onKeys,
  onClose,
}: ListProps & { readonly candidates: readonly Candidate[] }) {
  const shown = candidates.slice(0, maxShown);
  const [marked, setMarked] = useState(0);
  const at = Math.min(marked, shown.length - 1);
  const idOf = (index: number): string => `${listId}-${index}`;

  /** What the field has now: keys that follow each other fast come before the selection is announced. */
  function current(): { readonly value: string; readonly range: Asked } {
    const area = field.current;
    const range = area === null ? undefined : asked(area.value, area.selectionStart);
    return area === null || range === undefined ? { value: text, range: given } : { value: area.value, range };
  }
  function take({ insert, continues }: Candidate): void {
    const { value, range } = current();
    const end = range.start + insert.length;
    onComplete(value.slice(0, range.start) + insert + value.slice(range.end));
    if (continues !== true) onClose();
    // The field has its new text after the next drawing.
    requestAnimationFrame(() => {
      field.current?.focus();
      field.current?.setSelectionRange(end, end);
    });
  }
  function onKey(event: KeyboardEvent): boolean {
    const candidate = shown[at];
    if (candidate === undefined || event.nativeEvent.isComposing) return false;
    // A complete name is sent, not completed.
    const { value, range } = current();
    const isWhole = candidate.insert.trimEnd() === value.slice(range.start, range.end);
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') setMarked((at + (event.key === 'ArrowDown' ? 1 : shown.length - 1)) % shown.length);
    else if (event.key === 'Tab' || (event.key === 'Enter' && !event.shiftKey && !isWhole)) take(candidate);
    else if (event.key === 'Escape') onClose();
    else return false;
    event.preventDefault();
    return true;
  }
  useEffect(() => onKeys(onKey));
  useEffect(() => onActive(at < 0 ? undefined : `${listId}-${at}`), [at, listId, onActive]);
  if (shown.length === 0) return null;
  return (
    <ul className="completions" id={listId} role="listbox" aria-label={t('Completions')}>
      {shown.map((candidate, index) => (
        <li
          key={`${candidate.label} ${candidate.name === undefined}`}
          id={idOf(index)}
          role="option"
          aria-selected={index === at}
          // The field keeps the focus.
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => take(candidate)}
        >
          <span className="mono">{candidate.label}</span> <span className="hint">{candidate.text}</span>
        </li>
      ))}
    </ul>
  );
}
