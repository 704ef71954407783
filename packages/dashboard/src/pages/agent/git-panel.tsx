import { t } from '../../language.ts';
import { type Client, GatehouseError } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, dateTime, plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { GitDiffView } from '../../ui/diff-view.tsx';
import { Confirm, Dialog } from '../../ui/dialog.tsx';
import { Badge, Button, Failure, Notice, Skeleton, type Tone } from '../../ui/parts.tsx';

type GitStatus = Result<'workspace.git.status'>;
type Commit = Result<'workspace.git.log'>['commits'][number];

interface State {
  readonly status: GitStatus;
  readonly commits: readonly Commit[];
}

const tones: Readonly<Record<string, Tone>> = { untracked: 'accent', added: 'good', modified: 'warn', deleted: 'bad' };
const shownEntries = 100;

async function loadState(client: Client, agentId: string, signal: AbortSignal): Promise<State> {
  const [status, log] = await client.batch(
    [
      { method: 'workspace.git.status', params: { agentId } },
      { method: 'workspace.git.log', params: { agentId, limit: 20 } },
    ],
    { signal },
  );
  if (!status.ok) throw status.error;
  if (!log.ok) throw log.error;
  return { status: status.result, commits: log.result.commits };
}

/** Shows uncommitted changes and the commit history. */
export function GitPanel({
  agentId,
  round,
  onRestored,
}: {
  readonly agentId: string;
  readonly round: number;
  readonly onRestored: (path: string) => void;
}) {
  const { client } = useSession();
  const state = useLoad(['workspace.git.status', 'workspace.git.log', agentId, round], (signal) => loadState(client, agentId, signal));
  const [outcome, setOutcome] = useState<string>();
  // Survives a reload of the list, which removes the form for a moment.
  const [message, setMessage] = useState('');
  const [asked, setAsked] = useState<{ readonly diff: string | undefined } | { readonly restore: string }>();
  const close = (): void => setAsked(undefined);
  const committed = (sha: string): void => {
    setOutcome(t('Committed as {sha}.', { sha: sha.slice(0, 10) }));
    setMessage('');
    state.reload();
  };
  const { data } = state;
  return (
    <section className="panel" aria-label={t('Git')}>
      <div className="panel-head">
        <h2>{t('History')}</h2>
        {data !== undefined && <Badge>{data.status.branch}</Badge>}
        {data !== undefined && (
          <span className="hint">
            {data.status.clean ? t('No uncommitted changes') : `${plural(data.status.entries.length, 'uncommitted file')}`}
          </span>
        )}
        <span className="grow" />
        {data !== undefined && !data.status.clean && (
          <Button small onClick={() => setAsked({ diff: undefined })}>
            {t('Show all changes')}
          </Button>
        )}
      </div>
      {state.error !== undefined && <GitFailure error={state.error} onRetry={state.reload} />}
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {data === undefined && state.loading && <Skeleton lines={3} />}
      {data !== undefined && !data.status.clean && (
        <>
          <ChangedFiles entries={data.status.entries} onDiff={(diff) => setAsked({ diff })} onRestore={(restore) => setAsked({ restore })} />
          <CommitForm agentId={agentId} message={message} onMessage={setMessage} onBegin={() => setOutcome(undefined)} onCommitted={committed} />
        </>
      )}
      {data !== undefined && data.commits.length > 0 && <Commits commits={data.commits} />}
      {asked !== undefined && 'diff' in asked && <DiffDialog agentId={agentId} filePath={asked.diff} onClose={close} />}
      {asked !== undefined && 'restore' in asked && (
        <Confirm
          title={t('Restore {restore}?', { restore: asked.restore })}
          action={t('Restore')}
          onClose={close}
          run={async () => {
            await client.call('workspace.git.restore', { agentId, filePath: asked.restore });
            onRestored(asked.restore);
          }}
        >
          <p>{t('The file returns to the last commit; later changes are lost.')}</p>
        </Confirm>
      )}
    </section>
  );
}

