import { t, tx } from '../../language.ts';
import { type KeyboardEvent, useMemo, useRef, useState } from 'react';
import { count, dateTime, plural } from '../../data/format.ts';
import { useWidth } from '../../ui/charts/use-width.ts';
import { PageLink } from '../../ui/link.tsx';
import { Badge, type Tone } from '../../ui/parts.tsx';
import { layOut, readTree, type SummaryNode, type TreeItem } from './tree-layout.ts';

const taints: Readonly<Record<SummaryNode['taint'], { readonly tone: Tone; readonly text: string }>> = {
  clean: { tone: 'good', text: t('clean') },
  wrapped: { tone: 'warn', text: t('includes external content, fenced') },
};

/** Shows the summaries of a conversation over its messages: as a drawing, and as a tree for keyboard navigation. */
export function ContextTree({
  nodes,
  messageCount,
  cutSeq,
  resetSeq,
  reference,
}: {
  readonly nodes: readonly SummaryNode[];
  readonly messageCount: number;
  readonly cutSeq: number;
  /** The last message before the latest reset. */
  readonly resetSeq: number;
  readonly reference: string;
}) {
  const items = useMemo(() => readTree(nodes, cutSeq), [nodes, cutSeq]);
  const [chosen, setChosen] = useState<string>();
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  // The model sees nothing from before a reset, not even as a summary.
  const seenFrom = Math.max(cutSeq, resetSeq);
  const current = items.find(({ node }) => node.summaryId === chosen) ?? items[0];
  return (
    <div className="context-tree">
      <Drawing items={items} messageCount={messageCount} cutSeq={seenFrom} chosen={current?.node.summaryId} onChoose={setChosen} />
      <p className="hint">{describeView(items, messageCount, seenFrom, resetSeq)}</p>
      {current !== undefined && (
        <div className="tree-parts">
          <TreeList items={items} closed={closed} onClosed={setClosed} chosen={current.node.summaryId} onChoose={setChosen} />
          <Details item={current} reference={reference} />
        </div>
      )}
    </div>
  );
}

function describeView(items: readonly TreeItem[], messageCount: number, seenFrom: number, resetSeq: number): string {
  const seen = items.filter(({ inView }) => inView).length;
  const parts = [
    ...(seen > 0 ? [t('{seen} of {summaries}', { seen: count(seen), summaries: plural(items.length, 'summary', 'summaries') })] : []),
    ...(seenFrom < messageCount
      ? [t('messages {seenFrom} to {messageCount} in full', { seenFrom: count(seenFrom + 1), messageCount: count(messageCount) })]
      : []),
  ];
  const view = parts.length === 0 ? t('The model sees nothing of this conversation.') : t('The model sees {parts}.', { parts: parts.join(' and ') });
  const reset = resetSeq > 0 ? ` ${t('Reset after message {resetSeq}.', { resetSeq: count(resetSeq) })}` : '';
  return t('{view}{reset} All {messages} are kept.', { view, reset, messages: plural(messageCount, 'message') });
}

