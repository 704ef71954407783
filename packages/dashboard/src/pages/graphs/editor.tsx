import { useEffect, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { navigate, useLeaveGuard } from '../../router.ts';
import { PageLink } from '../../ui/link.tsx';
import { Badge, Button, Empty, Failure, Field, Notice, Page } from '../../ui/parts.tsx';
import { Canvas, type CanvasNode } from './canvas.tsx';
import {
  arrowsOf,
  changeNode,
  definitionOf,
  type DraftNode,
  type GraphDraft,
  maxNodes,
  withArrow,
  withNode,
  withoutArrow,
  withoutNode,
} from './draft.ts';
import { Findings, NodeForm } from './node-form.tsx';
import type { Problems } from './problems.ts';
import { SettingsForm } from './settings-form.tsx';
import { StartDialog } from './start-dialog.tsx';
import { type Check, useCheck } from './use-check.ts';
import { typeNames } from './labels.ts';

/** Edits a graph by mouse or by forms, validates it on every change, saves and runs it. */
export function Editor({ id, opened }: { readonly id: string | undefined; readonly opened: GraphDraft }) {
  const { client, defaultAgentId } = useSession();
  const [draft, setDraft] = useState(opened);
  const [saved, setSaved] = useState(opened);
  const [chosen, setChosen] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [outcome, setOutcome] = useState<string>();
  const [running, setRunning] = useState(false);
  const [madeId, setMadeId] = useState<string>();
  const check = useCheck(draft);
  const unsaved = draft !== saved;
  useLeaveGuard(unsaved, 'The graph has unsaved changes. Leave anyway?');
  // After saving, a new graph moves to the address of the saved one, once the guard sees no unsaved changes.
  useEffect(() => {
    if (madeId !== undefined && !unsaved) navigate(`/graphs/edit/${madeId}`, { replace: true });
  }, [madeId, unsaved]);
  const change = (next: GraphDraft): void => {
    setDraft(next);
    setOutcome(undefined);
  };
  const add = (): void => {
    const made = withNode(draft, defaultAgentId, chosen);
    change(made.draft);
    setChosen(made.key);
  };
  const remove = (key: string): void => {
    change(withoutNode(draft, key));
    setChosen(undefined);
  };
  const known = id ?? madeId;
  const save = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      const { nodes, settings } = definitionOf(draft);
      const kept = await client.call('graph.save', {
        label: draft.label.trim(),
        nodes,
        ...(settings !== undefined && { settings }),
        ...(known !== undefined && { id: known }),
      });
      setSaved(draft);
      setOutcome(`Saved ${draft.label.trim()}.`);
      if (id === undefined) setMadeId(kept.id);
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  const node = draft.nodes.find(({ key }) => key === chosen);
  return (
    <Page
      title={id === undefined ? 'New graph' : opened.label}
      lead={<PageLink to="/graphs">All graphs</PageLink>}
      actions={
        <>
          <Button icon="plus" disabled={draft.nodes.length >= maxNodes} onClick={add}>
            Add node
          </Button>
          <Button disabled={busy || draft.label.trim() === '' || draft.nodes.length === 0 || !unsaved} onClick={() => void save()}>
            {busy ? 'Saving…' : 'Save'}
          </Button>
          <Button look="primary" icon="play" disabled={check.defined === undefined} onClick={() => setRunning(true)}>
            Run
          </Button>
        </>
      }
    >
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {error !== undefined && <Failure error={error} title="Failed to save." />}
      {check.failure !== undefined && <Failure error={check.failure} title="Failed to validate." />}
      <Findings errors={graphErrors(check)} warnings={check.warnings.filter(({ nodeId }) => nodeId === undefined)} />
      <div className="graph-parts">
        <div className="graph-main">
          <Field label="Graph name">
            {(own) => <input id={own} maxLength={200} value={draft.label} onChange={(event) => change({ ...draft, label: event.target.value })} />}
          </Field>
          {draft.nodes.length === 0 ? (
            <Empty title="No nodes yet">
              <p>Each node is a task for one or more agents. Arrows show which node waits for which.</p>
            </Empty>
          ) : (
            <Canvas
              label="Graph diagram"
              nodes={draft.nodes.map((one, at) => canvasNode(one, problemsOf(check, one, at)))}
              arrows={arrowsOf(draft)}
              chosen={chosen}
              onChoose={setChosen}
              editing={{
                connect: (from, to) => change(withArrow(draft, { from, to })),
                removeNode: remove,
                removeArrow: (arrow) => change(withoutArrow(draft, arrow)),
              }}
            />
          )}
          <p className="hint" role="status">
            {describeCheck(check, draft)}
          </p>
          <NodeList draft={draft} check={check} chosen={chosen} onChoose={setChosen} />
        </div>
        <div className="graph-side">
          {node === undefined ? (
            <SettingsForm draft={draft} errors={check.checked.graph} onChange={(part) => change({ ...draft, ...part })} />
          ) : (
            <NodeForm
              key={node.key}
              draft={draft}
              node={node}
              problems={problemsOf(check, node, draft.nodes.indexOf(node))}
              onChange={(part) => change(changeNode(draft, node.key, part))}
              onRemove={() => remove(node.key)}
            />
          )}
        </div>
      </div>
      {running && check.defined !== undefined && (
        <StartDialog
          name={draft.label.trim() === '' ? 'this graph' : draft.label.trim()}
          startable={{ definition: definitionOf(draft) }}
          variables={check.defined.userVariables}
          asksPeople={draft.nodes.some(({ type }) => type === 'approval-gate')}
          onClose={() => setRunning(false)}
        />
      )}
    </Page>
  );
}

/** Returns the problems of the graph as a whole; those of a settings field are shown there. */
function graphErrors({ checked }: Check): Problems['errors'] {
  return new Map([...checked.graph].filter(([path]) => !path.startsWith('settings')));
}

function problemsOf(check: Check, { id }: DraftNode, at: number): Problems {
  return { errors: check.checked.nodes.get(at) ?? new Map(), warnings: check.warnings.filter(({ nodeId }) => nodeId === id.trim()) };
}

function canvasNode(node: DraftNode, { errors, warnings }: Problems): CanvasNode {
  const { key, id, type, agent, task } = node;
  const kind = type === '' ? agent || 'default agent' : typeNames[type];
  const [text, tone] = errors.size > 0 ? (['error', 'bad'] as const) : warnings.length > 0 ? (['warn', 'warn'] as const) : (['ok', 'good'] as const);
  return { id: key, title: id === '' ? '(no name)' : id, kind, text, tone, note: task.trim() === '' ? 'no task yet' : task.slice(0, 60) };
}

function describeCheck({ checked, defined, warnings }: Check, draft: GraphDraft): string {
  const wrong = checked.nodes.size;
  if (defined !== undefined)
    return `Ready to run: ${plural(defined.nodeCount, 'node')}${warnings.length === 0 ? '' : `, ${plural(warnings.length, 'warning')}`}.`;
  if (wrong > 0) return `${plural(wrong, 'invalid node')}. Fix before running.`;
  return draft.nodes.length === 0 || checked.graph.size > 0 ? '' : 'Checking…';
}

/** Lists the nodes: the content of the drawing for the keyboard and screen readers. */
function NodeList({
  draft,
  check,
  chosen,
  onChoose,
}: {
  readonly draft: GraphDraft;
  readonly check: Check;
  readonly chosen: string | undefined;
  readonly onChoose: (key: string | undefined) => void;
}) {
  return (
    <nav aria-label="Graph sections">
      <ul className="graph-list">
        <li>
          <button type="button" className="file-item" aria-current={chosen === undefined} onClick={() => onChoose(undefined)}>
            Settings
          </button>
        </li>
        {draft.nodes.map((node, at) => {
          const shown = canvasNode(node, problemsOf(check, node, at));
          return (
            <li key={node.key}>
              <button type="button" className="file-item" aria-current={node.key === chosen} onClick={() => onChoose(node.key)}>
                <span className="cut">{shown.title}</span>
                <span className="hint cut">{shown.kind}</span>
                <span className="grow" />
                <Badge tone={shown.tone}>{shown.text}</Badge>
              </button>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}
