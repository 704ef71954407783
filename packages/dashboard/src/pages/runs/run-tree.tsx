import { t } from '../../language.ts';
import { memo, useState } from 'react';
import { plural } from '../../data/format.ts';
import { Elapsed } from '../../ui/elapsed.tsx';
import { Badge, Button, Failure, Skeleton } from '../../ui/parts.tsx';
import { type Branch, isActive, type Run, treeOf } from './run-state.ts';
import { useRootRuns } from './use-root-runs.ts';
import { shortId, spentText, standing } from './labels.ts';

/** A requested action on a sub-agent. */
export interface RunAsked {
  readonly what: 'details' | 'steer' | 'kill';
  readonly run: Run;
}

/** A request to start what a sub-agent did once more. */
export interface RunAgainAsked {
  readonly again: { readonly task: string; readonly agent: string };
}

/** Children of one run that are shown at once. */
const shownAtOnce = 50;

/** Shows the sub-agents of a root run, each below its requester. */
export function RunTree({ rootRunId, onAsk }: { readonly rootRunId: string; readonly onAsk: (asked: RunAsked) => void }) {
  const { runs, error, reload } = useRootRuns(rootRunId);
  if (error !== undefined) return <Failure error={error} onRetry={reload} />;
  if (runs === undefined) return <Skeleton lines={2} />;
  if (runs.size === 0) return <p className="hint run-note">{t('No sub-agents. Finished ones are removed after some time.')}</p>;
  return <Branches label={t('Sub-agents')} branches={treeOf(runs)} onAsk={onAsk} />;
}

function Branches({
  label,
  branches,
  onAsk,
}: {
  readonly label: string;
  readonly branches: readonly Branch[];
  readonly onAsk: (asked: RunAsked) => void;
}) {
  const [limit, setLimit] = useState(shownAtOnce);
  return (
    <>
      <ul className="run-branches" aria-label={label}>
        {branches.slice(0, limit).map(({ run, children }) => (
          <li key={run.runId}>
            <RunRow run={run} onAsk={onAsk} />
            {children.length > 0 && <Branches label={t('Sub-agents of {runId}', { runId: shortId(run.runId) })} branches={children} onAsk={onAsk} />}
          </li>
        ))}
      </ul>
      {branches.length > limit && (
        <Button small onClick={() => setLimit(limit + shownAtOnce)}>
          {`${plural(branches.length - limit, 'more sub-agent')}`}
        </Button>
      )}
    </>
  );
}

const RunRow = memo(function RunRow({ run, onAsk }: { readonly run: Run; readonly onAsk: (asked: RunAsked) => void }) {
  const { runId, agentId, nodeId, task, startedAt, endedAt, errorKind, cause, tokens, cost } = run;
  const { text, tone } = standing(run);
  const id = shortId(runId);
  const spent = spentText(tokens, cost);
  return (
    <div className="run-row">
      <div className="run-main">
        <button type="button" className="link-like run-name" onClick={() => onAsk({ what: 'details', run })}>
          {nodeId === undefined ? agentId : `${nodeId} · ${agentId}`} <span className="mono hint">{id}</span>
        </button>
        {task !== undefined && (
          <p className="hint cut" dir="auto">
            {task}
          </p>
        )}
        {cause !== undefined && (
          <p className="bad-text" dir="auto">
            {cause}
          </p>
        )}
      </div>
      <div className="row-facts">
        {errorKind !== undefined && errorKind !== run.endReason && <span className="mono">{errorKind}</span>}
        {spent !== '' && <span>{spent}</span>}
        <Elapsed fromMs={startedAt} toMs={endedAt} />
        <Badge tone={tone}>{text}</Badge>
      </div>
      {isActive(run) && (
        <div className="actions">
          <Button small label={t('Steer {id}', { id })} onClick={() => onAsk({ what: 'steer', run })}>
            {t('Steer')}
          </Button>
          <Button small icon="stop" label={t('Kill {id}', { id })} onClick={() => onAsk({ what: 'kill', run })}>
            {t('Kill')}
          </Button>
        </div>
      )}
    </div>
  );
});
