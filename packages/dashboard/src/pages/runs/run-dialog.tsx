import { t } from '../../language.ts';
import type { Client } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import { useSession } from '../../data/context.ts';
import { bytes, count, dateTime } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useEventBatch } from '../../data/use-event-batch.ts';
import { useLoad } from '../../data/use-load.ts';
import { Markdown } from '../../markdown/markdown.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Elapsed } from '../../ui/elapsed.tsx';
import { PageLink } from '../../ui/link.tsx';
import { ObjectLink, TraceLink } from '../../ui/object-link.tsx';
import { Badge, Button, Failure, Skeleton } from '../../ui/parts.tsx';
import { saveBlob } from '../../ui/save-json.ts';
import { isActive, type Run, runOf } from './run-state.ts';
import type { RunAgainAsked, RunAsked } from './run-tree.tsx';
import { allMinutes } from './use-root-runs.ts';
import { shortId, spentText, standing } from './labels.ts';

type Listed = Result<'subagent.list'>['runs'][number];
type Completion = NonNullable<Result<'subagent.wait'>['results'][number]['completion']>;

/** Loads the run, and its outcome where the token may see it. */
async function load(client: Client, run: Run, admin: boolean, signal: AbortSignal) {
  const [listed, waited] = await client.batch(
    [
      { method: 'subagent.list', params: { recentMinutes: allMinutes, ...(admin && { rootRunId: run.rootRunId }) } },
      { method: 'subagent.wait', params: { runIds: [run.runId], timeoutMs: 0 } },
    ],
    { signal },
  );
  if (!listed.ok) throw listed.error;
  return {
    listed: listed.result.runs.find(({ runId }) => runId === run.runId),
    completion: waited.ok ? waited.result.results[0]?.completion : undefined,
  };
}

/** Shows all details of a sub-agent. */
export function RunDialog({
  run: asked,
  onClose,
  onAsk,
}: {
  readonly run: Run;
  readonly onClose: () => void;
  readonly onAsk: (asked: RunAsked | RunAgainAsked) => void;
}) {
  const { client, admin } = useSession();
  const { data, error, reload } = useLoad(['subagent.list', 'subagent.wait', asked.runId], (signal) => load(client, asked, admin, signal));
  useEventBatch('session:sub_agent_spawn_started,session:sub_agent_completed', (events) => {
    if (events.some(({ kind, payload }) => kind === 'gap' || (payload as { runId?: unknown } | null)?.runId === asked.runId)) reload();
  });
  const run = data?.listed === undefined ? asked : runOf(data.listed);
  const completion: Completion | undefined = data?.completion ?? data?.listed?.completion;
  const { text, tone } = standing(run);
  const task = data?.listed !== undefined && 'task' in data.listed ? data.listed.task : undefined;
  return (
    <Dialog title={t('Sub-agent {agentId} ({runId})', { agentId: run.agentId, runId: shortId(run.runId) })} onClose={onClose} wide>
      <div className="dialog-body">
        <p className="facts-line">
          <Badge tone={tone}>{text}</Badge>
          <Elapsed fromMs={run.startedAt} toMs={run.endedAt} />
          <span>{spentText(run.tokens, run.cost)}</span>
          {run.rootRunId !== '' && <TraceLink reference={run.rootRunId} within={run.runId} />}
        </p>
        {error !== undefined && <Failure error={error} onRetry={reload} />}
        <Facts run={run} listed={data?.listed} completion={completion} />
        {data === undefined && error === undefined && <Skeleton lines={3} />}
        {data?.listed !== undefined && 'task' in data.listed && (
          <section aria-label={t('Task')}>
            <h3>{t('Task')}</h3>
            <pre className="raw-text" tabIndex={0}>
              {data.listed.task}
            </pre>
          </section>
        )}
        {completion?.summary !== undefined && (
          <section aria-label={t('Answer')}>
            <h3>{t('Answer')}</h3>
            <Markdown text={completion.summary} />
          </section>
        )}
        {completion?.resultRef !== undefined && <ResultFile resultRef={completion.resultRef} runId={run.runId} />}
      </div>
      <footer>
        {isActive(run) && (
          <>
            <Button icon="stop" onClick={() => onAsk({ what: 'kill', run })}>
              {t('Kill')}
            </Button>
            <Button onClick={() => onAsk({ what: 'steer', run })}>{t('Steer')}</Button>
          </>
        )}
        {task !== undefined && !isActive(run) && (
          <Button icon="retry" onClick={() => onAsk({ again: { task, agent: run.agentId } })}>
            {t('Run again')}
          </Button>
        )}
        <Button look="primary" onClick={onClose}>
          {t('Close')}
        </Button>
      </footer>
    </Dialog>
  );
}

