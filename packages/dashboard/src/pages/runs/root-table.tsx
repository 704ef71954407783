import { t } from '../../language.ts';
import { type ReactNode, useMemo } from 'react';
import { useConversationTitle } from '../../data/conversation-title.ts';
import { money, plural, shortCount } from '../../data/format.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Elapsed } from '../../ui/elapsed.tsx';
import { PageLink } from '../../ui/link.tsx';
import { TraceLink } from '../../ui/object-link.tsx';
import { Badge, Button } from '../../ui/parts.tsx';
import { Waiting, WaitingReason } from '../../ui/waiting.tsx';
import { When } from '../../ui/when.tsx';
import { nameOfRoot, originLabels, rootTones, shortId } from './labels.ts';
import type { RootRun } from './run-state.ts';
import { type RunAsked, RunTree } from './run-tree.tsx';

/** Admin actions on a whole root run. */
export type RootAction = 'kill' | 'evict' | 'revoke';

const columns: readonly Column<RootRun>[] = [
  {
    key: 'state',
    title: t('State'),
    value: ({ state }) => state,
    draw: ({ state, waiting, profile, evicted }) => (
      <span className="badges">
        <Badge tone={rootTones[state]}>{state}</Badge>
        <Waiting waiting={waiting} />
        {(profile !== 'standard' || evicted) && (
          <Badge tone={evicted ? 'warn' : 'neutral'}>{evicted ? t('evicted to {profile}', { profile }) : profile}</Badge>
        )}
      </span>
    ),
  },
  {
    key: 'by',
    title: t('Started by'),
    value: ({ origin, agentId }) => `${originLabels[origin]} ${agentId}`,
    draw: ({ origin, agentId }) => `${originLabels[origin]}, ${agentId}`,
  },
  {
    key: 'started',
    title: t('Started'),
    descendingFirst: true,
    value: ({ startedAt }) => startedAt,
    draw: ({ startedAt }) => <When atMs={startedAt} />,
  },
  {
    key: 'duration',
    title: t('Duration'),
    align: 'right',
    descendingFirst: true,
    value: ({ startedAt, endedAt }) => (endedAt ?? Date.now()) - startedAt,
    draw: ({ startedAt, endedAt }) => <Elapsed fromMs={startedAt} toMs={endedAt} />,
  },
  {
    key: 'tokens',
    title: t('Tokens'),
    align: 'right',
    descendingFirst: true,
    value: ({ tokens }) => tokens,
    draw: ({ tokens }) => (tokens === 0 ? '' : shortCount(tokens)),
  },
  {
    key: 'cost',
    title: t('Cost'),
    align: 'right',
    descendingFirst: true,
    value: ({ cost }) => cost,
    draw: ({ cost, tokens }) => (cost === null ? 'unknown' : tokens === 0 ? '' : money(cost)),
  },
];

/** Root runs as a table; an expanded one shows its sub-agents below. */
export function RootTable({
  roots,
  isOpen,
  admin,
  onToggle,
  onRoot,
  onAsk,
}: {
  readonly roots: readonly RootRun[];
  readonly isOpen: (rootRunId: string) => boolean;
  readonly admin: boolean;
  readonly onToggle: (rootRunId: string, open: boolean) => void;
  readonly onRoot: (action: RootAction, root: RootRun) => void;
  readonly onAsk: (asked: RunAsked) => void;
}) {
  const all = useMemo<readonly Column<RootRun>[]>(
    () => [
      {
        key: 'task',
        title: t('Task'),
        value: ({ task, agentId }) => task ?? agentId,
        draw: (root) => <Task root={root} isOpen={isOpen(root.rootRunId)} onToggle={onToggle} />,
      },
      ...columns,
    ],
    [isOpen, onToggle],
  );
  const actions = (root: RootRun): ReactNode => {
    const act = (action: RootAction, verb: string) => (
      <Button small label={`${verb} ${shortId(root.rootRunId)}`} onClick={() => onRoot(action, root)}>
        {verb}
      </Button>
    );
    return root.state === 'active' ? (
      <>
        {!root.evicted && act('evict', t('Evict'))}
        {act('revoke', t('Revoke'))}
        {act('kill', t('Kill'))}
      </>
    ) : null;
  };
  return (
    <DataTable
      label={t('Root runs')}
      columns={all}
      rows={roots}
      keyOf={({ rootRunId }) => rootRunId}
      {...(admin && { actions })}
      below={({ rootRunId }) => (isOpen(rootRunId) ? <RunTree rootRunId={rootRunId} onAsk={onAsk} /> : null)}
    />
  );
}

function Task({
  root,
  isOpen,
  onToggle,
}: {
  readonly root: RootRun;
  readonly isOpen: boolean;
  readonly onToggle: (rootRunId: string, open: boolean) => void;
}) {
  const { rootRunId, conversationRef, runs, graphs, task, cause, waiting } = root;
  const title = useConversationTitle(conversationRef ?? undefined);
  const id = shortId(rootRunId);
  const name = task ?? title ?? nameOfRoot(root);
  const counts = [
    runs.open > 0 && t('{open} open', { open: runs.open }),
    runs.completed > 0 && t('{completed} completed', { completed: runs.completed }),
    runs.failed > 0 && t('{failed} failed', { failed: runs.failed }),
    graphs > 0 && plural(graphs, 'graph'),
  ].filter((one) => one !== false);
  return (
    <div className="task-cell">
      <button
        type="button"
        className="run-twist"
        aria-expanded={isOpen}
        aria-label={t('Sub-agents of {id}', { id })}
        title={rootRunId}
        onClick={() => onToggle(rootRunId, !isOpen)}
      >
        <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span>
      </button>
      <div>
        <span className="task-name" dir="auto" title={name}>
          {name}
        </span>
        {cause !== undefined && (
          <p className="bad-text" dir="auto">
            {cause}
          </p>
        )}
        <WaitingReason waiting={waiting} />
        <p className="hint facts-line">
          {counts.length > 0 && <span>{counts.join(', ')}</span>}
          <TraceLink reference={rootRunId} label={t('Trace of {id}', { id })} />
          {conversationRef !== null && <PageLink to={`/conversations/${conversationRef}`}>{t('Open conversation')}</PageLink>}
        </p>
      </div>
    </div>
  );
}
