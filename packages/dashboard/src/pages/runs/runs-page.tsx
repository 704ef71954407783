import { t, tx } from '../../language.ts';
import { useCallback, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useEventBatch } from '../../data/use-event-batch.ts';
import { useLoad } from '../../data/use-load.ts';
import { useThrottled } from '../../data/use-throttled.ts';
import { navigate } from '../../router.ts';
import { ExecutionTabs } from '../../ui/execution-tabs.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Button, Empty, Failure, Notice, Page, Skeleton } from '../../ui/parts.tsx';
import { BackgroundList } from './background-list.tsx';
import { CompareDialog } from './compare-dialog.tsx';
import { GateButton } from './gate-button.tsx';
import { NamedRun } from './named-run.tsx';
import { KillRun, RootConfirm } from './run-confirm.tsx';
import { RunDialog } from './run-dialog.tsx';
import { type RootAction, RootTable } from './root-table.tsx';
import type { RootRun } from './run-state.ts';
import type { RunAgainAsked, RunAsked } from './run-tree.tsx';
import { SpawnDialog } from './spawn-dialog.tsx';
import { SteerDialog } from './steer-dialog.tsx';

type Asked = 'spawn' | 'compare' | RunAsked | RunAgainAsked | { readonly action: RootAction; readonly root: RootRun };

const pageSize = 50;
/** Active roots that are expanded automatically; each expanded root costs a request. */
const openedAtOnce = 5;
const leastReloadMs = 3000;
/** Page limit of the gateway. */
const maxListed = 200;

/** Lists root runs, newest first, and their sub-agents, live; `/runs/<id>` shows one root run, or a sub-agent. */
export function RunsPage({ rest }: { readonly rest: string | undefined }) {
  const { client, admin } = useSession();
  const [limit, setLimit] = useState(rest === undefined ? pageSize : maxListed);
  const [onlyActive, setOnlyActive] = useState(false);
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map(rest === undefined ? [] : [[rest, true]]));
  const [asked, setAsked] = useState<Asked>();
  const [outcome, setOutcome] = useState<string>();
  const [failure, setFailure] = useState<unknown>();
  const { data, error, loading, reload } = useLoad(
    ['run.list', onlyActive, limit],
    (signal) => client.call('run.list', { limit, ...(onlyActive && { state: 'active' as const }) }, { signal }),
    { keepsPrevious: (previous) => previous[1] === onlyActive },
  );
  const [seen, setSeen] = useState<typeof data>();
  if (data !== undefined && data !== seen) {
    setSeen(data);
    setToggled((before) => openActive(before, data.runs));
  }
  const reloadSoon = useThrottled(reload, leastReloadMs);
  useEventBatch('session:sub_agent_,graph:started,graph:completed,autonomy:,approval:', reloadSoon);
  const toggle = useCallback((id: string, open: boolean) => setToggled((before) => new Map([...before, [id, open]])), []);
  const isOpen = useCallback((id: string) => toggled.get(id) === true, [toggled]);
  const askRoot = useCallback((action: RootAction, root: RootRun) => setAsked({ action, root }), []);
  const close = (): void => {
    setAsked(undefined);
    if (rest?.startsWith('sr_') === true) navigate('/runs', { replace: true });
  };
  const done = (text: string): void => {
    setOutcome(text);
    setAsked(undefined);
    reload();
  };
  return (
    <Page
      wide
      help="delegation"
      title={t('Runs')}
      lead={admin ? t('Delegated work of all users and its progress.') : t('Work that you and your agents delegated, and its progress.')}
      actions={
        <>
          {admin && <GateButton onDone={setOutcome} onError={setFailure} />}
          <Button icon="plus" look="primary" onClick={() => setAsked('spawn')}>
            {t('Start a sub-agent')}
          </Button>
        </>
      }
    >
      <ExecutionTabs current="/runs" />
      <div className="toolbar">
        <fieldset className="chips">
          <legend className="visually-hidden">{t('Which runs')}</legend>
          {[false, true].map((active) => (
            <button key={String(active)} type="button" className="chip" aria-pressed={active === onlyActive} onClick={() => setOnlyActive(active)}>
              {active ? t('Active') : t('All')}
            </button>
          ))}
        </fieldset>
        <span className="grow" />
        {data !== undefined && data.runs.length > 1 && <Button onClick={() => setAsked('compare')}>{t('Compare')}</Button>}
      </div>
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {failure !== undefined && <Failure error={failure} />}
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {rest !== undefined && <NamedRun key={rest} id={rest} roots={data?.runs} onAsk={setAsked} />}
      {data === undefined && loading && <Skeleton lines={5} />}
      {data?.runs.length === 0 && (
        <Empty title={onlyActive ? t('No active runs') : t('No runs yet')}>
          <p>
            {tx('A run starts when an agent delegates work, or when a {link} starts. Start a sub-agent to try it.', {
              link: <PageLink to="/graphs">{t('graph')}</PageLink>,
            })}
          </p>
        </Empty>
      )}
      {data !== undefined && data.runs.length > 0 && (
        <RootTable roots={data.runs} isOpen={isOpen} admin={admin} onToggle={toggle} onRoot={askRoot} onAsk={setAsked} />
      )}
      {data?.hasMore === true && (
        <div className="pages">
          <Button small disabled={loading || limit >= maxListed} onClick={() => setLimit(Math.min(maxListed, limit + pageSize))}>
            {t('Older')}
          </Button>
          <span className="hint">{t('Showing {runs} of {total}.', { runs: data.runs.length, total: data.total })}</span>
        </div>
      )}
      <BackgroundList onDone={setOutcome} onError={setFailure} />
      {asked === 'compare' && data !== undefined && <CompareDialog roots={data.runs} onClose={close} />}
      {asked === 'spawn' && <SpawnDialog onClose={close} onDone={done} />}
      {typeof asked === 'object' && 'again' in asked && <SpawnDialog initial={asked.again} onClose={close} onDone={done} />}
      {typeof asked === 'object' && 'what' in asked && asked.what === 'details' && <RunDialog run={asked.run} onClose={close} onAsk={setAsked} />}
      {typeof asked === 'object' && 'what' in asked && asked.what === 'steer' && <SteerDialog run={asked.run} onClose={close} onDone={done} />}
      {typeof asked === 'object' && 'what' in asked && asked.what === 'kill' && <KillRun run={asked.run} onClose={close} onDone={done} />}
      {typeof asked === 'object' && 'action' in asked && <RootConfirm {...asked} onClose={close} onDone={done} />}
    </Page>
  );
}

/** Expands new active roots, and keeps them open after they end because the user may be reading them. */
function openActive(toggled: ReadonlyMap<string, boolean>, roots: readonly RootRun[]): ReadonlyMap<string, boolean> {
  const open = roots.filter(({ rootRunId }) => toggled.get(rootRunId) === true).length;
  const fresh = roots.filter(({ rootRunId, state }) => state === 'active' && !toggled.has(rootRunId)).slice(0, Math.max(0, openedAtOnce - open));
  if (fresh.length === 0) return toggled;
  return new Map([...toggled, ...fresh.map(({ rootRunId }) => [rootRunId, true] as const)]);
}
