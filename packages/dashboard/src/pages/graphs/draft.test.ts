import { expect, test } from 'vitest';
import { DraftError } from '../../data/field-errors.ts';
import { arrowsOf, changeNode, definitionOf, draftOf, emptyGraph, type GraphDraft, withArrow, withNode, withoutArrow, withoutNode } from './draft.ts';
import { sortErrors } from './problems.ts';

const two = (): GraphDraft => {
  const first = withNode(emptyGraph, 'default', undefined);
  return withNode(first.draft, 'scout', first.key).draft;
};

test('nodes are added after the selected one, keep their arrows when renamed, and are removed with them', () => {
  const draft = changeNode(two(), 'step-1', { id: 'research', task: 'Look' });
  expect(definitionOf(draft).nodes).toEqual([
    { node_id: 'research', task: 'Look', agent: 'default' },
    { node_id: 'step-2', task: '', agent: 'scout', depends_on: ['research'] },
  ]);
  expect(arrowsOf(withoutNode(draft, 'step-1'))).toEqual([]);
  // A freed name must not be assigned twice.
  expect(withNode(withoutNode(draft, 'step-1'), 'default', undefined).key).toBe('step-3');
});

test('arrows are added once, removed, and never connect a node to itself', () => {
  const draft = two();
  expect(withArrow(draft, { from: 'step-1', to: 'step-2' })).toBe(draft);
  expect(withArrow(draft, { from: 'step-1', to: 'step-1' })).toBe(draft);
  expect(arrowsOf(withoutArrow(draft, { from: 'step-1', to: 'step-2' }))).toEqual([]);
});

test('a saved graph loads unchanged, with arrows and depends_on merged', () => {
  const saved = {
    label: 'Report',
    nodes: [
      { node_id: 'a', task: 'A', agent: 'default', timeout_ms: 1500, retries: 2 },
      {
        node_id: 'b',
        task: 'B',
        type_id: 'map-reduce' as const,
        type_config: { mappers: [{ agent: 'default', task_suffix: 'in French' }, { agent: 'scout' }], reducer: 'default' },
        depends_on: ['a'],
        barrier_mode: 'best-effort' as const,
        context_mode: 'refs' as const,
      },
      { node_id: 'c', task: 'C', type_id: 'vote' as const, type_config: { voters: ['default', 'scout'], min_voters: 1 } },
    ],
    edges: [
      { from: 'a', to: 'b' },
      { from: 'b', to: 'c' },
    ],
    settings: { on_failure: 'continue' as const, timeout_ms: 60_000, budget: { maxTokens: 5000, maxCost: 0.5 } },
  };
  const { nodes, settings, label } = definitionOf(draftOf(saved));
  expect({ label, settings }).toEqual({ label: 'Report', settings: saved.settings });
  expect(nodes).toEqual([saved.nodes[0], saved.nodes[1], { ...saved.nodes[2], depends_on: ['b'] }]);
});

test('only the fields of the type are sent, and an invalid number is reported by its field', () => {
  const debate = changeNode(two(), 'step-2', {
    type: 'debate',
    config: {
      agents: [
        { agent: 'default', suffix: '' },
        { agent: '', suffix: '' },
      ],
      rounds: '3',
      voters: [{ agent: 'x', suffix: '' }],
    },
  });
  expect(definitionOf(debate).nodes[1]).toEqual({
    node_id: 'step-2',
    task: '',
    depends_on: ['step-1'],
    type_id: 'debate',
    type_config: { agents: ['default'], rounds: 3 },
  });
  expect(() => definitionOf(changeNode(debate, 'step-2', { retries: 'many' }))).toThrow(new DraftError('nodes.1.retries', 'Expected a number.'));
});

test('errors are grouped by node', () => {
  const { nodes, graph } = sortErrors(
    new Map([
      ['nodes.1.type_config.agents', 'too few'],
      ['nodes[1].task', 'too short'],
      ['nodes', 'cycle'],
      ['edges.0.from', 'missing'],
    ]),
  );
  expect([...(nodes.get(1) ?? [])]).toEqual([
    ['type_config.agents', 'too few'],
    ['task', 'too short'],
  ]);
  expect([...graph.keys()]).toEqual(['nodes', 'edges.0.from']);
});
