import { t } from '../../language.ts';
import { useState } from 'react';
import { plural } from '../../data/format.ts';
import { PageLink } from '../../ui/link.tsx';
import { Button, Empty, Failure, Field, Notice, Page } from '../../ui/parts.tsx';
import { Canvas } from './canvas.tsx';
import { arrowsOf, changeNode, definitionOf, type GraphDraft, maxNodes, withArrow, withoutArrow } from './draft.ts';
import { Findings } from './findings.tsx';
import { NodeForm } from './node-form.tsx';
import { canvasNode, NodeList, problemsOf } from './node-list.tsx';
import type { Problems } from './problems.ts';
import { SettingsForm } from './settings-form.tsx';
import { StartDialog } from './start-dialog.tsx';
import { type Check, useCheck } from './use-check.ts';
import { useEditing } from './use-editing.ts';

/** Edits a graph by mouse or by forms, validates it on every change, saves and runs it. */
export function Editor({ id, opened }: { readonly id: string | undefined; readonly opened: GraphDraft }) {
  const { draft, chosen, choose, change, add, remove, save, isUnsaved } = useEditing(id, opened);
  const [running, setRunning] = useState(false);
  const check = useCheck(draft);
  const node = draft.nodes.find(({ key }) => key === chosen);
  return (
    <Page
      title={id === undefined ? t('New graph') : opened.label}
      lead={<PageLink to="/graphs">{t('All graphs')}</PageLink>}
      actions={
        <>
          <Button icon="plus" disabled={draft.nodes.length >= maxNodes} onClick={add}>
            {t('Add node')}
          </Button>
          <Button disabled={save.busy || draft.label.trim() === '' || draft.nodes.length === 0 || !isUnsaved} onClick={save.start}>
            {save.busy ? t('Saving…') : t('Save')}
          </Button>
          <Button look="primary" icon="play" disabled={check.defined === undefined} onClick={() => setRunning(true)}>
            {t('Run')}
          </Button>
        </>
      }
    >
      <div role="status">{save.outcome !== undefined && <Notice tone="good">{save.outcome}</Notice>}</div>
      {save.error !== undefined && <Failure error={save.error} title={t('Failed to save.')} />}
      {check.failure !== undefined && <Failure error={check.failure} title={t('Failed to validate.')} />}
      <Findings errors={graphErrors(check)} warnings={check.warnings.filter(({ nodeId }) => nodeId === undefined)} />
      <div className="graph-parts">
        <div className="graph-main">
          <Field label={t('Graph name')}>
            {(own) => <input id={own} maxLength={200} value={draft.label} onChange={(event) => change({ ...draft, label: event.target.value })} />}
          </Field>
          {draft.nodes.length === 0 ? (
            <Empty title={t('No nodes yet')}>
              <p>{t('Each node is a task for one or more agents. Arrows show which node waits for which.')}</p>
            </Empty>
          ) : (
            <Canvas
              label={t('Graph diagram')}
              nodes={draft.nodes.map((one, at) => canvasNode(one, problemsOf(check, one, at)))}
              arrows={arrowsOf(draft)}
              chosen={chosen}
              onChoose={choose}
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
          <NodeList draft={draft} check={check} chosen={chosen} onChoose={choose} />
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
          name={draft.label.trim() === '' ? t('this graph') : draft.label.trim()}
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

function describeCheck({ checked, defined, warnings }: Check, draft: GraphDraft): string {
  const wrong = checked.nodes.size;
  if (defined !== undefined)
    return t('Ready to run: {nodes}{warnings}.', {
      nodes: plural(defined.nodeCount, 'node'),
      warnings: warnings.length === 0 ? '' : `, ${plural(warnings.length, 'warning')}`,
    });
  if (wrong > 0) return t('{nodes}. Fix before running.', { nodes: plural(wrong, 'invalid node') });
  return draft.nodes.length === 0 || checked.graph.size > 0 ? '' : t('Checking…');
}
