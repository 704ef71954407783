import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { navigate } from '../../router.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { Elapsed } from '../../ui/elapsed.tsx';
import { PageLink } from '../../ui/link.tsx';
import { TraceLink } from '../../ui/object-link.tsx';
import { Badge, Button, Failure, Page, Skeleton } from '../../ui/parts.tsx';
import { saveJson } from '../../ui/save-json.ts';
import { spentText } from '../runs/labels.ts';
import { When } from '../../ui/when.tsx';
import { Canvas, type CanvasNode } from './canvas.tsx';
import type { GraphView } from './graph-state.ts';
import { NodePanel } from './node-panel.tsx';
import { RetryDialog } from './retry-dialog.tsx';
import { RunAgain } from './run-again.tsx';
import { useGraph } from './use-graph.ts';
import { cancelLabels, graphTones, nodeStanding, typeNames } from './labels.ts';

/** Shows a graph run: a diagram with the output of each node next to it. */
export function RunPage({ graphId }: { readonly graphId: string }) {
  const { client } = useSession();
  const { view, error, reload } = useGraph(graphId);
  const [selected, setChosen] = useState<string>();
  const chosen = selected ?? (view === undefined ? undefined : firstToSee(view));
  const [asked, setAsked] = useState<'again' | 'retry' | 'cancel' | 'delete'>();
  const saving = useAction();
  const close = (): void => setAsked(undefined);
  const save = async (): Promise<void> => saveJson(`graph-${graphId.slice(-12)}.json`, await client.call('graph.runDetail', { graphId }));
  return (
    <Page
      title={view?.label ?? t('Graph')}
      wide
      help="delegation"
      lead={<PageLink to="/graphs">{t('All graphs')}</PageLink>}
      actions={
        view !== undefined && (
          <>
            {!view.isTerminal && (
              <Button icon="stop" onClick={() => setAsked('cancel')}>
                {t('Cancel')}
              </Button>
            )}
            {view.isTerminal && (
              <Button icon="retry" onClick={() => setAsked('again')}>
                {t('Run again')}
              </Button>
            )}
            {view.isTerminal && (
              <Button icon="retry" onClick={() => setAsked('retry')}>
                {t('From a node')}
              </Button>
            )}
            <Button icon="download" onClick={() => saving.run(save)}>
              {t('Save outputs')}
            </Button>
            {view.isTerminal && (
              <Button icon="trash" onClick={() => setAsked('delete')}>
                {t('Delete')}
              </Button>
            )}
          </>
        )
      }
    >
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {saving.error !== undefined && <Failure error={saving.error} />}
      {view === undefined && error === undefined && <Skeleton lines={6} />}
      {view !== undefined && (
        <>
          <Facts view={view} />
          <Canvas label={t('Graph diagram')} nodes={canvasNodes(view)} arrows={view.edges} chosen={chosen} onChoose={setChosen} />
          <div className="graph-below">
            <NodeList view={view} chosen={chosen} onChoose={setChosen} />
            {chosen === undefined || view.nodes[chosen] === undefined ? (
              <p className="hint">{t('Select a node to see its output.')}</p>
            ) : (
              <NodePanel key={chosen} graphId={graphId} nodeId={chosen} node={view.nodes[chosen]} rootRunId={view.rootRunId} onAnswered={reload} />
            )}
          </div>
        </>
      )}
      {asked === 'again' && view !== undefined && <RunAgain graphId={graphId} label={view.label} onClose={close} />}
      {asked === 'retry' && view !== undefined && <RetryDialog graphId={graphId} view={view} onClose={close} />}
      {asked === 'cancel' && (
        <Confirm
          title={t('Cancel this graph?')}
          action={t('Cancel graph')}
          onClose={close}
          run={async () => {
            await client.call('graph.cancel', { graphId });
            close();
            reload();
          }}
        >
          <p>{t('No more nodes start. Running nodes finish.')}</p>
        </Confirm>
      )}
      {asked === 'delete' && (
        <Confirm
          title={t('Delete this run?')}
          action={t('Delete')}
          onClose={close}
          run={async () => {
            await client.call('graph.deleteRun', { graphId });
            navigate('/graphs');
          }}
        >
          <p>{t('Its outputs are deleted too.')}</p>
        </Confirm>
      )}
    </Page>
  );
}

/** Returns the node to show before one is selected: the pending gate, otherwise the first that failed. */
function firstToSee({ executionOrder, nodes }: GraphView): string | undefined {
  return executionOrder.find((id) => nodes[id]?.waitsForAnswer === true) ?? executionOrder.find((id) => nodes[id]?.status === 'failed');
}

function Facts({ view }: { readonly view: GraphView }) {
  const { status, isTerminal, cancelReason, startedAt, completedAt, rootRunId, stats, variables = {} } = view;
  const parts = [
    t('{completed} of {total} nodes completed', { completed: stats.completed, total: stats.total }),
    ...(stats.running > 0 ? [t('{running} running', { running: stats.running })] : []),
    ...(stats.failed > 0 ? [t('{failed} failed', { failed: stats.failed })] : []),
    ...(stats.skipped > 0 ? [t('{skipped} skipped', { skipped: stats.skipped })] : []),
  ];
  const spent = spentText(stats.tokens, stats.cost);
  return (
    <p className="facts-line" role="status">
      <Badge tone={graphTones[status]}>{status}</Badge>
      {cancelReason !== undefined && (
        <span>
          {isTerminal ? cancelLabels[cancelReason] : t('{cancelLabels}; running nodes finish', { cancelLabels: cancelLabels[cancelReason] })}
        </span>
      )}
      <span>{parts.join(', ')}</span>
      {startedAt !== undefined && (
        // Screen readers must not announce every second.
        <span aria-live="off">
          <Elapsed fromMs={startedAt} toMs={completedAt} />
        </span>
      )}
      {spent !== '' && <span>{spent}</span>}
      {startedAt !== undefined && <When atMs={startedAt} />}
      {Object.entries(variables).map(([name, value]) => (
        <span key={name} dir="auto">{`${name}: ${value}`}</span>
      ))}
      {rootRunId !== undefined && <PageLink to={`/runs/${rootRunId}`}>{t('Open run')}</PageLink>}
      {rootRunId !== undefined && <TraceLink reference={rootRunId} />}
    </p>
  );
}

function canvasNodes({ executionOrder, nodes }: GraphView): CanvasNode[] {
  return executionOrder.flatMap((id) => {
    const node = nodes[id];
    const { text, tone } = node === undefined ? ({ text: t('pending'), tone: 'neutral' } as const) : nodeStanding(node);
    return [{ id, title: id, kind: node?.type_id === undefined ? 'Task' : typeNames[node.type_id], text, tone, note: node?.progress ?? node?.error }];
  });
}

/** The content of the diagram as an ordered list. */
function NodeList({
  view,
  chosen,
  onChoose,
}: {
  readonly view: GraphView;
  readonly chosen: string | undefined;
  readonly onChoose: (id: string) => void;
}) {
  return (
    <nav aria-label={t('Nodes')}>
      <ul className="graph-list">
        {canvasNodes(view).map(({ id, kind, text, tone }) => (
          <li key={id}>
            <button type="button" className="file-item" aria-current={id === chosen} onClick={() => onChoose(id)}>
              <span className="cut">{id}</span>
              <span className="hint">{kind}</span>
              <span className="grow" />
              <Badge tone={tone}>{text}</Badge>
            </button>
          </li>
        ))}
      </ul>
    </nav>
  );
}
