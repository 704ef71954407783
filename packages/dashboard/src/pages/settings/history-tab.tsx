import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, dateTime } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { GitDiffView } from '../../ui/diff-view.tsx';
import { Badge, Button, Empty, Failure, Notice, Skeleton } from '../../ui/parts.tsx';
import type { Config } from '../../data/use-config.ts';

export type Version = Result<'config.history'>['entries'][number];

const origins: Readonly<Record<Version['from'], string>> = {
  rpc: t('over the network'),
  cli: t('command line'),
  file: 'file',
  rollback: 'rollback',
  agents: 'agents',
};
const pageSize = 25;
const mostVersions = 200;

/** The versions of config.yaml, with what each changed; an earlier one can be restored. */
export function HistoryTab({ config: { digest } }: { readonly config: Config }) {
  const { client } = useSession();
  const [limit, setLimit] = useState(pageSize);
  // One more, to compare the last one with.
  const loaded = useLoad(
    ['config.history', limit, digest],
    async (signal) => (await client.call('config.history', { limit: Math.min(mostVersions, limit + 1) }, { signal })).entries,
    { changedBy: ['config:patched'], keepsPrevious: () => true },
  );
  const [shown, setShown] = useState<Version>();
  const [restoring, setRestoring] = useState<Version>();
  const [restored, setRestored] = useState<string>();
  const versions = loaded.data ?? [];
  return (
    <>
      <div role="status">{restored !== undefined && <Notice tone="good">{restored}</Notice>}</div>
      {loaded.error !== undefined && <Failure error={loaded.error} onRetry={loaded.reload} />}
      {loaded.data === undefined && loaded.loading && <Skeleton lines={8} />}
      {loaded.data?.length === 0 && <Empty title={t('No versions')} />}
      {versions.length > 0 && (
        <ul className="rows" aria-label={t('Versions of config.yaml')}>
          {versions.slice(0, limit).map((version, index) => (
            <li key={version.version} className="row">
              <div className="row-main">
                <button type="button" className="link-like row-title" onClick={() => setShown(version)}>
                  {version.message}
                </button>
                <p className="facts-line">
                  <span>{tx('Version {version}', { version: version.version })}</span>
                  <span title={dateTime(version.timestamp)}>{ago(version.timestamp)}</span>
                  <span>{version.metadata.user}</span>
                </p>
              </div>
              <div className="row-facts">
                {index === 0 && <Badge tone="accent">{t('current')}</Badge>}
                <Badge>{origins[version.from]}</Badge>
              </div>
              <div className="row-actions">
                {index > 0 && (
                  <Button
                    small
                    look="quiet"
                    label={t('Roll back to version {version}', { version: version.version })}
                    onClick={() => setRestoring(version)}
                  >
                    {t('Roll back')}
                  </Button>
                )}
              </div>
            </li>
          ))}
        </ul>
      )}
      {versions.length > limit && <Button onClick={() => setLimit(Math.min(mostVersions, limit + pageSize))}>{t('Show earlier versions')}</Button>}
      {shown !== undefined && (
        <VersionDialog
          version={shown}
          earlier={versions[versions.indexOf(shown) + 1]}
          isNewest={shown === versions[0]}
          onClose={() => setShown(undefined)}
        />
      )}
      {restoring !== undefined && (
        <RollbackDialog
          version={restoring}
          onClose={() => setRestoring(undefined)}
          onDone={(text) => {
            setRestored(text);
            setRestoring(undefined);
            loaded.reload();
          }}
        />
      )}
    </>
  );
}

