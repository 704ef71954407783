import { t } from '../../language.ts';
import { Background, Controls, type Edge, Handle, MarkerType, type Node, type NodeChange, type NodeProps, Position, ReactFlow } from '@xyflow/react';
import type { ReactFlowInstance } from '@xyflow/react';
import { useEffect, useMemo, useRef, useState } from 'react';
import { useWidth } from '../../ui/charts/use-width.ts';
import { Badge, type Tone } from '../../ui/parts.tsx';
import { type Arrow, betterDirection, type Direction, layOut, nodeHeight, nodeWidth, type NodePosition } from './layout.ts';

export interface CanvasNode {
  readonly id: string;
  readonly title: string;
  readonly kind: string;
  readonly text: string;
  readonly tone: Tone;
  /** Another line, such as the progress. */
  readonly note?: string | undefined;
}

/** Changes that the user can make in the drawing by mouse and keyboard. */
export interface CanvasEditing {
  readonly connect: (from: string, to: string) => void;
  readonly removeNode: (id: string) => void;
  readonly removeArrow: (arrow: Arrow) => void;
}

type StepNode = Node<{ readonly shown: CanvasNode; readonly direction: Direction; readonly editable: boolean }, 'step'>;

/** Size in pixels, as in the style sheet. */
const height = 400;
const nodeTypes = { step: Step };
const noPositions: ReadonlyMap<string, NodePosition> = new Map();

/** Draws a graph. Lists and forms next to it offer the same content and actions. */
export function Canvas({
  label,
  nodes,
  arrows,
  chosen,
  onChoose,
  editing,
}: {
  readonly label: string;
  readonly nodes: readonly CanvasNode[];
  readonly arrows: readonly Arrow[];
  readonly chosen: string | undefined;
  readonly onChoose: (id: string | undefined) => void;
  readonly editing?: CanvasEditing;
}) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [flow, setFlow] = useState<ReactFlowInstance<StepNode>>();
  const [chosenArrow, setChosenArrow] = useState<string>();
  /** Positions of nodes that the user has moved; not saved, because the automatic layout is good enough to start with. */
  const [moved, setMoved] = useState(noPositions);
  // The layout depends on these only, so that a changed state doesn't compute it again.
  const ids = nodes.map(({ id }) => id).join(' ');
  const ways = arrows.map(keyOf).join(' ');
  const { direction, positions } = useMemo(() => computeLayout(ids, ways, width), [ids, ways, width]);
  const editable = editing !== undefined;
  useEffect(() => {
    void flow?.fitView({ padding: 0.12, maxZoom: 1 });
  }, [flow, positions]);

  const change = (changes: readonly NodeChange<StepNode>[]): void => {
    for (const one of changes) {
      if (one.type === 'select' && one.selected) onChoose(one.id);
      if (one.type === 'select' && !one.selected && one.id === chosen && changes.length === 1) onChoose(undefined);
      const { position } = one.type === 'position' ? one : {};
      if (one.type === 'position' && position !== undefined) setMoved((before) => new Map([...before, [one.id, position]]));
      if (one.type === 'remove') editing?.removeNode(one.id);
    }
  };
  return (
    <div ref={box} className={editable ? 'graph-canvas' : 'graph-canvas still'} role="region" aria-label={label}>
      <ReactFlow<StepNode>
        nodes={nodes.map((shown) =>
          stepOf(shown, moved.get(shown.id) ?? positions.get(shown.id) ?? { x: 0, y: 0 }, shown.id === chosen, direction, editable),
        )}
        edges={arrows.map((arrow) => edgeOf(arrow, nodes, keyOf(arrow) === chosenArrow))}
        nodeTypes={nodeTypes}
        onInit={setFlow}
        onNodesChange={change}
        onEdgesChange={(changes) => {
          for (const one of changes) {
            if (one.type === 'select') setChosenArrow(one.selected ? one.id : undefined);
            const arrow = one.type === 'remove' ? arrows.find((each) => keyOf(each) === one.id) : undefined;
            if (arrow !== undefined) editing?.removeArrow(arrow);
          }
        }}
        onConnect={({ source, target }) => editing?.connect(source, target)}
        isValidConnection={({ source, target }) => source !== target}
        nodesDraggable={editable}
        nodesConnectable={editable}
        edgesFocusable={editable}
        elementsSelectable
        deleteKeyCode={editable ? t('Delete') : null}
        multiSelectionKeyCode={null}
        selectionKeyCode={null}
        minZoom={0.2}
        maxZoom={1.6}
        zoomOnScroll={false}
        preventScrolling={false}
        fitView
        proOptions={{ hideAttribution: true }}
      >
        <Background gap={20} />
        <Controls showInteractive={false} />
      </ReactFlow>
      {editable && moved.size > 0 && (
        <button type="button" className="button small graph-tidy" onClick={() => setMoved(noPositions)}>
          {t('Tidy up')}
        </button>
      )}
    </div>
  );
}

