import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useLoad } from '../../data/use-load.ts';
import { AgentFilter } from '../../ui/agent-filter.tsx';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Elapsed } from '../../ui/elapsed.tsx';
import { ExecutionTabs } from '../../ui/execution-tabs.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Badge, Button, Empty, Failure, Page, Skeleton, type Tone } from '../../ui/parts.tsx';
import { When } from '../../ui/when.tsx';

type Execution = Result<'run.executions'>['executions'][number];

const kindNames: Readonly<Record<Execution['kind'], string>> = { run: t('Run'), graph: t('Graph'), job: t('Job'), delivery: t('Delivery') };
const stateNames: Readonly<Record<Execution['state'], string>> = {
  active: t('Active'),
  completed: t('Completed'),
  failed: t('Failed'),
  stopped: t('Stopped'),
  skipped: t('Skipped'),
  unknown: t('Unknown'),
};
const tones: Readonly<Record<Execution['state'], Tone>> = {
  active: 'accent',
  completed: 'good',
  failed: 'bad',
  stopped: 'warn',
  skipped: 'neutral',
  unknown: 'warn',
};
const kinds = ['run', 'graph', 'job', 'delivery'] as const;
const states = ['active', 'completed', 'failed', 'stopped', 'skipped', 'unknown'] as const;
const pageSize = 50;

/** Lists runs, graphs, runs of jobs and deliveries in one table, newest first. */
export function ExecutionsPage() {
  const { client, admin } = useSession();
  const [kind, setKind] = useState<Execution['kind']>();
  const [state, setState] = useState<Execution['state']>();
  const [agentId, setAgentId] = useState<string>();
  /** Cursors of the previous pages. */
  const [trail, setTrail] = useState<readonly string[]>([]);
  const before = trail.at(-1);
  const { data, error, loading, reload } = useLoad(
    ['run.executions', kind, state, agentId, before],
    (signal) => client.call('run.executions', { kind, state, agentId, before, limit: pageSize }, { signal }),
    { changedBy: ['scheduler:cron_', 'webhook:', 'session:sub_agent_', 'graph:'] },
  );
  const last = data?.executions.at(-1)?.cursor;
  return (
    <Page
      wide
      help="delegation"
      title={t('Executions')}
      lead={admin ? t('Runs, graphs, jobs and webhook deliveries of all users.') : t('Your runs, graphs and jobs.')}
    >
      <ExecutionTabs current="/executions" />
      <div className="toolbar">
        <select
          aria-label={t('Kind')}
          value={kind ?? ''}
          onChange={({ target }) => {
            setKind(kinds.find((one) => one === target.value));
            setTrail([]);
          }}
        >
          <option value="">{t('All kinds')}</option>
          {kinds
            .filter((one) => admin || one !== 'delivery')
            .map((one) => (
              <option key={one} value={one}>
                {kindNames[one]}
              </option>
            ))}
        </select>
        <select
          aria-label={t('State')}
          value={state ?? ''}
          onChange={({ target }) => {
            setState(states.find((one) => one === target.value));
            setTrail([]);
          }}
        >
          <option value="">{t('All states')}</option>
          {states.map((one) => (
            <option key={one} value={one}>
              {stateNames[one]}
            </option>
          ))}
        </select>
        <AgentFilter
          value={agentId}
          onChange={(next) => {
            setAgentId(next);
            setTrail([]);
          }}
        />
      </div>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {data === undefined && loading && <Skeleton lines={5} />}
      {data?.executions.length === 0 && <Empty title={t('No executions')} />}
      {data !== undefined && data.executions.length > 0 && (
        <DataTable label={t('Executions')} columns={columns} rows={data.executions} keyOf={({ id }) => id} />
      )}
      {(trail.length > 0 || data?.hasMore === true) && (
        <div className="pages">
          <Button small disabled={trail.length === 0} onClick={() => setTrail(trail.slice(0, -1))}>
            {t('Newer')}
          </Button>
          <Button small disabled={data?.hasMore !== true || last === undefined} onClick={() => last !== undefined && setTrail([...trail, last])}>
            {t('Older')}
          </Button>
        </div>
      )}
    </Page>
  );
}

function pathOf({ kind, id, jobId }: Execution): string {
  switch (kind) {
    case 'run':
      return `/runs/${id}`;
    case 'graph':
      return `/graphs/runs/${id}`;
    case 'job':
      return `/schedule/${jobId ?? ''}`;
    case 'delivery':
      return `/webhooks/${id}`;
  }
}

const nameOf = ({ name, id }: Execution): string => name ?? id;

const columns: readonly Column<Execution>[] = [
  {
    key: 'name',
    title: t('Execution'),
    value: nameOf,
    draw: (one) => (
      <>
        <span className="task-name" dir="auto">
          <PageLink to={pathOf(one)}>{nameOf(one)}</PageLink>
        </span>
        <p className="hint">{`${kindNames[one.kind]} · ${one.agentId}`}</p>
      </>
    ),
  },
  {
    key: 'state',
    title: t('State'),
    value: ({ state }) => state,
    draw: ({ state, errorKind }) => (
      <>
        <Badge tone={tones[state]}>{stateNames[state]}</Badge>
        {errorKind !== undefined && <p className="hint mono">{errorKind}</p>}
      </>
    ),
  },
  { key: 'by', title: t('Started by'), value: ({ startedBy }) => startedBy, draw: ({ startedBy }) => startedBy },
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
    value: ({ startedAt, endedAt }) => (endedAt === undefined ? null : endedAt - startedAt),
    draw: ({ state, startedAt, endedAt }) => (endedAt === undefined && state !== 'active' ? '' : <Elapsed fromMs={startedAt} toMs={endedAt} />),
  },
];