function Drawing({
  items,
  messageCount,
  cutSeq,
  chosen,
  onChoose,
}: {
  readonly items: readonly TreeItem[];
  readonly messageCount: number;
  readonly cutSeq: number;
  readonly chosen: string | undefined;
  readonly onChoose: (id: string) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const { boxes, edges, axisY, height, cutX, xOf } = layOut(items, messageCount, cutSeq, width);
  const byId = new Map(items.map((item) => [item.node.summaryId, item]));
  const end = xOf(messageCount);
  return (
    <div ref={box} className="tree-box">
      {/* The list below has the same content for screen readers and the keyboard. */}
      <svg width={width} height={height} aria-hidden="true">
        <rect className="seen-part" x={cutX} y={0} width={Math.max(0, end - cutX)} height={axisY} />
        {edges.map(({ key, x1, y1, x2, y2 }) => (
          <path key={key} className="tree-edge" d={`M${x1} ${y1}C${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2} ${x2} ${y2}`} />
        ))}
        {boxes.map(({ id, ...place }) => {
          const item = byId.get(id);
          return (
            item !== undefined && (
              <rect
                key={id}
                className={['tree-bar', item.node.kind, item.inView ? 'in-view' : '', id === chosen ? 'chosen' : ''].filter(Boolean).join(' ')}
                rx={4}
                {...place}
                onClick={() => onChoose(id)}
              >
                <title>{describe(item.node)}</title>
              </rect>
            )
          );
        })}
        <line className="tree-axis" x1={xOf(0)} x2={end} y1={axisY} y2={axisY} />
        {cutSeq < messageCount && <line className="tree-axis seen" x1={cutX} x2={end} y1={axisY} y2={axisY} />}
        {cutSeq > 0 && <line className="tree-cut" x1={cutX} x2={cutX} y1={0} y2={axisY + 6} />}
        <text className="axis-text" x={xOf(0)} y={axisY + 20}>
          1
        </text>
        <text className="axis-text" x={end} y={axisY + 20} textAnchor="end">
          {count(messageCount)}
        </text>
        {/* Near an end it would overlap the axis label. */}
        {cutX - xOf(0) > 90 && end - cutX > 90 && (
          <text className="axis-text" x={cutX} y={axisY + 20} textAnchor="middle">
            {t('cut after {cutSeq}', { cutSeq: count(cutSeq) })}
          </text>
        )}
      </svg>
    </div>
  );
}

function TreeList({
  items,
  closed,
  onClosed,
  chosen,
  onChoose,
}: {
  readonly items: readonly TreeItem[];
  readonly closed: ReadonlySet<string>;
  readonly onClosed: (closed: ReadonlySet<string>) => void;
  readonly chosen: string;
  readonly onChoose: (id: string) => void;
}) {
  const list = useRef<HTMLUListElement>(null);
  const shown = visible(items, closed);
  const close = (id: string, wanted: boolean): void => {
    const next = new Set(closed);
    if (wanted) next.add(id);
    else next.delete(id);
    onClosed(next);
  };
  const move = (id: string | undefined): void => {
    if (id === undefined) return;
    onChoose(id);
    list.current?.querySelector<HTMLElement>(`[data-summary="${CSS.escape(id)}"]`)?.focus();
  };
  const onKey = (event: KeyboardEvent, item: TreeItem, at: number): void => {
    const id = item.node.summaryId;
    const isOpen = item.children.length > 0 && !closed.has(id);
    const keys: Readonly<Record<string, () => void>> = {
      ArrowDown: () => move(shown[at + 1]?.node.summaryId),
      ArrowUp: () => move(shown[at - 1]?.node.summaryId),
      Home: () => move(shown[0]?.node.summaryId),
      End: () => move(shown.at(-1)?.node.summaryId),
      ArrowRight: () => (isOpen ? move(item.children[0]) : close(id, false)),
      ArrowLeft: () => (isOpen ? close(id, true) : move(item.parent)),
    };
    const action = keys[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  };
  // The focused item may be hidden inside a closed parent.
  const focusable = shown.some(({ node }) => node.summaryId === chosen) ? chosen : shown[0]?.node.summaryId;
  return (
    <ul role="tree" aria-label={t('Summaries')} ref={list} className="tree-list">
      {shown.map((item, at) => {
        const { node, level, children, position, siblings, inView } = item;
        const id = node.summaryId;
        const isOpen = !closed.has(id);
        return (
          <li
            key={id}
            role="treeitem"
            data-summary={id}
            className={`tree-item level-${Math.min(level, 6)}`}
            aria-level={level}
            aria-posinset={position}
            aria-setsize={siblings}
            aria-expanded={children.length > 0 ? isOpen : undefined}
            aria-selected={id === chosen}
            tabIndex={id === focusable ? 0 : -1}
            onClick={() => (id === chosen && children.length > 0 ? close(id, isOpen) : onChoose(id))}
            onKeyDown={(event) => onKey(event, item, at)}
          >
            <span className="tree-twist" aria-hidden="true">
              {children.length === 0 ? '' : isOpen ? '▾' : '▸'}
            </span>
            <span>{t('Messages {fromSeq}–{toSeq}', { fromSeq: count(node.fromSeq), toSeq: count(node.toSeq) })}</span>
            <span className="hint">{`${node.kind}, ${plural(node.tokenCount, 'token')}`}</span>
            {inView && <Badge tone="accent">{t('in view')}</Badge>}
          </li>
        );
      })}
    </ul>
  );
}

function Details({ item: { node, inView }, reference }: { readonly item: TreeItem; readonly reference: string }) {
  const taint = taints[node.taint];
  return (
    <section className="tree-details" aria-label={t('Selected summary')}>
      <p className="badges">
        <Badge>{node.kind === 'leaf' ? t('leaf') : t('condensed, depth {depth}', { depth: node.depth })}</Badge>
        <Badge tone={taint.tone}>{taint.text}</Badge>
        {inView && <Badge tone="accent">{t('visible to the model')}</Badge>}
      </p>
      <p dir="auto" className="tree-preview">
        {node.contentPreview}
      </p>
      <p className="hint">
        {tx('{tokens}, created {createdAt} {model}. {link}', {
          tokens: plural(node.tokenCount, 'token'),
          createdAt: dateTime(node.createdAt),
          model: node.model === 'truncation' ? t('by truncation, because no model returned a summary') : t('by {model}', { model: node.model }),
          link: (
            <PageLink to={`/conversations/${reference}/${node.fromSeq}`}>
              {tx('Read messages {fromSeq} to {toSeq}', { fromSeq: count(node.fromSeq), toSeq: count(node.toSeq) })}
            </PageLink>
          ),
        })}
      </p>
    </section>
  );
}

function visible(items: readonly TreeItem[], closed: ReadonlySet<string>): readonly TreeItem[] {
  const hidden = new Set<string>();
  return items.filter(({ node, parent }) => {
    if (parent === undefined || (!hidden.has(parent) && !closed.has(parent))) return true;
    hidden.add(node.summaryId);
    return false;
  });
}

function describe({ kind, fromSeq, toSeq, tokenCount, contentPreview }: SummaryNode): string {
  return t('{kind}, messages {fromSeq} to {toSeq}, {tokenCount} tokens: {contentPreview}', { kind, fromSeq, toSeq, tokenCount, contentPreview });
}
