import { t } from '../../language.ts';
import { GatehouseError } from '@gatehouse/client';
import type { TraceRecord } from '@gatehouse/contract';
import { type ReactNode, useEffect, useMemo, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, dateTime, plural } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { useNow } from '../../data/use-now.ts';
import { CaseButton } from '../evals/case-button.tsx';
import { CopyButton } from '../../ui/copy-button.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Badge, Button, Empty, Failure, Page, Skeleton } from '../../ui/parts.tsx';
import { costText, nameOf, outcomeLabels, outcomeOf, outcomeTones, recordNames, timeText, tokensText } from './labels.ts';
import { loadTrace } from './load-trace.ts';
import { ReplayDialog } from './replay-dialog.tsx';
import { ErrorText, TracePanel } from './trace-panel.tsx';
import { allNodes, buildTrace, causeOf, closedAtFirst, findNode, isRunning, spanOf, type TraceNode, visibleRows } from './trace-rows.ts';
import { TraceTree } from './trace-tree.tsx';

/** Interval at which a trace that still runs is loaded again; its events load it too. */
const refreshMs = 3_000;
/** Events that add steps to a trace. */
const changedBy = ['message:', 'tool:', 'approval:', 'session:sub_agent_', 'graph:', 'observability:'];

/** The story of a turn with everything that it caused; `reference` is the id of a trace, a turn or a root run, `within` of a record, or of what it belongs to. */
export function TracePage({ reference, within }: { readonly reference: string; readonly within: string | undefined }) {
  const { client } = useSession();
  const { data, error, loading, reload } = useLoad(['obs.trace.get', reference], (signal) => loadTrace(client, reference, signal), {
    changedBy,
    settleMs: 1_000,
    keepsPrevious: () => false,
  });
  const runs = data?.some(({ endedAtMs }) => endedAtMs === null) === true;
  useEffect(() => {
    if (!runs) return undefined;
    const timer = setInterval(reload, refreshMs);
    return () => clearInterval(timer);
  }, [runs, reload]);
  const isMissing = data?.length === 0 || (error instanceof GatehouseError && error.code === 'not_found');
  if (data === undefined || data.length === 0)
    return (
      <Page title={t('Trace')} lead={<span className="mono">{reference}</span>}>
        {error !== undefined && !isMissing && <Failure error={error} onRetry={reload} />}
        {data === undefined && loading && <Skeleton lines={8} />}
        {isMissing && (
          <Empty title={t('No trace')}>
            <p>{t('It is stored a moment after the work has ended, and pruned after some time. Work before tracing was turned on has none.')}</p>
          </Empty>
        )}
      </Page>
    );
  return <Trace records={data} reference={within ?? reference} onReload={reload} loading={loading} error={error} />;
}

function Trace({
  records,
  reference,
  onReload,
  loading,
  error,
}: {
  readonly records: readonly TraceRecord[];
  readonly reference: string;
  readonly onReload: () => void;
  readonly loading: boolean;
  readonly error: unknown;
}) {
  const { admin } = useSession();
  const [replaying, setReplaying] = useState(false);
  const roots = useMemo(() => buildTrace(records), [records]);
  const nodes = useMemo(() => allNodes(roots), [roots]);
  const focus = findNode(nodes, reference) ?? nodes[0];
  const [chosen, setChosen] = useState<string>();
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map());
  const closed = useMemo(() => {
    const ids = new Set(closedAtFirst(nodes));
    for (const [id, open] of toggled)
      if (open) ids.delete(id);
      else ids.add(id);
    return ids;
  }, [nodes, toggled]);
  const rows = useMemo(() => visibleRows(roots, closed), [roots, closed]);
  const json = useMemo(() => JSON.stringify({ records }, null, 2), [records]);
  if (focus === undefined) return null;
  const cause = causeOf(focus);
  const selected = nodes.find(({ id }) => id === chosen) ?? cause ?? focus;
  const { conversationRef } = focus.record;
  const replayed = repeatable(focus.record);
  return (
    <Page
      title={`${recordNames[focus.record.kind]} · ${nameOf(focus)}`}
      lead={<PageLink to="/traces">{t('All traces')}</PageLink>}
      actions={
        <>
          {conversationRef !== undefined && (
            <PageLink to={`/conversations/${conversationRef}`} className="button">
              {t('Open conversation')}
            </PageLink>
          )}
          <CopyButton text={json} label={t('Copy as JSON')} wide />
          {admin && replayed !== undefined && (
            <>
              <CaseButton turnId={replayed} />
              <Button icon="retry" onClick={() => setReplaying(true)}>
                {t('Replay on another model')}
              </Button>
            </>
          )}
          <Button icon="retry" onClick={onReload} disabled={loading}>
            {t('Refresh')}
          </Button>
        </>
      }
    >
      {replaying && replayed !== undefined && <ReplayDialog turnId={replayed} onClose={() => setReplaying(false)} />}
      {error !== undefined && <Failure error={error} onRetry={onReload} />}
      <Summary focus={focus} nodes={nodes} cause={cause} selected={selected} onSelect={setChosen} />
      <Clock runs={nodes.some(isRunning)}>
        {(nowMs) => (
          <div className="trace-layout">
            <TraceTree
              rows={rows}
              selected={selected.id}
              span={spanOf(nodes, nowMs)}
              nowMs={nowMs}
              onSelect={setChosen}
              onToggle={(id, open) => setToggled((before) => new Map([...before, [id, open]]))}
            />
            <TracePanel key={selected.id} node={selected} roots={roots} />
          </div>
        )}
      </Clock>
    </Page>
  );
}

