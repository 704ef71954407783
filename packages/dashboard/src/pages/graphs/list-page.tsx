import { t } from '../../language.ts';
import type { Client } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, dateTime, money, plural, shortCount } from '../../data/format.ts';
import { useEventBatch } from '../../data/use-event-batch.ts';
import { useLoad } from '../../data/use-load.ts';
import { useThrottled } from '../../data/use-throttled.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Elapsed } from '../../ui/elapsed.tsx';
import { ExecutionTabs } from '../../ui/execution-tabs.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Badge, Button, Empty, Failure, Notice, Page, Skeleton } from '../../ui/parts.tsx';
import { When } from '../../ui/when.tsx';
import { StartSaved } from './start-saved.tsx';
import { graphTones } from './labels.ts';

type Saved = Result<'graph.list'>['entries'][number];
type GraphRun = Result<'graph.runs'>['runs'][number];

const pageSize = 25;
/** Page limit of the gateway. */
const maxListed = 200;
const leastReloadMs = 3000;

async function loadGraphs(client: Client, limit: number, signal: AbortSignal) {
  const [saved, runs, now] = await client.batch(
    [{ method: 'graph.list', params: { limit: maxListed } }, { method: 'graph.runs', params: { limit } }, { method: 'graph.status' }],
    { signal },
  );
  if (!saved.ok) throw saved.error;
  if (!runs.ok) throw runs.error;
  return { saved: saved.result, runs: runs.result, concurrency: now.ok && 'concurrency' in now.result ? now.result.concurrency : undefined };
}

/** Lists saved graphs and runs. */
export function ListPage() {
  const { client } = useSession();
  const [limit, setLimit] = useState(pageSize);
  const [starting, setStarting] = useState<Saved>();
  const [removing, setRemoving] = useState<Saved>();
  const [outcome, setOutcome] = useState<string>();
  const loaded = useLoad(['graph.list', 'graph.runs', limit], (signal) => loadGraphs(client, limit, signal), { keepsPrevious: () => true });
  const { data, reload } = loaded;
  useEventBatch('graph:started,graph:node_updated,graph:completed', useThrottled(reload, leastReloadMs));
  return (
    <Page
      wide
      help="delegation"
      title={t('Graphs')}
      lead={t('Tasks that agents run in sequence or in parallel.')}
      actions={
        <PageLink to="/graphs/new" className="button primary-link">
          {t('New graph')}
        </PageLink>
      }
    >
      <ExecutionTabs current="/graphs" />
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {loaded.error !== undefined && <Failure error={loaded.error} onRetry={reload} />}
      {data === undefined && loaded.loading && <Skeleton lines={6} />}
      {data !== undefined && (
        <>
          <section className="graph-section" aria-labelledby="saved-graphs">
            <h2 id="saved-graphs">{t('Saved')}</h2>
            {data.saved.entries.length === 0 ? (
              <Empty title={t('No saved graphs')}>
                <p>{t('A graph defines which agent does what, and which task waits for which result.')}</p>
              </Empty>
            ) : (
              <ul className="rows" aria-label={t('Saved graphs')}>
                {data.saved.entries.map((one) => (
                  <SavedRow key={one.id} saved={one} onStart={() => setStarting(one)} onRemove={() => setRemoving(one)} />
                ))}
              </ul>
            )}
            {data.saved.total > data.saved.entries.length && (
              <p className="hint">{t('Showing {entries} of {total}.', { entries: data.saved.entries.length, total: data.saved.total })}</p>
            )}
          </section>
          <section className="graph-section" aria-labelledby="graph-runs">
            <div className="panel-head">
              <h2 id="graph-runs">{t('Runs')}</h2>
              {data.concurrency !== undefined && <Slots {...data.concurrency} />}
            </div>
            {data.runs.runs.length === 0 ? (
              <Empty title={t('No runs yet')}>
                <p>{t('Run a saved graph above, or make a new one.')}</p>
              </Empty>
            ) : (
              <DataTable label={t('Graph runs')} columns={runColumns} rows={data.runs.runs} keyOf={({ graphId }) => graphId} />
            )}
            {data.runs.hasMore && (
              <div className="pages">
                <Button small disabled={loaded.loading || limit >= maxListed} onClick={() => setLimit(Math.min(maxListed, limit + pageSize))}>
                  {t('Older')}
                </Button>
                <span className="hint">{t('Showing {runs} of {total}.', { runs: data.runs.runs.length, total: data.runs.total })}</span>
              </div>
            )}
          </section>
        </>
      )}
      {starting !== undefined && <StartSaved saved={starting} onClose={() => setStarting(undefined)} />}
      {removing !== undefined && (
        <Confirm
          title={t('Delete graph {label}?', { label: removing.label })}
          action={t('Delete')}
          onClose={() => setRemoving(undefined)}
          run={async () => {
            await client.call('graph.delete', { id: removing.id });
            setRemoving(undefined);
            setOutcome(t('Deleted {label}.', { label: removing.label }));
            reload();
          }}
        >
          <p>{t('Its runs are kept.')}</p>
        </Confirm>
      )}
    </Page>
  );
}

