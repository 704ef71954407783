import { useState } from 'react';
import { useSession } from '../../data/context.ts';
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

/** Files of the agent's folder: looked at, written after a look at the difference, and committed. */
export function WorkspaceTab({ agentId }: { readonly agentId: string }) {
  const { client } = useSession();
  const status = useLoad(`workspace ${agentId}`, (signal) => client.call('workspace.status', { agentId }, { signal }));
  const [opened, setOpened] = useState<Opened>();
  const [round, setRound] = useState(0);
  const [naming, setNaming] = useState(false);
  const [error, setError] = useState<unknown>();
  const [outcome, setOutcome] = useState<string>();
  const { data } = status;

  const changed = (words: string): void => {
    setOutcome(words);
    setRound((before) => before + 1);
    status.reload();
  };
  const open = (path: string, isNew = false): void => {
    if (opened?.path === path || !mayLeave()) return;
    setOutcome(undefined);
    setOpened({ path, isNew });
  };
  const setUp = (): void => {
    setError(undefined);
    client.call('workspace.init', { agentId }).then(() => changed('The workspace is set up.'), setError);
  };

  return (
    <>
      {status.error !== undefined && <Failure error={status.error} onRetry={status.reload} />}
      {error !== undefined && <Failure error={error} />}
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {data === undefined && status.loading && <Skeleton lines={6} />}
      {data !== undefined && (
        <>
          <div className="toolbar">
            <span className="mono hint">{data.dir}</span>
            <Badge tone={data.isBootstrapped ? 'good' : 'neutral'}>
              {data.isBootstrapped ? 'Set up with a character' : 'Waits for its first interview'}
            </Badge>
            <span className="grow" />
            {(!data.exists || !data.hasGitRepo || data.files.some(({ present }) => !present)) && (
              <Button onClick={setUp}>Set up what is missing</Button>
            )}
            <Button icon="plus" disabled={!data.exists} onClick={() => setNaming(true)}>
              New file
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
            <Empty title="There is no folder yet">
              <p>It is made by setting it up, or by the first file that the agent writes.</p>
            </Empty>
          ) : (
            <div className="workspace">
              <FileTree agentId={agentId} round={round} templates={data.files} current={opened?.path} onOpen={open} />
              {opened === undefined ? (
                <Empty title="Choose a file" />
              ) : (
                <FileEditor
                  key={opened.path}
                  agentId={agentId}
                  path={opened.path}
                  isNew={opened.isNew}
                  template={data.files.find(({ name }) => name === opened.path)}
                  onWritten={(words) => {
                    setOpened({ ...opened, isNew: false });
                    changed(words);
                  }}
                  onGone={(words) => {
                    setOpened(undefined);
                    changed(words);
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
                changed(`${path} is as it was committed.`);
              }}
            />
          )}
        </>
      )}
    </>
  );
}
