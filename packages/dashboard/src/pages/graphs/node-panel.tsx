import { t } from '../../language.ts';
import { useSession } from '../../data/context.ts';
import { useLoad } from '../../data/use-load.ts';
import { Markdown } from '../../markdown/markdown.tsx';
import { CopyButton } from '../../ui/copy-button.tsx';
import { Elapsed } from '../../ui/elapsed.tsx';
import { ObjectLink, TraceLink } from '../../ui/object-link.tsx';
import { Badge, Failure, Notice, Skeleton } from '../../ui/parts.tsx';
import { GateAnswer } from './gate-answer.tsx';
import { isOver, type NodeView } from './graph-state.ts';
import { useInView } from './use-in-view.ts';
import { NodeAttempts } from './node-attempts.tsx';
import { spentText } from '../runs/labels.ts';
import { nodeStanding, typeNames } from './labels.ts';
import { EffectsRefused, Waiting, WaitingReason } from '../../ui/waiting.tsx';

/** Shows the details and the output of one node of a run. */
export function NodePanel({
  graphId,
  nodeId,
  node,
  rootRunId,
  onAnswered,
}: {
  readonly graphId: string;
  readonly nodeId: string;
  readonly node: NodeView;
  readonly rootRunId: string | undefined;
  readonly onAnswered: () => void;
}) {
  const part = useInView();
  const { text, tone } = nodeStanding(node);
  const spent = spentText(node.tokens, node.cost);
  const { type_id: type, attempt, progress, error, cause, startedAt, completedAt, runId } = node;
  return (
    <section ref={part} className="panel" aria-label={t('Node {nodeId}', { nodeId })}>
      <div className="panel-head">
        <h2>{nodeId}</h2>
        <Badge tone={tone}>{text}</Badge>
        <Waiting waiting={node.waiting} />
        <EffectsRefused count={node.effectsRefused} />
      </div>
      <p className="facts-line">
        <span>{type === undefined ? t('Task') : typeNames[type]}</span>
        {startedAt !== undefined && <Elapsed fromMs={startedAt} toMs={completedAt} />}
        {node.agentId !== undefined && <span>{node.agentId}</span>}
        {attempt !== undefined && attempt > 1 && <span>{t('attempt {attempt}', { attempt })}</span>}
        {spent !== '' && <span>{spent}</span>}
        {runId !== undefined && rootRunId !== undefined && (
          <TraceLink reference={rootRunId} within={runId} label={t('Trace of {nodeId}', { nodeId })} />
        )}
      </p>
      <WaitingReason waiting={node.waiting} />
      {progress !== undefined && node.waitsForAnswer !== true && <p dir="auto">{progress}</p>}
      {error !== undefined && (
        <Notice tone="bad">
          <span dir="auto">{cause === undefined ? error : `${error}: ${cause}`}</span>
        </Notice>
      )}
      {node.waitsForAnswer === true && <GateAnswer graphId={graphId} nodeId={nodeId} question={node.question} onAnswered={onAnswered} />}
      {node.task !== undefined && node.waitsForAnswer !== true && (
        <details className="graph-part" open={node.status !== 'completed'}>
          <summary>{t('Input')}</summary>
          <div className="graph-output" tabIndex={0} role="region" aria-label={t('Input of {nodeId}', { nodeId })}>
            <p className="raw-text" dir="auto">
              {node.task}
            </p>
          </div>
        </details>
      )}
      {isOver(node) && node.status !== 'skipped' && <Output graphId={graphId} nodeId={nodeId} status={node.status} />}
      {rootRunId !== undefined && startedAt !== undefined && (
        <NodeAttempts graphId={graphId} nodeId={nodeId} rootRunId={rootRunId} state={`${node.status} ${attempt ?? 0}`} />
      )}
      {runId !== undefined && (
        <p className="hint">
          <ObjectLink id={runId}>{t('Open sub-agent')}</ObjectLink>
        </p>
      )}
    </section>
  );
}

function Output({ graphId, nodeId, status }: { readonly graphId: string; readonly nodeId: string; readonly status: string }) {
  const { client } = useSession();
  const { data, error, reload } = useLoad(['graph.outputs', graphId, nodeId, status], (signal) =>
    client.call('graph.outputs', { graphId }, { signal }),
  );
  if (error !== undefined) return <Failure error={error} onRetry={reload} />;
  if (data === undefined) return <Skeleton lines={3} />;
  const output = data.outputs[nodeId];
  // A failed node shows its cause above.
  if (output === undefined || output === null || output === '') return status === 'failed' ? null : <p className="hint">{t('No output.')}</p>;
  return (
    <>
      <div className="panel-head">
        <h3>{t('Output')}</h3>
        <CopyButton text={output} label={t('Copy output')} />
      </div>
      <div className="graph-output" tabIndex={0} role="region" aria-label={t('Output of {nodeId}', { nodeId })}>
        <Markdown text={output} />
      </div>
    </>
  );
}