function Slots({
  globalActiveSubAgents,
  maxGlobalSubAgents,
  queueDepth,
}: {
  readonly globalActiveSubAgents: number;
  readonly maxGlobalSubAgents: number;
  readonly queueDepth: number;
}) {
  const waiting = queueDepth === 0 ? '' : t(', {queueDepth} queued', { queueDepth });
  return (
    <span className="hint">
      {t('{globalActiveSubAgents} of {slots} in use{waiting}', {
        globalActiveSubAgents,
        slots: plural(maxGlobalSubAgents, 'sub-agent slot'),
        waiting,
      })}
    </span>
  );
}

function SavedRow({ saved, onStart, onRemove }: { readonly saved: Saved; readonly onStart: () => void; readonly onRemove: () => void }) {
  const { id, label, nodeCount, updatedAt, agentId } = saved;
  return (
    <li className="row">
      <div className="row-main">
        <PageLink to={`/graphs/edit/${id}`} className="row-title" dir="auto">
          {label}
        </PageLink>
        <p className="hint">
          {plural(nodeCount, 'node')}
          {agentId !== undefined && t(', agent {agentId}', { agentId })}
        </p>
      </div>
      <div className="row-facts">
        <span title={dateTime(updatedAt)}>{t('changed {updatedAt}', { updatedAt: ago(updatedAt) })}</span>
      </div>
      <div className="actions">
        <Button small icon="play" label={t('Run {label}', { label })} onClick={onStart}>
          {t('Run')}
        </Button>
        <Button small icon="trash" label={t('Delete {label}', { label })} onClick={onRemove}>
          {t('Delete')}
        </Button>
      </div>
    </li>
  );
}

const runColumns: readonly Column<GraphRun>[] = [
  {
    key: 'name',
    title: t('Graph'),
    value: ({ name }) => name,
    draw: ({ graphId, name, variables, cause, result }) => (
      <>
        <PageLink to={`/graphs/runs/${graphId}`} className="task-name" dir="auto">
          {name}
        </PageLink>
        {variables !== undefined && (
          <p className="hint cut-lines" dir="auto">
            {Object.entries(variables)
              .map(([variable, value]) => `${variable}: ${value}`)
              .join(', ')}
          </p>
        )}
        {cause !== undefined ? (
          <p className="bad-text" dir="auto">
            {cause}
          </p>
        ) : (
          result !== undefined && (
            <p className="hint cut-lines" dir="auto">
              {result}
            </p>
          )
        )}
      </>
    ),
  },
  {
    key: 'state',
    title: t('State'),
    value: ({ status, waitsForAnswer }) => (waitsForAnswer === true ? 'waiting' : status),
    draw: ({ status, waitsForAnswer, mayAnswer }) =>
      waitsForAnswer === true ? (
        <Badge tone="warn">{mayAnswer === true ? t('waiting for you') : t('waiting for its owner')}</Badge>
      ) : (
        <Badge tone={graphTones[status]}>{status}</Badge>
      ),
  },
  { key: 'agent', title: t('Started by'), value: ({ agentId }) => agentId, draw: ({ agentId }) => agentId },
  {
    key: 'started',
    title: t('Started'),
    descendingFirst: true,
    value: ({ date }) => Date.parse(date),
    draw: ({ date }) => <When atMs={Date.parse(date)} />,
  },
  {
    key: 'duration',
    title: t('Duration'),
    align: 'right',
    descendingFirst: true,
    value: ({ startedAt, completedAt }) => (startedAt === undefined ? null : (completedAt ?? Date.now()) - startedAt),
    draw: ({ startedAt, completedAt }) => startedAt !== undefined && <Elapsed fromMs={startedAt} toMs={completedAt} />,
  },
  { key: 'nodes', title: t('Nodes'), align: 'right', descendingFirst: true, value: ({ nodeCount }) => nodeCount, draw: ({ nodeCount }) => nodeCount },
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
