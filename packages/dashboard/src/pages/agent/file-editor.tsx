import { t } from '../../language.ts';
import { type Client, GatehouseError } from '@gatehouse/client';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { bytes } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { useLeaveGuard } from '../../router.ts';
import { diffTexts } from '../../ui/diff.ts';
import { DiffView, TextView } from '../../ui/diff-view.tsx';
import { Confirm, Dialog } from '../../ui/dialog.tsx';
import { Badge, Button, Failure, Notice, Skeleton } from '../../ui/parts.tsx';
import type { Template } from './file-tree.tsx';

interface EditorProps {
  readonly agentId: string;
  readonly path: string;
  readonly isNew: boolean;
  /** Set for a file that can be reset to a default. */
  readonly template: Template | undefined;
  readonly onWritten: (text: string) => void;
  readonly onGone: (text: string) => void;
}

/** Browsers lay out a text field as a whole: beyond this size, typing blocks the page. */
const maxEditedLength = 100_000;
const maxEditedLines = 2000;

/** Returns the stored text; undefined when there is no file. */
async function readStored(client: Client, agentId: string, filePath: string, signal?: AbortSignal): Promise<string | undefined> {
  try {
    return (await client.call('workspace.readFile', { agentId, filePath }, { signal })).content;
  } catch (error) {
    if (error instanceof GatehouseError && error.code === 'not_found') return undefined;
    throw error;
  }
}

/** Edits a text file; shows the difference to the stored text before writing. */
export function FileEditor(props: EditorProps) {
  const { agentId, path } = props;
  const { client } = useSession();
  const found = useLoad(['workspace.readFile', agentId, path], async (signal) => ({ stored: await readStored(client, agentId, path, signal) }));
  if (found.error !== undefined) return <Failure error={found.error} title={path} onRetry={found.reload} />;
  if (found.data === undefined) return <Skeleton lines={6} />;
  const { stored } = found.data;
  return isLarge(stored ?? '') ? <LargeFile path={path} text={stored ?? ''} /> : <Editor {...props} loaded={stored} />;
}

function isLarge(text: string): boolean {
  if (text.length > maxEditedLength) return true;
  let lines = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines > maxEditedLines;
}

function LargeFile({ path, text }: { readonly path: string; readonly text: string }) {
  return (
    <section className="file-editor" aria-label={t('File {path}', { path })}>
      <header className="panel-head">
        <h2 className="mono">{path}</h2>
        <Badge>{bytes(new Blob([text]).size)}</Badge>
      </header>
      <Notice>{t('This file is too large to edit here. Use the command line: gatehouse workspace write.')}</Notice>
      <TextView text={text} label={t('Content of {path}', { path })} />
    </section>
  );
}

function Editor({ agentId, path, isNew, template, onWritten, onGone, loaded }: EditorProps & { readonly loaded: string | undefined }) {
  const { client } = useSession();
  const [base, setBase] = useState(loaded);
  const [text, setText] = useState(loaded ?? '');
  const [asked, setAsked] = useState<{ readonly stored: string | undefined } | 'delete' | 'reset'>();
  const { busy, error, run } = useAction();
  const unsaved = text !== (base ?? '');
  useLeaveGuard(unsaved, t('{path} has unsaved changes. Leave anyway?', { path }));
  const close = (): void => setAsked(undefined);

  const review = (): void => run(async () => setAsked({ stored: await readStored(client, agentId, path) }));
  const write = async (): Promise<void> => {
    await client.call('workspace.writeFile', { agentId, filePath: path, content: text });
    setBase(text);
    onWritten(t('Saved {path}.', { path }));
  };

  return (
    <section className="file-editor" aria-label={t('File {path}', { path })}>
      <header className="panel-head">
        <h2 className="mono">{path}</h2>
        {base === undefined && <Badge tone="accent">{t('new')}</Badge>}
        {unsaved && <Badge tone="warn">{t('unsaved')}</Badge>}
        <span className="grow" />
        {template !== undefined && base !== undefined && (
          <Button small onClick={() => setAsked('reset')}>
            {t('Reset to template')}
          </Button>
        )}
        {base !== undefined && (
          <Button small icon="trash" onClick={() => setAsked('delete')}>
            {t('Delete')}
          </Button>
        )}
        <Button small look="primary" disabled={busy || (!unsaved && !(isNew && base === undefined))} onClick={review}>
          {t('Compare and save')}
        </Button>
      </header>
      {error !== undefined && <Failure error={error} />}
      {isNew && base !== undefined && text === base && <Notice>{t('A file with this name already exists.')}</Notice>}
      <textarea
        className="editor"
        aria-label={t('Content of {path}', { path })}
        rows={22}
        spellCheck={false}
        autoCapitalize="off"
        autoCorrect="off"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <p className="hint">{`${bytes(new Blob([text]).size)}${template === undefined ? '' : t('; part of the system prompt in each turn')}`}</p>
      {typeof asked === 'object' && <WriteDialog path={path} base={base} stored={asked.stored} text={text} write={write} onClose={close} />}
      {asked === 'delete' && (
        <Confirm
          title={t('Delete {path}?', { path })}
          action={t('Delete')}
          onClose={close}
          run={async () => {
            await client.call('workspace.deleteFile', { agentId, filePath: path });
            onGone(t('Deleted {path}.', { path }));
          }}
        >
          <p>{t('The last committed version can be restored.')}</p>
        </Confirm>
      )}
      {asked === 'reset' && (
        <Confirm
          title={t('Reset {path} to its template?', { path })}
          action={t('Reset')}
          onClose={close}
          run={async () => {
            await client.call('workspace.resetFile', { agentId, fileName: path });
            onGone(t('Reset {path} to its template.', { path }));
          }}
        >
          <p>{t('Changes that were not committed are lost.')}</p>
        </Confirm>
      )}
    </section>
  );
}

/** Shows the difference to the stored text, and warns when someone else has changed it in the meantime. */
function WriteDialog({
  path,
  base,
  stored,
  text,
  write,
  onClose,
}: {
  readonly path: string;
  readonly base: string | undefined;
  readonly stored: string | undefined;
  readonly text: string;
  readonly write: () => Promise<void>;
  readonly onClose: () => void;
}) {
  const { busy, error, run } = useAction();
  const [hunks] = useState(() => diffTexts(stored ?? '', text));
  return (
    <Dialog title={t('Save {path}?', { path })} onClose={onClose} wide>
      <div className="dialog-body">
        {stored !== base && (
          <Notice tone="warn">{t('The file has changed since you opened it. The difference to the current version is shown.')}</Notice>
        )}
        {hunks.length === 0 ? (
          <p>{stored === undefined ? t('This creates an empty file.') : t('There are no changes.')}</p>
        ) : (
          <DiffView hunks={hunks} label={t('Changes to {path}', { path })} />
        )}
      </div>
      {error !== undefined && <Failure error={error} />}
      <footer>
        <Button onClick={onClose}>{t('Cancel')}</Button>
        <Button look="primary" disabled={busy} onClick={() => run(() => write().then(onClose))}>
          {busy ? t('Saving…') : t('Save')}
        </Button>
      </footer>
    </Dialog>
  );
}
