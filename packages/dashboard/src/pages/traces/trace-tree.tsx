import { t } from '../../language.ts';
import { type KeyboardEvent, useEffect, useRef, useState } from 'react';
import { Icon } from '../../ui/icon.tsx';
import { iconOf, kindOf, nameOf, outcomeLabels, outcomeOf, outcomeTones, timeText } from './labels.ts';
import type { TraceNode, TraceRow } from './trace-rows.ts';

/** Height of a row in the style sheet. */
const rowHeight = 34;
/** Rows that are drawn above and below what is visible. */
const spare = 12;

export interface TraceTreeProps {
  readonly rows: readonly TraceRow[];
  readonly selected: string;
  readonly span: { readonly fromMs: number; readonly toMs: number };
  readonly nowMs: number;
  readonly onSelect: (id: string) => void;
  readonly onToggle: (id: string, open: boolean) => void;
}

/** The steps as a tree with a bar for each on a common time axis. Only the rows in view are drawn. */
export function TraceTree({ rows, selected, span, nowMs, onSelect, onToggle }: TraceTreeProps) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ from: 0, to: 60 });
  const at = rows.findIndex(({ node }) => node.id === selected);

  const look = (): void => {
    const { scrollTop = 0, clientHeight = 0 } = box.current ?? {};
    const from = Math.max(0, Math.floor(scrollTop / rowHeight) - spare);
    const to = Math.ceil((scrollTop + clientHeight) / rowHeight) + spare;
    setView((before) => (before.from === from && before.to === to ? before : { from, to }));
  };
  useEffect(() => {
    const frame = box.current;
    if (frame === null) return undefined;
    const watch = new ResizeObserver(look);
    watch.observe(frame);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    const frame = box.current;
    if (frame === null || at < 0) return;
    const top = at * rowHeight;
    if (top < frame.scrollTop) frame.scrollTop = top;
    else if (top + rowHeight > frame.scrollTop + frame.clientHeight) frame.scrollTop = top + rowHeight - frame.clientHeight;
  }, [at]);

  const onKey = (event: KeyboardEvent): void => {
    const row = rows[at];
    const select = (one: TraceRow | undefined): void => void (one !== undefined && onSelect(one.node.id));
    const parent = (): TraceRow | undefined => rows.slice(0, at).findLast(({ level }) => level < (row?.level ?? 1));
    const keys: Readonly<Record<string, () => void>> = {
      ArrowDown: () => select(rows[at + 1]),
      ArrowUp: () => select(rows[at - 1]),
      Home: () => select(rows[0]),
      End: () => select(rows.at(-1)),
      PageDown: () => select(rows[Math.min(rows.length - 1, at + 10)]),
      PageUp: () => select(rows[Math.max(0, at - 10)]),
      ArrowRight: () => (row?.isOpen === false ? onToggle(row.node.id, true) : row?.isOpen === true && select(rows[at + 1])),
      ArrowLeft: () => (row?.isOpen === true ? onToggle(row.node.id, false) : select(parent())),
    };
    const action = keys[event.key];
    if (action === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  };

  const from = Math.min(view.from, Math.max(0, rows.length - 1));
  const shown = rows.slice(from, view.to);
  const active = shown.find(({ node }) => node.id === selected);
  return (
    <div className="waterfall">
      <Axis span={span} />
      <div
        ref={box}
        className="waterfall-rows"
        role="tree"
        aria-label={t('Steps')}
        tabIndex={0}
        aria-activedescendant={active === undefined ? undefined : rowId(active.node)}
        onScroll={look}
        onKeyDown={onKey}
      >
        <div role="presentation" style={{ height: from * rowHeight }} />
        {shown.map((row) => (
          <Row key={row.node.id} row={row} isSelected={row.node.id === selected} span={span} nowMs={nowMs} onSelect={onSelect} onToggle={onToggle} />
        ))}
        <div role="presentation" style={{ height: Math.max(0, rows.length - from - shown.length) * rowHeight }} />
      </div>
    </div>
  );
}

function rowId({ id }: TraceNode): string {
  return `step-${id}`;
}

function Row({
  row: { node, level, position, siblings, isOpen },
  isSelected,
  span,
  nowMs,
  onSelect,
  onToggle,
}: {
  readonly row: TraceRow;
  readonly isSelected: boolean;
  readonly span: TraceTreeProps['span'];
  readonly nowMs: number;
  readonly onSelect: (id: string) => void;
  readonly onToggle: (id: string, open: boolean) => void;
}) {
  const { id, startMs, endMs, step } = node;
  const outcome = outcomeOf(node);
  const tone = outcomeTones[outcome];
  const isPlain = tone === 'good' || tone === 'neutral';
  const lasts = (endMs ?? (outcome === 'running' ? nowMs : startMs)) - startMs;
  return (
    <div
      id={rowId(node)}
      role="treeitem"
      aria-level={level}
      aria-posinset={position}
      aria-setsize={siblings}
      aria-expanded={isOpen}
      aria-selected={isSelected}
      className={`waterfall-row${isSelected ? ' selected' : ''}`}
      onClick={() => onSelect(id)}
    >
      <span className={`waterfall-name level-${Math.min(level, 8)}`}>
        <span
          className="tree-twist"
          aria-hidden="true"
          onClick={(event) => {
            if (isOpen === undefined) return;
            event.stopPropagation();
            onToggle(id, !isOpen);
          }}
        >
          {isOpen === undefined ? '' : isOpen ? '▾' : '▸'}
        </span>
        <span className={`step-icon ${tone}-text`}>
          <Icon name={iconOf(node)} />
        </span>
        <span className="visually-hidden">{`${kindOf(node)} `}</span>
        <span className={step === undefined ? 'cut step-record' : 'cut'} dir="auto">
          {nameOf(node)}
        </span>
        <span className={isPlain ? 'visually-hidden' : `step-outcome ${tone}-text`}>{outcomeLabels[outcome]}</span>
      </span>
      <span className="waterfall-time">
        <Bar span={span} fromMs={startMs} toMs={startMs + lasts} className={step === undefined ? `${tone} whole` : tone} />
        <span className="hint">{timeText(lasts)}</span>
      </span>
    </div>
  );
}

function Bar({
  span,
  fromMs,
  toMs,
  className,
}: {
  readonly span: TraceTreeProps['span'];
  readonly fromMs: number;
  readonly toMs: number;
  readonly className: string;
}) {
  const whole = Math.max(1, span.toMs - span.fromMs);
  const share = (ms: number): number => Math.min(100, Math.max(0, (100 * ms) / whole));
  const left = share(fromMs - span.fromMs);
  return (
    <svg className="waterfall-bar" aria-hidden="true" width="100%" height="12">
      <rect
        className={`bar ${className}`}
        x={`${Math.min(left, 99.5)}%`}
        y="1"
        height="10"
        rx="2"
        width={`${Math.max(0.5, share(toMs - fromMs))}%`}
      />
    </svg>
  );
}

/** Times of the axis: start, middle and end, as on a ruler above the bars. */
function Axis({ span }: { readonly span: TraceTreeProps['span'] }) {
  const whole = span.toMs - span.fromMs;
  return (
    <div className="waterfall-axis" aria-hidden="true">
      <span />
      <span className="waterfall-scale hint">
        <span>0</span>
        <span>{timeText(whole / 2)}</span>
        <span>{timeText(whole)}</span>
      </span>
    </div>
  );
}
