import type { GraphNode } from '@gatehouse/contract';
import { describe, expect, test } from 'vitest';
import { verdictOf } from './barrier.ts';
import { agentsOf, type GraphInput, leavesOf, readDefinition } from './definition.ts';
import { variablesOf, warningsOf } from './warnings.ts';

const node = (id: string, after: readonly string[] = [], more: Partial<GraphNode> = {}): GraphNode => ({
  node_id: id,
  task: `Do ${id}.`,
  agent: 'default',
  depends_on: [...after],
  ...more,
});
const issuesOf = (input: GraphInput) => {
  const read = readDefinition(input);
  return 'spec' in read ? [] : read.issues;
};
function specOf(input: GraphInput) {
  const read = readDefinition(input);
  if (!('spec' in read)) throw new Error(JSON.stringify(read.issues));
  return read.spec;
}

describe('an invalid graph is refused with the invalid field', () => {
  test.each<[string, GraphInput, { path: string; message: RegExp }[]]>([
    ['two nodes of one id', { nodes: [node('a'), node('a')] }, [{ path: 'nodes.1.node_id', message: /^duplicate_node_id: .*"a"/ }]],
    ['a node that depends on itself', { nodes: [node('a', ['a'])] }, [{ path: 'nodes.0.depends_on', message: /^self_dependency: .*"a"/ }]],
    ['a dependency that is not there', { nodes: [node('a', ['b'])] }, [{ path: 'nodes.0.depends_on', message: /^missing_dependency: .*"b"/ }]],
    [
      'an edge from nowhere',
      { nodes: [node('a')], edges: [{ from: 'x', to: 'a' }] },
      [{ path: 'edges.0.from', message: /^missing_dependency: .*"x"/ }],
    ],
    ['an edge to nowhere', { nodes: [node('a')], edges: [{ from: 'a', to: 'x' }] }, [{ path: 'edges.0.to', message: /^missing_dependency: .*"x"/ }]],
    [
      'a cycle, in the direction of its edges',
      { nodes: [node('start'), node('a', ['c', 'start']), node('b', ['a']), node('c', ['b']), node('end', ['c'])] },
      [{ path: 'nodes', message: /^cycle: (a → b → c → a|b → c → a → b|c → a → b → c);/ }],
    ],
    [
      'a configuration of another shape',
      { nodes: [node('a', [], { type_id: 'debate', type_config: { agents: ['x'], rounds: 9 } })] },
      [
        { path: 'nodes.0.type_config.agents', message: /expected for type_id "debate": \{ agents: \[2 to 10 agent ids\]/ },
        { path: 'nodes.0.type_config.rounds', message: /rounds\?: 1 to 5/ },
      ],
    ],
    [
      'an unknown field of a configuration',
      { nodes: [node('a', [], { type_id: 'vote', type_config: { voters: ['x', 'y'], speed: 3 } })] },
      [{ path: 'nodes.0.type_config', message: /speed.*expected for type_id "vote"/ }],
    ],
    ['a configuration without a type', { nodes: [node('a', [], { type_config: {} })] }, [{ path: 'nodes.0.type_config', message: /type_id/ }]],
    [
      'a type that needs a configuration',
      { nodes: [node('a', [], { type_id: 'refine' })] },
      [{ path: 'nodes.0.type_config.reviewers', message: /refine/ }],
    ],
    [
      'more voters needed than there are',
      { nodes: [node('a', [], { type_id: 'vote', type_config: { voters: ['x', 'y'], min_voters: 3 } })] },
      [{ path: 'nodes.0.type_config.min_voters', message: /at most 2/ }],
    ],
  ])('%s', (_, input, expected) => {
    expect(issuesOf(input)).toEqual(expected.map(({ path, message }) => ({ path, message: expect.stringMatching(message) })));
  });
});

test('nodes are sorted in execution order, edges count as dependencies, and settings next to the nodes take precedence', () => {
  const spec = specOf({
    nodes: [node('end', ['mid']), node('mid'), node('first')],
    edges: [
      { from: 'first', to: 'mid' },
      { from: 'first', to: 'mid' },
    ],
    settings: { on_failure: 'continue', timeout_ms: 5000, budget: { maxTokens: 10 } },
    timeout_ms: 9000,
  });
  expect(spec.nodes.map(({ id, dependsOn }) => `${id}<${dependsOn.join()}`)).toEqual(['first<', 'mid<first', 'end<mid']);
  expect(spec).toMatchObject({ onFailure: 'continue', timeoutMs: 9000, budget: { maxTokens: 10 } });
  expect(leavesOf(spec.nodes).map(({ id }) => id)).toEqual(['end']);
});

test('the default timeout of a graph includes that of its gates', () => {
  const gate = node('gate', [], { type_id: 'approval-gate', type_config: { timeout_minutes: 90 } });
  expect(specOf({ nodes: [node('a')] }).timeoutMs).toBe(1_500_000);
  expect(specOf({ nodes: [node('a'), gate] }).timeoutMs).toBe(1_500_000 + 90 * 60_000);
  expect(specOf({ nodes: [gate], timeout_ms: 60_000 }).timeoutMs).toBe(60_000);
  expect(specOf({ nodes: [gate] }).nodes[0]).toMatchObject({ timeoutMs: 90 * 60_000, work: { config: { timeout_minutes: 90 } } });
});

test('each type has its timeout and its agents', () => {
  const typed = (type_id: NonNullable<GraphNode['type_id']>, type_config: GraphNode['type_config']) =>
    specOf({ nodes: [node('a', [], { type_id, type_config })] }).nodes.map((each) => [each.timeoutMs, ...agentsOf(each)])[0];
  expect(typed('agent', { agent: 'x' })).toEqual([300_000, 'x']);
  expect(typed('debate', { agents: ['x', 'y'], synthesizer: 'z' })).toEqual([600_000, 'x', 'y', 'z']);
  expect(typed('vote', { voters: ['x', 'y'] })).toEqual([300_000, 'x', 'y']);
  expect(typed('refine', { reviewers: ['x', 'y'] })).toEqual([300_000, 'x', 'y']);
  expect(typed('collaborate', { agents: ['x', 'y'] })).toEqual([300_000, 'x', 'y']);
  expect(typed('map-reduce', { mappers: [{ agent: 'x' }, { agent: 'y' }], reducer: 'z' })).toEqual([600_000, 'x', 'y', 'z']);
  expect(specOf({ nodes: [node('a')] }).nodes[0]?.timeoutMs).toBeUndefined();
});

test('warns about valid graphs that may be mistakes, each with a fix', () => {
  const nodes = [
    node('lonely', [], { agent: undefined }),
    node('a', [], { task: 'Use ${TOPIC} and ${STYLE}.' }),
    node('b'),
    node('c'),
    node('neck', ['a', 'b', 'c'], { barrier_mode: 'majority' }),
    node('x', ['neck'], { task: 'Read {{a.result}} and {{neck.result}}.', barrier_mode: 'best-effort' }),
    node('y', ['neck'], { type_id: 'debate', type_config: { agents: ['p', 'q'] }, retries: 1 }),
    node('gate', ['x'], { type_id: 'approval-gate', type_config: { message: 'Go on with {{y.result}}?' }, retries: 1, agent: undefined }),
  ];
  const spec = specOf({ nodes });
  const warnings = warningsOf(spec, { TOPIC: 'tides' });
  expect(warnings.map(({ nodeId, type }) => `${nodeId} ${type}`).toSorted()).toEqual(
    [
      'a unresolved_variable',
      'gate typed_node_approval_retry',
      'gate unresolved_template',
      'lonely no_agent_id',
      'lonely orphan_node',
      'neck information_bottleneck',
      'x barrier_mode_low_deps',
      'x unresolved_template',
      'y typed_node_agentid_ignored',
      'y typed_node_expensive_retry',
    ].toSorted(),
  );
  expect(warnings.every(({ message, fix }) => message.length > 10 && fix.length > 10)).toBe(true);
  expect(warnings.find(({ type }) => type === 'unresolved_variable')?.message).toContain('STYLE');
  // The variables are not known when a graph is only checked.
  expect(warningsOf(spec, undefined).filter(({ type }) => type === 'unresolved_variable')).toEqual([]);
  expect(variablesOf(spec)).toEqual(['TOPIC', 'STYLE']);
});

test.each<[string, 'all' | 'majority' | 'best-effort', 'fail-fast' | 'continue', string[], string]>([
  ['no dependency', 'all', 'fail-fast', [], 'run'],
  ['one runs still', 'all', 'continue', ['completed', 'running'], 'wait'],
  ['all completed', 'all', 'fail-fast', ['completed', 'completed'], 'run'],
  ['all, one failed', 'all', 'continue', ['completed', 'failed'], 'skip'],
  ['half is not a majority', 'majority', 'continue', ['completed', 'failed'], 'skip'],
  ['more than half', 'majority', 'continue', ['completed', 'failed', 'completed'], 'run'],
  ['a majority waits for all to end', 'majority', 'continue', ['completed', 'completed', 'running'], 'wait'],
  ['one of three', 'best-effort', 'continue', ['skipped', 'failed', 'completed'], 'run'],
  ['none of two', 'best-effort', 'continue', ['skipped', 'failed'], 'skip'],
  ['fail-fast does not look at the barrier', 'best-effort', 'fail-fast', ['completed', 'failed'], 'skip'],
  ['fail-fast does not wait for the others', 'all', 'fail-fast', ['running', 'failed'], 'skip'],
])('barrier: %s', (_, barrier, onFailure, states, expected) => {
  const dependsOn = states.map((_state, index) => `n${index}`);
  const stateOf = (id: string) => states[Number(id.slice(1))] as 'pending';
  expect(verdictOf({ dependsOn, barrier }, onFailure, stateOf)).toBe(expected);
});
