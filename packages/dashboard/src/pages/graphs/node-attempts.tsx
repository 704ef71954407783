import { t } from '../../language.ts';
import type { TraceRecord } from '@gatehouse/contract';
import { useSession } from '../../data/context.ts';
import { money, shortCount } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Elapsed } from '../../ui/elapsed.tsx';
import { TraceLink } from '../../ui/object-link.tsx';
import { Badge } from '../../ui/parts.tsx';
import { loadTrace } from '../traces/load-trace.ts';
import { outcomeLabels, outcomeTones } from '../traces/labels.ts';

const columns: readonly Column<TraceRecord>[] = [
  { key: 'agent', title: t('Agent'), draw: ({ agentId }) => agentId ?? '' },
  { key: 'model', title: t('Model'), draw: ({ model }) => <span className="mono">{model ?? ''}</span> },
  {
    key: 'outcome',
    title: t('Outcome'),
    draw: ({ outcome }) =>
      outcome === null ? <Badge tone="accent">{t('running')}</Badge> : <Badge tone={outcomeTones[outcome]}>{outcomeLabels[outcome]}</Badge>,
  },
  { key: 'calls', title: t('Model calls'), align: 'right', draw: ({ modelCalls }) => modelCalls },
  {
    key: 'tokens',
    title: t('Tokens'),
    align: 'right',
    draw: ({ tokens }) => t('{in} in, {out} out', { in: shortCount(tokens.in), out: shortCount(tokens.out) }),
  },
  { key: 'cost', title: t('Cost'), align: 'right', draw: ({ costNano }) => (costNano === null ? 'unknown' : money(costNano / 1e9)) },
  {
    key: 'duration',
    title: t('Duration'),
    align: 'right',
    draw: ({ startedAtMs, endedAtMs }) => <Elapsed fromMs={startedAtMs} toMs={endedAtMs ?? undefined} />,
  },
];

/** The turns that a node took, one for each attempt and each of its agents; nothing where the token may not see traces. */
export function NodeAttempts({
  graphId,
  nodeId,
  rootRunId,
  state,
}: {
  readonly graphId: string;
  readonly nodeId: string;
  readonly rootRunId: string;
  /** Changes when the node did. */
  readonly state: string;
}) {
  const { client } = useSession();
  const { data } = useLoad(['obs.trace.get', rootRunId, state], (signal) => loadTrace(client, rootRunId, signal), { keepsPrevious: () => true });
  const turns = data?.filter(({ kind, refs }) => kind === 'turn' && refs['graphId'] === graphId && refs['nodeId'] === nodeId) ?? [];
  if (turns.length === 0) return null;
  return (
    <section aria-label={t('Turns of {nodeId}', { nodeId })} className="graph-part">
      <h3>{turns.length === 1 ? t('Turn') : t('Turns')}</h3>
      <DataTable
        label={t('Turns of {nodeId}', { nodeId })}
        columns={columns}
        rows={turns}
        keyOf={({ id }) => id}
        actions={({ id }) => <TraceLink reference={id} label={t('Trace of {id}', { id })} />}
      />
    </section>
  );
}
