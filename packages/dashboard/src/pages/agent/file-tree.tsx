import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useEffect, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { bytes, dateTime } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { Icon } from '../../ui/icon.tsx';
import { Badge, Failure, Skeleton } from '../../ui/parts.tsx';

export type Template = Result<'workspace.status'>['files'][number];

interface TreeProps {
  readonly agentId: string;
  /** Counts changes made on this page: each one reloads the open folders. */
  readonly round: number;
  readonly templates: readonly Template[];
  readonly current: string | undefined;
  readonly onOpen: (path: string) => void;
}

/** Entries shown at once in a folder. */
const pageSize = 200;

/** The files of a workspace; a folder is loaded when it is opened. */
export function FileTree(props: TreeProps) {
  return (
    <nav className="file-tree" aria-label={t('Files')}>
      <Folder {...props} path={undefined} />
    </nav>
  );
}

function Folder({ path, ...props }: TreeProps & { readonly path: string | undefined }) {
  const { agentId, round, templates, current, onOpen } = props;
  const { client } = useSession();
  const [limit, setLimit] = useState(pageSize);
  const [openFolders, setOpenFolders] = useState<ReadonlySet<string>>(
    () => new Set(current?.includes('/') === true ? [current.split('/')[0] ?? ''] : []),
  );
  const listed = useLoad(['workspace.listDir', agentId, path], (signal) => client.call('workspace.listDir', { agentId, subdir: path }, { signal }));
  const { reload } = listed;
  useEffect(() => {
    if (round > 0) reload();
  }, [round, reload]);
  if (listed.error !== undefined) return <Failure error={listed.error} onRetry={listed.reload} />;
  if (listed.data === undefined) return <Skeleton lines={3} />;
  const entries = listed.data.entries.toSorted((a, b) => Number(b.type === 'directory') - Number(a.type === 'directory'));
  const toggle = (name: string): void => {
    const next = new Set(openFolders);
    if (!next.delete(name)) next.add(name);
    setOpenFolders(next);
  };
  return (
    <ul>
      {entries.length === 0 && <li className="hint">{t('Empty')}</li>}
      {entries.slice(0, limit).map(({ name, type, sizeBytes, modifiedAt }) => {
        const whole = path === undefined ? name : `${path}/${name}`;
        const isOpen = openFolders.has(name);
        const template = path === undefined ? templates.find((one) => one.name === name) : undefined;
        if (type === 'directory')
          return (
            <li key={name}>
              <button type="button" className="file-item" aria-expanded={isOpen} onClick={() => toggle(name)}>
                <Icon name="folder" />
                <span className="cut">{name}</span>
              </button>
              {isOpen && <Folder {...props} path={whole} />}
            </li>
          );
        return (
          <li key={name}>
            <button
              type="button"
              className="file-item"
              aria-current={whole === current ? 'true' : undefined}
              title={`${bytes(sizeBytes ?? 0)}, ${dateTime(modifiedAt)}`}
              onClick={() => onOpen(whole)}
            >
              <Icon name="file" />
              <span className="cut">{name}</span>
              {template?.untouched === true && <Badge>{t('template')}</Badge>}
            </button>
          </li>
        );
      })}
      {entries.length > limit && (
        <li>
          <button type="button" className="file-item" onClick={() => setLimit(limit + pageSize)}>
            {t('Show more ({entries})', { entries: entries.length - limit })}
          </button>
        </li>
      )}
      {listed.data.truncated && <li className="hint">{t('Not all entries are shown.')}</li>}
    </ul>
  );
}
