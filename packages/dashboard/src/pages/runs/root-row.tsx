import { memo } from 'react';
import { ago, dateTime, plural } from '../../data/format.ts';
import { Elapsed } from '../../ui/elapsed.tsx';
import { PageLink } from '../../ui/link.tsx';
import { ObjectLink, TraceLink } from '../../ui/object-link.tsx';
import { Badge, Button } from '../../ui/parts.tsx';
import type { RootRun } from './run-state.ts';
import { type RunAsked, RunTree } from './run-tree.tsx';
import { originLabels, rootTones, shortId, spentText } from './labels.ts';
import { Waiting } from '../../ui/waiting.tsx';

/** Admin actions on a whole root run. */
export type RootAction = 'kill' | 'evict' | 'revoke';

/** Shows a root run and, once expanded, its sub-agents. */
export const RootRow = memo(function RootRow({
  root,
  isOpen,
  admin,
  onToggle,
  onRoot,
  onAsk,
}: {
  readonly root: RootRun;
  readonly isOpen: boolean;
  readonly admin: boolean;
  readonly onToggle: (rootRunId: string, open: boolean) => void;
  readonly onRoot: (action: RootAction, root: RootRun) => void;
  readonly onAsk: (asked: RunAsked) => void;
}) {
  const { rootRunId, agentId, origin, conversationRef, profile, evicted, state, startedAt, endedAt, runs, graphs, tokens, cost, waiting } = root;
  const id = shortId(rootRunId);
  const spent = spentText(tokens, cost);
  const counts = [
    runs.open > 0 && `${runs.open} open`,
    runs.completed > 0 && `${runs.completed} completed`,
    runs.failed > 0 && `${runs.failed} failed`,
    graphs > 0 && plural(graphs, 'graph'),
  ].filter((one) => one !== false);
  const act = (action: RootAction, verb: string) => (
    <Button small label={`${verb} ${id}`} onClick={() => onRoot(action, root)}>
      {verb}
    </Button>
  );
  return (
    <li className="run-root" data-root={rootRunId}>
      <div className="row">
        <button
          type="button"
          className="run-twist"
          aria-expanded={isOpen}
          aria-label={`Sub-agents of ${id}`}
          onClick={() => onToggle(rootRunId, !isOpen)}
        >
          <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span>
        </button>
        <div className="row-main">
          <span className="row-title">{`${agentId}, started by ${originLabels[origin]}`}</span>
          <p className="hint run-id">
            <ObjectLink id={rootRunId} />
          </p>
          {root.cause !== undefined && (
            <p className="bad-text" dir="auto">
              {root.cause}
            </p>
          )}
          <p className="hint facts-line">
            <TraceLink reference={rootRunId} label={`Trace of ${id}`} />
            {conversationRef !== null && <PageLink to={`/conversations/${conversationRef}`}>Open conversation</PageLink>}
          </p>
        </div>
        <div className="row-facts">
          {counts.length > 0 && <span>{counts.join(', ')}</span>}
          {spent !== '' && <span>{spent}</span>}
          <span title={dateTime(startedAt)}>{ago(startedAt)}</span>
          <Elapsed fromMs={startedAt} toMs={endedAt} />
          {(profile !== 'standard' || evicted) && <Badge tone={evicted ? 'warn' : 'neutral'}>{evicted ? `evicted to ${profile}` : profile}</Badge>}
          <Waiting waiting={waiting} />
          <Badge tone={rootTones[state]}>{state}</Badge>
        </div>
        {admin && state === 'active' && (
          <div className="actions">
            {!evicted && act('evict', 'Evict')}
            {act('revoke', 'Revoke')}
            {act('kill', 'Kill')}
          </div>
        )}
      </div>
      {isOpen && <RunTree rootRunId={rootRunId} onAsk={onAsk} />}
    </li>
  );
});