/** Lists uncommitted files. */
function ChangedFiles({
  entries,
  onDiff,
  onRestore,
}: {
  readonly entries: GitStatus['entries'];
  readonly onDiff: (path: string) => void;
  readonly onRestore: (path: string) => void;
}) {
  return (
    <>
      <ul className="history">
        {entries.slice(0, shownEntries).map(({ path, status }) => (
          <li key={path} className="git-entry">
            <Badge tone={tones[status] ?? 'neutral'}>{status}</Badge>
            <span className="mono cut">{path}</span>
            <span className="grow" />
            {status !== 'untracked' && (
              <>
                <Button small label={t('Show changes to {path}', { path })} onClick={() => onDiff(path)}>
                  {t('Changes')}
                </Button>
                <Button small label={t('Restore {path}', { path })} onClick={() => onRestore(path)}>
                  {t('Restore')}
                </Button>
              </>
            )}
          </li>
        ))}
      </ul>
      {entries.length > shownEntries && <p className="hint">{t('and {files} more', { files: plural(entries.length - shownEntries, 'file') })}</p>}
    </>
  );
}

function CommitForm({
  agentId,
  message,
  onMessage,
  onBegin,
  onCommitted,
}: {
  readonly agentId: string;
  readonly message: string;
  readonly onMessage: (message: string) => void;
  readonly onBegin: () => void;
  readonly onCommitted: (sha: string) => void;
}) {
  const { client } = useSession();
  const { busy, error, run } = useAction();
  const commit = async (): Promise<void> => {
    onBegin();
    const { sha } = await client.call('workspace.git.commit', { agentId, ...(message.trim() !== '' && { message: message.trim() }) });
    onCommitted(sha);
  };
  return (
    <>
      {error !== undefined && <Failure error={error} />}
      <form
        className="commit-form"
        onSubmit={(event) => {
          event.preventDefault();
          run(commit);
        }}
      >
        <input
          aria-label={t('Commit message')}
          placeholder={t('What changed, and why')}
          maxLength={500}
          value={message}
          onChange={(event) => onMessage(event.target.value)}
        />
        <Button submit disabled={busy}>
          {busy ? t('Committing…') : t('Commit all')}
        </Button>
      </form>
    </>
  );
}

function Commits({ commits }: { readonly commits: readonly Commit[] }) {
  return (
    <ol className="history" aria-label={t('Commits')}>
      {commits.map(({ sha, author, date, message: text }) => (
        <li key={sha}>
          <p dir="auto" className="commit-text">
            {text}
          </p>
          <span className="hint">
            <span className="mono">{sha.slice(0, 10)}</span>
            {` ${t('by {author},', { author })} `}
            <time dateTime={date} title={dateTime(Date.parse(date))}>
              {ago(Date.parse(date))}
            </time>
          </span>
        </li>
      ))}
    </ol>
  );
}

/** Treats a workspace without a repository as empty, not as an error. */
function GitFailure({ error, onRetry }: { readonly error: unknown; readonly onRetry: () => void }) {
  if (error instanceof GatehouseError && error.code === 'precondition_failed') return <p className="hint">{error.message}</p>;
  return <Failure error={error} onRetry={onRetry} />;
}

function DiffDialog({
  agentId,
  filePath,
  onClose,
}: {
  readonly agentId: string;
  readonly filePath: string | undefined;
  readonly onClose: () => void;
}) {
  const { client } = useSession();
  const found = useLoad(['workspace.git.diff', agentId, filePath], (signal) => client.call('workspace.git.diff', { agentId, filePath }, { signal }));
  return (
    <Dialog title={filePath === undefined ? t('All changes') : t('Changes to {filePath}', { filePath })} onClose={onClose} wide>
      <div className="dialog-body">
        {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
        {found.data === undefined && found.loading && <Skeleton lines={5} />}
        {found.data !== undefined &&
          (found.data.diff === '' ? (
            <p>{t('No changes to committed files.')}</p>
          ) : (
            <GitDiffView text={found.data.diff} label={t('Changes since the last commit')} />
          ))}
      </div>
    </Dialog>
  );
}
