import { graphTypeConfigs } from '@gatehouse/contract';
import { expect, test } from 'vitest';
import type { RunWork } from '../definition/definition.ts';
import { type DriverInput, nextStep, partialOutput, type RunResult } from './drivers.ts';

const base = {
  node: { agentId: 'plain', model: 'm', maxSteps: 7 },
  task: 'TASK',
  fence: (text: string, from: string) => `<${from}|${text}>`,
  own: (text: string) => text,
};
const inputOf = (work: RunWork | undefined): DriverInput => ({ ...base, work });
const work = {
  agent: { type: 'agent', config: graphTypeConfigs().agent.parse({ agent: 'one', max_steps: 3 }) },
  debate: { type: 'debate', config: graphTypeConfigs().debate.parse({ agents: ['pro', 'con'], rounds: 2, synthesizer: 'sum' }) },
  discussion: { type: 'debate', config: graphTypeConfigs().debate.parse({ agents: ['pro', 'con'], rounds: 1 }) },
  vote: {
    type: 'vote',
    config: graphTypeConfigs().vote.parse({ voters: ['a', 'b', 'c'], prompt_suffix: 'Be brief.', verdict_format: 'yes or no', min_voters: 2 }),
  },
  strict: { type: 'vote', config: graphTypeConfigs().vote.parse({ voters: ['a', 'b'] }) },
  refine: { type: 'refine', config: graphTypeConfigs().refine.parse({ reviewers: ['draft', 'edit', 'polish'] }) },
  collaborate: { type: 'collaborate', config: graphTypeConfigs().collaborate.parse({ agents: ['x', 'y'], rounds: 2 }) },
  map: {
    type: 'map-reduce',
    config: graphTypeConfigs()['map-reduce'].parse({
      mappers: [{ agent: 'm1', task_suffix: 'North.' }, { agent: 'm2' }],
      reducer: 'r',
      reducer_prompt: 'Merge.',
    }),
  },
} as const satisfies Record<string, RunWork>;

/** Answers every task with a text made of its agent and step, until the node is done. */
function play(
  of: RunWork | undefined,
  answer: (agentId: string | undefined, step: number) => RunResult = (agentId, step) => ({ ok: true, text: `${agentId}${step}` }),
) {
  const input = inputOf(of);
  const done: RunResult[][] = [];
  const asked: { agents: (string | undefined)[]; tasks: string[] }[] = [];
  for (;;) {
    const step = nextStep(input, done);
    // The same results lead to the same step: restarts rely on that.
    expect(nextStep(input, structuredClone(done))).toEqual(step);
    if (step.kind !== 'run') return { end: step, asked, done };
    asked.push({ agents: step.tasks.map(({ agentId }) => agentId), tasks: step.tasks.map(({ task }) => task) });
    done.push(step.tasks.map(({ agentId }) => answer(agentId, done.length)));
  }
}

test('a plain node and a node of type agent take one run each', () => {
  expect(nextStep(inputOf(undefined), [])).toMatchObject({ kind: 'run', tasks: [{ agentId: 'plain', task: 'TASK', model: 'm', maxSteps: 7 }] });
  expect(nextStep(inputOf(work.agent), [])).toMatchObject({ kind: 'run', tasks: [{ agentId: 'one', model: 'm', maxSteps: 3 }] });
  expect(play(undefined).end).toEqual({ kind: 'complete', output: 'plain0' });
  expect(play(work.agent, () => ({ ok: false, text: '', error: 'timeout' })).end).toEqual({ kind: 'fail', error: 'timeout' });
});

test('in a debate each agent receives all earlier contributions, fenced; the synthesizer writes the output', () => {
  const { end, asked } = play(work.debate);
  expect(asked.map(({ agents }) => agents)).toEqual([['pro'], ['con'], ['pro'], ['con'], ['sum']]);
  expect(asked[0]?.tasks[0]).not.toContain('<');
  expect(asked[3]?.tasks[0]).toMatch(/TASK.*debate.*<pro\|pro0>.*<con\|con1>.*<pro\|pro2>/s);
  expect(end).toEqual({ kind: 'complete', output: 'sum4' });
  expect(play(work.discussion).end).toEqual({ kind: 'complete', output: '### pro (round 1)\npro0\n\n### con (round 1)\ncon1' });
});

test('collaboration runs round by round and returns the transcript', () => {
  const { end, asked } = play(work.collaborate);
  expect(asked.map(({ agents }) => agents[0])).toEqual(['x', 'y', 'x', 'y']);
  expect(end).toMatchObject({ kind: 'complete', output: expect.stringMatching(/x \(round 1\)\nx0.*y \(round 2\)\ny3/s) });
});

