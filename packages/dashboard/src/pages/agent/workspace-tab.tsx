import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { mayLeave } from '../../router.ts';
import { Badge, Button, Empty, Failure, Notice, Skeleton } from '../../ui/parts.tsx';
import { FileEditor } from './file-editor.tsx';
import { FileTree } from './file-tree.tsx';
import { GitPanel } from './git-panel.tsx';
import { NewFileForm } from './new-file-form.tsx';

interface Opened {
  readonly path: string;
  readonly isNew: boolean;
}

/** Shows, edits and commits the files of the agent's folder. */
export function WorkspaceTab({ agentId }: { readonly agentId: string }) {
  const { client } = useSession();
  const status = useLoad(['workspace.status', agentId], (signal) => client.call('workspace.status', { agentId }, { signal }));
  const [opened, setOpened] = useState<Opened>();
  const [round, setRound] = useState(0);
  const [naming, setNaming] = useState(false);
  const setUp = useAction();
  const [outcome, setOutcome] = useState<string>();
  const { data } = status;

  const changed = (text: string): void => {
    setOutcome(text);
    setRound((before) => before + 1);
    status.reload();
  };
  const open = (path: string, isNew = false): void => {
    if (opened?.path === path || !mayLeave()) return;
    setOutcome(undefined);
    setOpened({ path, isNew });
  };

  return (
    <>
      {status.error !== undefined && <Failure error={status.error} onRetry={status.reload} />}
      {setUp.error !== undefined && <Failure error={setUp.error} />}
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {data === undefined && status.loading && <Skeleton lines={6} />}
      {data !== undefined && (
        <>
          <div className="toolbar">
            <span className="mono hint">{data.dir}</span>
            <Badge tone={data.isBootstrapped ? 'good' : 'neutral'}>{data.isBootstrapped ? t('Set up') : t('First interview pending')}</Badge>
            <span className="grow" />
            {(!data.exists || !data.hasGitRepo || data.files.some(({ present }) => !present)) && (
              <Button onClick={() => setUp.run(() => client.call('workspace.init', { agentId }).then(() => changed(t('Workspace set up.'))))}>
                {t('Create missing files')}
              </Button>
            )}
            <Button icon="plus" disabled={!data.exists} onClick={() => setNaming(true)}>
              {t('New file')}
            </Button>
          </div>
          {naming && (
            <NewFileForm
              onClose={() => setNaming(false)}
              onDone={(path) => {
                setNaming(false);
                open(path, true);
              }}
            />
          )}
          {!data.exists ? (
            <Empty title={t('No workspace yet')}>
              <p>{t('It is created when you set it up, or when the agent writes its first file.')}</p>
            </Empty>
          ) : (
            <div className="workspace">
              <FileTree agentId={agentId} round={round} templates={data.files} current={opened?.path} onOpen={open} />
              {opened === undefined ? (
                <Empty title={t('Select a file')} />
              ) : (
                <FileEditor
                  key={opened.path}
                  agentId={agentId}
                  path={opened.path}
                  isNew={opened.isNew}
                  template={data.files.find(({ name }) => name === opened.path)}
                  onWritten={(text) => {
                    setOpened({ ...opened, isNew: false });
                    changed(text);
                  }}
                  onGone={(text) => {
                    setOpened(undefined);
                    changed(text);
                  }}
                />
              )}
            </div>
          )}
          {data.hasGitRepo && (
            <GitPanel
              agentId={agentId}
              round={round}
              onRestored={(path) => {
                if (opened?.path === path) setOpened(undefined);
                changed(t('Restored {path}.', { path }));
              }}
            />
          )}
        </>
      )}
    </>
  );
}