/** What a version changed, and how config.yaml differs from it now. */
function VersionDialog({
  version,
  earlier,
  isNewest,
  onClose,
}: {
  readonly version: Version;
  readonly earlier: Version | undefined;
  readonly isNewest: boolean;
  readonly onClose: () => void;
}) {
  const { client } = useSession();
  const [isNow, setNow] = useState(earlier === undefined);
  const loaded = useLoad(['config.diff', version.sha, isNow], async (signal) => {
    const params = isNow || earlier === undefined ? { sha: version.sha } : { sha: earlier.sha, to: version.sha };
    return (await client.call('config.diff', params, { signal })).diff;
  });
  return (
    <Dialog title={t('Version {version}', { version: version.version })} onClose={onClose} wide>
      <div className="dialog-body">
        <p className="facts-line">
          <span>{version.message}</span>
          <span>{dateTime(version.timestamp)}</span>
          <span>{version.metadata.user}</span>
          <span>{origins[version.from]}</span>
        </p>
        {!isNewest && earlier !== undefined && (
          <div className="chips" role="group" aria-label={t('Compare')}>
            <button type="button" className="chip" aria-pressed={!isNow} onClick={() => setNow(false)}>
              {t('What it changed')}
            </button>
            <button type="button" className="chip" aria-pressed={isNow} onClick={() => setNow(true)}>
              {t('Changes since then')}
            </button>
          </div>
        )}
        {loaded.error !== undefined && <Failure error={loaded.error} onRetry={loaded.reload} />}
        {loaded.data === undefined && loaded.loading && <Skeleton lines={6} />}
        {loaded.data === '' && <p className="hint">{t('No difference.')}</p>}
        {loaded.data !== undefined && loaded.data !== '' && (
          <GitDiffView text={loaded.data} label={t('Changes of version {version}', { version: version.version })} />
        )}
      </div>
    </Dialog>
  );
}

/** Shows what a rollback would change, and makes it after a confirmation. */
function RollbackDialog({
  version,
  onClose,
  onDone,
}: {
  readonly version: Version;
  readonly onClose: () => void;
  readonly onDone: (text: string) => void;
}) {
  const { client } = useSession();
  const { busy, error, run } = useAction();
  const [isConfirmed, setConfirmed] = useState(false);
  const preview = useLoad(['config.rollback', version.sha], (signal) =>
    client.call('config.rollback', { sha: version.sha, dryRun: true, confirm: true }, { signal }),
  );
  const guarded = preview.data?.protected ?? [];
  const restore = async (): Promise<void> => {
    const { restart, version: number } = await client.call('config.rollback', { sha: version.sha, ...(guarded.length > 0 && { confirm: true }) });
    onDone(
      t('Version {version} is back, as version {number}.{restart}', {
        version: version.version,
        number,
        restart: restart.length === 0 ? '' : ` ${t('In force after a restart: {restart}.', { restart: restart.join(', ') })}`,
      }),
    );
  };
  return (
    <Dialog title={t('Roll back to version {version}?', { version: version.version })} onClose={onClose} wide>
      <div className="dialog-body">
        <p>
          {tx('config.yaml becomes again what it was {timestamp}, byte for byte. Nothing is lost: it is a new version of the history.', {
            timestamp: ago(version.timestamp),
          })}
        </p>
        {preview.error !== undefined && <Failure error={preview.error} onRetry={preview.reload} />}
        {preview.data === undefined && preview.loading && <Skeleton lines={5} />}
        {preview.data !== undefined && (
          <>
            {preview.data.restart.length > 0 && (
              <p>{tx('After a restart: {span}', { span: <span className="mono">{preview.data.restart.join(', ')}</span> })}</p>
            )}
            {(preview.data.diff ?? '') === '' ? (
              <p className="hint">{t('No difference.')}</p>
            ) : (
              <GitDiffView text={preview.data.diff ?? ''} label={t('Changes of config.yaml')} />
            )}
          </>
        )}
        {guarded.length > 0 && (
          <label className="check guarded">
            <input type="checkbox" checked={isConfirmed} onChange={({ target }) => setConfirmed(target.checked)} />
            <span>{tx('I confirm the change of protected keys: {span}', { span: <span className="mono">{guarded.join(', ')}</span> })}</span>
          </label>
        )}
      </div>
      {error !== undefined && <Failure error={error} />}
      <footer>
        <Button onClick={onClose}>{t('Cancel')}</Button>
        <Button look="primary" disabled={busy || preview.data === undefined || (guarded.length > 0 && !isConfirmed)} onClick={() => run(restore)}>
          {busy ? t('Working…') : t('Roll back')}
        </Button>
      </footer>
    </Dialog>
  );
}
