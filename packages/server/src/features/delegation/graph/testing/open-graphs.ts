import type { ParamsInput, Result } from '@gatehouse/contract';
import { createStepClock, type FakeAnswer, type StepClock, startTestServer, type TestServer, type TestServerOptions } from '@gatehouse/testkit';
import { expect } from 'vitest';

type Status = Result<'graph.status'>;
export type View = Extract<Status, { executionOrder: unknown }>;
export type Nodes = NonNullable<ParamsInput<'graph.execute'>['nodes']>;

export interface GraphServer extends TestServer {
  readonly clock: StepClock;
  /** Stops it like a daemon, while time continues. */
  stop(): Promise<void>;
  view(graphId: string): Promise<View>;
  /** Steps the clock until the condition holds. */
  until(graphId: string, is: (view: View) => boolean, stepMs?: number): Promise<View>;
  ended(graphId: string): Promise<View>;
  execute(nodes: Nodes, more?: Omit<ParamsInput<'graph.execute'>, 'nodes'>): Promise<string>;
}

/** Answers each agent of a graph by its task: the first rule whose key occurs in its last message. */
export function scripted(rules: Readonly<Record<string, FakeAnswer | ((asked: string, time: number) => FakeAnswer)>>) {
  const times = new Map<string, number>();
  const asked: string[] = [];
  return {
    /** Requests of the agents, in order. */
    asked,
    answer(request: { readonly body: unknown }): FakeAnswer {
      const { messages } = request.body as { messages: { role: string; content: unknown }[] };
      const last = messages.findLast(({ role }) => role === 'user')?.content;
      const text = typeof last === 'string' ? last : JSON.stringify(last);
      asked.push(text);
      const task = /Your task:\n([\s\S]*)$/.exec(text)?.[1] ?? text;
      const name = Object.keys(rules).find((key) => task.includes(key)) ?? Object.keys(rules).find((key) => text.includes(key));
      const rule = name === undefined ? undefined : rules[name];
      if (name === undefined || rule === undefined) return { text: `Nothing is scripted for: ${text.slice(0, 200)}` };
      const time = (times.get(name) ?? 0) + 1;
      times.set(name, time);
      return typeof rule === 'function' ? rule(text, time) : rule;
    },
  };
}

export async function openGraphs(options: Omit<TestServerOptions, 'clock'> & { readonly clock?: StepClock } = {}): Promise<GraphServer> {
  const { clock = createStepClock(), ...rest } = options;
  const given = rest.config ?? {};
  const server = await startTestServer({
    ...rest,
    clock,
    config: {
      ...given,
      agents: { default: { model: 'mock/mock-fast' }, second: { model: 'mock/mock-fast' }, third: { model: 'mock/mock-fast' }, ...given.agents },
    },
  });
  const view = async (graphId: string) => (await server.client.call('graph.status', { graphId })) as View;
  async function until(graphId: string, is: (found: View) => boolean, stepMs = 1): Promise<View> {
    let last: View | undefined;
    await expect
      .poll(
        async () => {
          clock.advance(stepMs);
          last = await view(graphId);
          return is(last);
        },
        { interval: 5 },
      )
      .toBe(true);
    if (last === undefined) throw new Error('the graph was never read');
    return last;
  }
  return {
    ...server,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    clock,
    async stop() {
      let isStopped = false;
      const stopped = server.server.drain().then(() => (isStopped = true));
      await expect.poll(() => (clock.advance(100), isStopped)).toBe(true);
      await stopped;
    },
    view,
    until,
    ended: (graphId) => until(graphId, ({ isTerminal }) => isTerminal),
    execute: async (nodes, more = {}) => (await server.client.call('graph.execute', { ...more, nodes })).graphId,
  };
}