/** Returns the id of a turn that has ended and whose question is stored; undefined for other records. */
function repeatable({ kind, id, endedAtMs, conversationRef }: TraceRecord): string | undefined {
  return kind === 'turn' && endedAtMs !== null && conversationRef !== undefined ? id.replace(/\.\d+$/, '') : undefined;
}

/** The time, which advances only while something runs. */
function Clock({ runs, children }: { readonly runs: boolean; readonly children: (nowMs: number) => ReactNode }) {
  return runs ? <Ticking>{children}</Ticking> : children(0);
}

function Ticking({ children }: { readonly children: (nowMs: number) => ReactNode }) {
  return children(useNow());
}

/** Outcome, cause, and what the whole has used. */
function Summary({
  focus,
  nodes,
  cause,
  selected,
  onSelect,
}: {
  readonly focus: TraceNode;
  readonly nodes: readonly TraceNode[];
  readonly cause: TraceNode | undefined;
  readonly selected: TraceNode;
  readonly onSelect: (id: string) => void;
}) {
  const { record, startMs, endMs } = focus;
  const outcome = outcomeOf(focus);
  const records = nodes.filter(({ step }) => step === undefined).map((node) => node.record);
  const sum = (read: (tokens: TraceRecord['tokens']) => number): number => records.reduce((total, { tokens }) => total + read(tokens), 0);
  const tokens = { in: sum((one) => one.in), out: sum((one) => one.out), cached: sum((one) => one.cached), cacheWritten: 0 };
  const calls = records.reduce((total, { modelCalls }) => total + modelCalls, 0);
  const costNano = records.some((one) => one.modelCalls > 0 && one.costNano === null)
    ? null
    : records.reduce((total, one) => total + (one.costNano ?? 0), 0);
  const error = record.error ?? cause?.step?.error;
  return (
    <>
      <p className="facts-line" role="status">
        <Badge tone={outcomeTones[outcome]}>{outcomeLabels[outcome]}</Badge>
        {record.synthetic && <Badge>{t('synthetic')}</Badge>}
        {record.endReason !== null && record.endReason !== 'stop' && <span className="mono">{record.endReason}</span>}
        <span title={dateTime(startMs)}>{ago(startMs)}</span>
        <span>{endMs === undefined ? t('running') : timeText(endMs - startMs)}</span>
        {records.length > 1 && <span>{plural(records.length, 'record')}</span>}
        {calls > 0 && <span>{`${plural(calls, 'model call')}, ${tokensText(tokens)}`}</span>}
        {calls > 0 && <span>{costText(costNano)}</span>}
        {record.model !== null && <span className="mono">{record.model}</span>}
        {record.agentId !== undefined && <PageLink to={`/agents/${record.agentId}`}>{record.agentId}</PageLink>}
      </p>
      {outcome === 'failed' && error !== undefined && error !== null && <ErrorText error={error} />}
      {cause !== undefined && cause.id !== selected.id && (
        <p className="hint">
          {t('Failed in')}{' '}
          <button type="button" className="link-like" onClick={() => onSelect(cause.id)}>
            {nameOf(cause)}
          </button>
          .
        </p>
      )}
    </>
  );
}