function Facts({ run, listed, completion }: { readonly run: Run; readonly listed: Listed | undefined; readonly completion: Completion | undefined }) {
  const { errorKind, cause } = completion ?? {};
  const record = listed !== undefined && 'task' in listed ? listed : undefined;
  return (
    <dl className="facts">
      <dt>{t('Run')}</dt>
      <dd className="mono">{run.runId}</dd>
      <dt>{t('Agent')}</dt>
      <dd>
        <PageLink to={`/agents/${run.agentId}`}>{run.agentId}</PageLink>
      </dd>
      {run.rootRunId !== '' && (
        <>
          <dt>{t('Root run')}</dt>
          <dd>
            <ObjectLink id={run.rootRunId} />
          </dd>
        </>
      )}
      <dt>{t('Level')}</dt>
      <dd>{run.depth}</dd>
      {run.graphId !== undefined && (
        <>
          <dt>{t('Graph')}</dt>
          <dd>
            <PageLink to={`/graphs/runs/${run.graphId}`}>
              {run.nodeId === undefined ? run.graphId : t('Node {nodeId}', { nodeId: run.nodeId })}
            </PageLink>
          </dd>
        </>
      )}
      {errorKind !== undefined && (
        <>
          <dt>{t('Error')}</dt>
          <dd className="mono">{errorKind}</dd>
        </>
      )}
      {cause !== undefined && (
        <>
          <dt>{t('Cause')}</dt>
          <dd dir="auto">{cause}</dd>
        </>
      )}
      {record !== undefined && (
        <>
          <dt>{t('Conversation')}</dt>
          <dd>
            <PageLink to={`/conversations/${record.conversationRef}`}>{record.conversationRef}</PageLink>
          </dd>
          {record.model !== undefined && (
            <>
              <dt>{t('Model')}</dt>
              <dd className="mono">{record.model}</dd>
            </>
          )}
          {record.telemetry !== undefined && (
            <>
              <dt>{t('Steps')}</dt>
              <dd>
                {t('{stepsExecuted}, finished: {finishReason}', {
                  stepsExecuted: count(record.telemetry.stepsExecuted),
                  finishReason: record.telemetry.finishReason,
                })}
              </dd>
            </>
          )}
        </>
      )}
    </dl>
  );
}

/** Shows the beginning of a result that is too large for a summary, and saves the whole as a file. */
function ResultFile({ resultRef, runId }: { readonly resultRef: NonNullable<Completion['resultRef']>; readonly runId: string }) {
  const { client } = useSession();
  const { busy, error, run } = useAction();
  const { ref, kind, preview, expiresAt, rows, schema } = resultRef;
  const save = async (): Promise<void> => {
    // A link can't send the token, and a URL must not contain it.
    const response = await client.media(ref.slice(ref.lastIndexOf('/') + 1));
    saveBlob(`${runId}.${kind === 'text' ? 'txt' : kind === 'binary' ? 'bin' : kind}`, await response.blob());
  };
  return (
    <section aria-label={t('Result')} className="run-result">
      <div className="panel-head">
        <h3>{t('Result')}</h3>
        <span className="hint">
          {[
            kind,
            bytes(resultRef.bytes),
            ...(rows === undefined ? [] : [t('{rows} rows', { rows: count(rows) })]),
            t('kept until {expiresAt}', { expiresAt: dateTime(expiresAt) }),
          ].join(', ')}
        </span>
        <span className="grow" />
        <Button small icon="download" disabled={busy} onClick={() => run(save)}>
          {t('Save result')}
        </Button>
      </div>
      {error !== undefined && <Failure error={error} />}
      {schema !== undefined && <p className="hint mono">{schema.join(', ')}</p>}
      {preview !== '' && (
        <pre className="raw-text" tabIndex={0} aria-label={t('Beginning of the result')}>
          {preview}
        </pre>
      )}
    </section>
  );
}
