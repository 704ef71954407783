import { t } from '../../language.ts';
import { Badge } from '../../ui/parts.tsx';
import type { CanvasNode } from './canvas.tsx';
import type { DraftNode, GraphDraft } from './draft.ts';
import { typeNames } from './labels.ts';
import type { Problems } from './problems.ts';
import type { Check } from './use-check.ts';

/** Returns the problems of the node at a position. */
export function problemsOf(check: Check, { id }: DraftNode, at: number): Problems {
  return { errors: check.checked.nodes.get(at) ?? new Map(), warnings: check.warnings.filter(({ nodeId }) => nodeId === id.trim()) };
}

/** Returns how a node is drawn. */
export function canvasNode(node: DraftNode, { errors, warnings }: Problems): CanvasNode {
  const { key, id, type, agent, task } = node;
  const kind = type === '' ? agent || t('default agent') : typeNames[type];
  const [text, tone] = errors.size > 0 ? (['error', 'bad'] as const) : warnings.length > 0 ? (['warn', 'warn'] as const) : (['ok', 'good'] as const);
  return { id: key, title: id === '' ? t('(no name)') : id, kind, text, tone, note: task.trim() === '' ? t('no task yet') : task.slice(0, 60) };
}

/** Lists the nodes: the content of the drawing for the keyboard and screen readers. */
export function NodeList({
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
    <nav aria-label={t('Graph sections')}>
      <ul className="graph-list">
        <li>
          <button type="button" className="file-item" aria-current={chosen === undefined} onClick={() => onChoose(undefined)}>
            {t('Settings')}
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