test('refinement passes on only the latest version', () => {
  const { end, asked } = play(work.refine);
  expect(asked.map(({ agents }) => agents[0])).toEqual(['draft', 'edit', 'polish']);
  expect(asked[2]?.tasks[0]).toContain('<edit|edit1>');
  expect(asked[2]?.tasks[0]).not.toContain('draft0');
  expect(end).toEqual({ kind: 'complete', output: 'polish2' });
});

test('voters answer in parallel, and the minimum number of answers is enough', () => {
  const some =
    (missing: readonly string[]) =>
    (agentId: string | undefined): RunResult =>
      missing.includes(agentId ?? '') ? { ok: false, text: '', error: 'timeout' } : { ok: true, text: `yes of ${agentId}` };
  const { end, asked } = play(work.vote, some(['b']));
  expect(asked).toHaveLength(1);
  expect(asked[0]?.agents).toEqual(['a', 'b', 'c']);
  expect(asked[0]?.tasks[1]).toMatch(/TASK.*Be brief\..*yes or no/s);
  expect(end).toEqual({ kind: 'complete', output: '### a\nyes of a\n\n### c\nyes of c' });
  expect(play(work.vote, some(['a', 'b'])).end).toEqual({ kind: 'fail', error: '1 of 3 voters answered, 2 are needed: a: timeout; b: timeout' });
  expect(play(work.strict, some(['b'])).end.kind).toBe('fail');
});

test('mappers run in parallel, then the reducer runs', () => {
  const { end, asked } = play(work.map);
  expect(asked.map(({ agents }) => agents)).toEqual([['m1', 'm2'], ['r']]);
  expect(asked[0]?.tasks).toEqual(['TASK\n\nYour part of it: North.', 'TASK']);
  expect(asked[1]?.tasks[0]).toMatch(/TASK.*Merge\..*<m1\|m10>.*<m2\|m20>/s);
  expect(end).toEqual({ kind: 'complete', output: 'r1' });
  expect(play(work.map, (agentId) => ({ ok: agentId !== 'm2', text: '', error: 'x' })).end).toEqual({ kind: 'fail', error: 'mappers failed: m2: x' });
});

test('a failure ends sequential agents, and earlier contributions are kept', () => {
  const { end, done } = play(work.debate, (agentId, step) =>
    step < 2 ? { ok: true, text: `${agentId}${step}` } : { ok: false, text: 'half', error: 'killed' },
  );
  expect(end).toEqual({ kind: 'fail', error: 'pro (round 2): killed' });
  expect(partialOutput({ work: work.debate }, done)).toContain('con1');
  expect(partialOutput({ work: work.debate }, done)).toContain('half');
  expect(partialOutput({ work: work.refine }, [[{ ok: true, text: 'first' }], [{ ok: false, text: '' }]])).toBe('first');
  expect(partialOutput({ work: undefined }, [])).toBe('');
});

test('only the latest contributions are passed on when there are too many', () => {
  const long = graphTypeConfigs().debate.parse({ agents: ['pro', 'con'], rounds: 5 });
  const { asked } = play({ type: 'debate', config: long }, (agentId, step) => ({ ok: true, text: `${agentId}${step} `.padEnd(12_000, 'x') }));
  const last = asked.at(-1)?.tasks[0] ?? '';
  expect(last.length).toBeLessThan(70_000);
  expect(last).toContain('pro8');
  expect(last).not.toContain('pro0 ');
  expect(last).toContain('omitted');
});

test('all text of a tainted author passes the same fencing as the task', () => {
  const own = (text: string) => `{${text}}`;
  expect(nextStep({ ...base, own, work: work.vote }, [])).toMatchObject({
    tasks: [{ task: 'TASK\n\n{Be brief.}\n\n{Give your verdict in this form: yes or no}' }, {}, {}],
  });
  expect(nextStep({ ...base, own, work: work.map }, [])).toMatchObject({ tasks: [{ task: 'TASK\n\nYour part of it: {North.}' }, { task: 'TASK' }] });
  const mapped: RunResult[] = [
    { ok: true, text: 'one' },
    { ok: true, text: 'two' },
  ];
  expect(nextStep({ ...base, own, work: work.map }, [mapped])).toMatchObject({ tasks: [{ task: expect.stringContaining('\n\n{Merge.}\n\n') }] });
});
