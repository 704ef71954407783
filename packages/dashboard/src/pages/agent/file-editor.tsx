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
    <section className="file-editor" aria-label={`File ${path}`}>
      <header className="panel-head">
        <h2 className="mono">{path}</h2>
        <Badge>{bytes(new Blob([text]).size)}</Badge>
      </header>
      <Notice>This file is too large to edit here. Use the command line: gatehouse workspace write.</Notice>
      <TextView text={text} label={`Content of ${path}`} />
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
  useLeaveGuard(unsaved, `${path} has unsaved changes. Leave anyway?`);
  const close = (): void => setAsked(undefined);

  const review = (): void => run(async () => setAsked({ stored: await readStored(client, agentId, path) }));
  const write = async (): Promise<void> => {
    await client.call('workspace.writeFile', { agentId, filePath: path, content: text });
    setBase(text);
    onWritten(`Saved ${path}.`);
  };

  return (
    <section className="file-editor" aria-label={`File ${path}`}>
      <header className="panel-head">
        <h2 className="mono">{path}</h2>
        {base === undefined && <Badge tone="accent">new</Badge>}
        {unsaved && <Badge tone="warn">unsaved</Badge>}
        <span className="grow" />
        {template !== undefined && base !== undefined && (
          <Button small onClick={() => setAsked('reset')}>
            Reset to template
          </Button>
        )}
        {base !== undefined && (
          <Button small icon="trash" onClick={() => setAsked('delete')}>
            Delete
          </Button>
        )}
        <Button small look="primary" disabled={busy || (!unsaved && !(isNew && base === undefined))} onClick={review}>
          Compare and save
        </Button>
      </header>
      {error !== undefined && <Failure error={error} />}
      {isNew && base !== undefined && text === base && <Notice>A file with this name already exists.</Notice>}
      <textarea
        className="editor"
        aria-label={`Content of ${path}`}
        rows={22}
        spellCheck={false}
        autoCapitalize="off"
        autoCorrect="off"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <p className="hint">{`${bytes(new Blob([text]).size)}${template === undefined ? '' : '; part of the system prompt in each turn'}`}</p>
      {typeof asked === 'object' && <WriteDialog path={path} base={base} stored={asked.stored} text={text} write={write} onClose={close} />}
      {asked === 'delete' && (
        <Confirm
          title={`Delete ${path}?`}
          action="Delete"
          onClose={close}
          run={async () => {
            await client.call('workspace.deleteFile', { agentId, filePath: path });
            onGone(`Deleted ${path}.`);
          }}
        >
          <p>The last committed version can be restored.</p>
        </Confirm>
      )}
      {asked === 'reset' && (
        <Confirm
          title={`Reset ${path} to its template?`}
          action="Reset"
          onClose={close}
          run={async () => {
            await client.call('workspace.resetFile', { agentId, fileName: path });
            onGone(`Reset ${path} to its template.`);
          }}
        >
          <p>Changes that were not committed are lost.</p>
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
    <Dialog title={`Save ${path}?`} onClose={onClose} wide>
      <div className="dialog-body">
        {stored !== base && <Notice tone="warn">The file has changed since you opened it. The difference to the current version is shown.</Notice>}
        {hunks.length === 0 ? (
          <p>{stored === undefined ? 'This creates an empty file.' : 'There are no changes.'}</p>
        ) : (
          <DiffView hunks={hunks} label={`Changes to ${path}`} />
        )}
      </div>
      {error !== undefined && <Failure error={error} />}
      <footer>
        <Button onClick={onClose}>Cancel</Button>
        <Button look="primary" disabled={busy} onClick={() => run(() => write().then(onClose))}>
          {busy ? 'Saving…' : 'Save'}
        </Button>
      </footer>
    </Dialog>
  );
}