/** Ids contain neither spaces nor the separator of an arrow key. */
function computeLayout(ids: string, ways: string, width: number) {
  const nodes = ids.split(' ').filter((id) => id !== '');
  const arrows = ways.split(' ').flatMap((way) => {
    const [from, to] = way.split('>');
    return from === undefined || to === undefined ? [] : [{ from, to }];
  });
  const direction = betterDirection(nodes, arrows, width, height);
  return { direction, positions: layOut(nodes, arrows, direction) };
}

function stepOf(shown: CanvasNode, position: NodePosition, selected: boolean, direction: Direction, editable: boolean): StepNode {
  const right = direction === 'right';
  return {
    id: shown.id,
    type: 'step',
    position: { ...position },
    data: { shown, direction, editable },
    selected,
    // All nodes have the same size; giving it together with the arrow ends avoids measuring.
    width: nodeWidth,
    height: nodeHeight,
    measured: { width: nodeWidth, height: nodeHeight },
    handles: [
      { type: 'target', position: right ? Position.Left : Position.Top, x: right ? 0 : nodeWidth / 2, y: right ? nodeHeight / 2 : 0 },
      {
        type: 'source',
        position: right ? Position.Right : Position.Bottom,
        x: right ? nodeWidth : nodeWidth / 2,
        y: right ? nodeHeight / 2 : nodeHeight,
      },
    ],
    ariaLabel: `${shown.title}, ${shown.kind}, ${shown.text}`,
  };
}

function keyOf({ from, to }: Arrow): string {
  return `${from}>${to}`;
}

function edgeOf(arrow: Arrow, nodes: readonly CanvasNode[], selected: boolean): Edge {
  const title = (id: string): string => nodes.find((node) => node.id === id)?.title ?? id;
  return {
    id: keyOf(arrow),
    source: arrow.from,
    target: arrow.to,
    selected,
    markerEnd: { type: MarkerType.ArrowClosed },
    ariaLabel: t('Arrow from {from} to {to}', { from: title(arrow.from), to: title(arrow.to) }),
  };
}

function Step({ data: { shown, direction, editable }, selected }: NodeProps<StepNode>) {
  const { title, kind, text, tone, note } = shown;
  const right = direction === 'right';
  return (
    <div className={['graph-node', tone, selected ? 'chosen' : ''].filter(Boolean).join(' ')}>
      <Handle type="target" position={right ? Position.Left : Position.Top} isConnectable={editable} />
      <span className="graph-node-title cut" dir="auto">
        {title}
      </span>
      <span className="graph-node-line">
        <span className="hint cut">{kind}</span>
        <Badge tone={tone}>{text}</Badge>
      </span>
      {note !== undefined && (
        <span className="hint cut" dir="auto">
          {note}
        </span>
      )}
      <Handle type="source" position={right ? Position.Right : Position.Bottom} isConnectable={editable} />
    </div>
  );
}
