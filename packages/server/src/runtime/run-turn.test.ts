import type { AgentConfigInput } from '@gatehouse/contract';
import * as z from 'zod';
import { createStepClock } from '@gatehouse/testkit/step-clock';
import { describe, expect, it } from 'vitest';
import { silentLog } from '../kernel/log.ts';
import { ModelError, type ModelInfo, type ModelMessage } from '../llm/model.ts';
import { createFence } from './fence.ts';
import { createRunTurn } from './run-turn.ts';
import type { Attempt, Models } from '../llm/models.ts';
import { createScriptedModels, type ScriptedAnswer, testModel, turnInput } from './testing.ts';
import type { Tool, ToolContext } from './tool.ts';
import type { TurnSink } from './turn.ts';
import type { TurnBudget } from './turn-budget.ts';

const full: AgentConfigInput = { tools: { profile: 'full' } };
const settle = () => new Promise((resolve) => setImmediate(resolve));

function setUp(...script: readonly ScriptedAnswer[]) {
  const clock = createStepClock();
  const { models, asked } = createScriptedModels(...script);
  const run = createRunTurn({ models, clock, fence: createFence({ key: Buffer.alloc(32) }), log: silentLog });
  return { clock, asked, run };
}

/** Joins the fragments as a client does. */
function collectingSink() {
  let fragments = '';
  const sink: TurnSink = { text: (fragment) => (fragments += fragment), flush: () => true, drained: async () => {} };
  return { sink, text: () => z.string().parse(JSON.parse(`"${fragments}"`)) };
}

function tool(over: Partial<Tool> & { readonly run?: (args: unknown, context: ToolContext) => Promise<{ content: string }> } = {}): Tool {
  return {
    name: 'look',
    description: 'Looks',
    args: z.strictObject({ at: z.string().optional() }),
    risk: 'read',
    effect: 'pure',
    timeoutMs: 1000,
    run: async () => ({ content: 'seen' }),
    ...over,
  };
}

describe('a turn', () => {
  it('answers, streams the same text, and charges its one call', async () => {
    const { run, asked, clock } = setUp({ text: 'Hello "you"\n and you', usage: { input: 1000, output: 20, cacheRead: 400 } });
    const { sink, text } = collectingSink();
    const result = await run(turnInput({ agent: { temperature: 0.5, cacheRetention: 'long' }, maxTokens: 77 }), sink);
    expect(result).toEqual({
      tainted: false,
      finishReason: 'stop',
      text: 'Hello "you"\n and you',
      messages: [{ role: 'assistant', content: 'Hello "you"\n and you' }],
      steps: 1,
      model: testModel,
      calls: [
        {
          provider: 'test',
          modelId: 'one',
          operation: 'interactive',
          outcome: 'ok',
          latencyMs: 1,
          startedAtMs: 1,
          responseId: 'r1',
          usage: { input: 1000, output: 20, cacheRead: 400, cacheWrite: 0, estimated: false },
          cost: { input: 600_000, output: 40_000, cacheRead: 40_000, cacheWrite: 0 },
          savedNano: 360_000,
        },
      ],
    });
    expect(text()).toBe(result.text);
    expect(asked[0]?.request).toMatchObject({
      temperature: 0.5,
      maxTokens: 77,
      cacheRetention: 'long',
      system: ['You are Gate.'],
      messages: [{ role: 'user', content: 'Hello' }],
      tools: [],
    });
    expect(clock.pending()).toBe(0);
  });

  it('calls tools until the model answers, and sends it their results', async () => {
    const { run, asked } = setUp({ text: 'Let me look.', calls: [['look', { at: 'x' }]] }, { text: 'It is there.' });
    const { sink, text } = collectingSink();
    const result = await run(turnInput({ agent: full, tools: [tool({ run: async (args) => ({ content: JSON.stringify(args) }) })] }), sink);
    const added: ModelMessage[] = [
      { role: 'assistant', content: 'Let me look.', toolCalls: [{ id: 'call_1', name: 'look', arguments: '{"at":"x"}' }] },
      { role: 'tool', content: '{"at":"x"}', toolCallId: 'call_1', toolName: 'look' },
    ];
    expect(result).toMatchObject({
      finishReason: 'stop',
      text: 'Let me look.\n\nIt is there.',
      steps: 2,
      messages: [...added, { role: 'assistant', content: 'It is there.' }],
    });
    expect(text()).toBe(result.text);
    expect(asked[1]?.request.messages).toEqual([{ role: 'user', content: 'Hello' }, ...added]);
    expect(asked[0]?.request.tools).toEqual([
      { name: 'look', description: 'Looks', parameters: { type: 'object', properties: { at: { type: 'string' } }, additionalProperties: false } },
    ]);
    expect(result.calls).toHaveLength(2);
  });

  it('replaces repeated and empty call ids of a provider', async () => {
    const { run } = setUp(
      {
        calls: [
          ['look', {}],
          ['look', {}],
        ],
      },
      { text: 'done' },
    );
    const models = createScriptedModels(
      {
        calls: [
          ['look', {}],
          ['look', {}],
        ],
      },
      { text: 'done' },
    );
    const sameIds = createRunTurn({
      clock: createStepClock(),
      fence: createFence({ key: Buffer.alloc(32) }),
      log: silentLog,
      models: {
        generate: async (call, sink) => {
          const { result, model } = await models.models.generate(call, sink);
          return { model, result: { ...result, toolCalls: result.toolCalls.map((each) => ({ ...each, id: '' })) } };
        },
      },
    });
    for (const each of [run, sameIds]) {
      const result = await each(turnInput({ agent: full, tools: [tool()] }));
      const ids = result.messages.flatMap((message) => (message.role === 'tool' ? [message.toolCallId] : []));
      expect(new Set(ids).size).toBe(2);
      expect(ids).not.toContain('');
      expect(result.messages[0]).toMatchObject({ toolCalls: ids.map((id) => ({ id })) });
    }
  });
});

describe('a turn ends', () => {
  it('at its step limit', async () => {
    let looked = 0;
    const { run } = setUp({ calls: [['look', {}]] });
    const result = await run(
      turnInput({ agent: { ...full, maxSteps: 3 }, tools: [tool({ run: async () => ({ content: String((looked += 1)) }) })] }),
    );
    expect(result).toMatchObject({ finishReason: 'max_steps', steps: 3, failure: { kind: 'max_steps' } });
    expect(result.calls).toHaveLength(3);
    expect(result.messages).toHaveLength(6);
  });

  it('as max_steps without a failure when the provider truncates the answer at its limit', async () => {
    const { run } = setUp({ text: 'Once upon', finish: 'length', calls: [['look', '{"at": "cut o']] });
    const result = await run(turnInput({ agent: full, tools: [tool()] }));
    expect(result).toMatchObject({ finishReason: 'max_steps', text: 'Once upon', messages: [{ role: 'assistant', content: 'Once upon' }] });
    expect(result.failure).toBeUndefined();
    expect(result.messages[0]).not.toHaveProperty('toolCalls');
  });

  it('before the call that would pass its token budget', async () => {
    const { run, asked } = setUp({ calls: [['look', {}]], usage: { input: 500, output: 450 } });
    const result = await run(turnInput({ agent: { ...full, budgets: { perTurnTokens: 1000 } }, tools: [tool()] }));
    expect(result).toMatchObject({ finishReason: 'budget_exceeded', steps: 1, failure: { kind: 'budget_exceeded' } });
    expect(asked).toHaveLength(1);
    const cap = asked[0]?.request.maxTokens ?? Number.NaN;
    expect(cap).toBeLessThan(1000);
    expect(cap).toBeGreaterThan(900);
    expect(await setUp({ text: 'x' }).run(turnInput({ agent: { budgets: { perTurnTokens: 10 } } }))).toMatchObject({
      finishReason: 'budget_exceeded',
      steps: 0,
      calls: [],
    });
  });

  it('as budget_exceeded when the budget truncated the answer', async () => {
    const { run } = setUp({ text: 'part', finish: 'length' });
    expect(await run(turnInput({ agent: { budgets: { perTurnTokens: 100 } } }))).toMatchObject({ finishReason: 'budget_exceeded', text: 'part' });
  });

  it('names cap, limit and use when a budget is used up', async () => {
    const { run } = setUp({ calls: [['look', {}]], usage: { input: 500, output: 450 } });
    const result = await run(turnInput({ agent: { ...full, budgets: { perTurnTokens: 1000 } }, tools: [tool()] }));
    expect(result.failure?.message).toBe(
      'The budget agents.default.budgets.perTurnTokens of 1000 tokens does not allow this call: 950 tokens are used; this call needs more than is left',
    );
    const refused = { cap: 'budgets.perDayUsd', limit: 1, used: 1, retryAfterMs: 5000, message: 'used up' };
    const other = setUp({ text: 'x' });
    expect(await other.run(turnInput({ budget: { reserve: () => ({ refused }), spend: () => undefined } }))).toMatchObject({
      finishReason: 'budget_exceeded',
      failure: { kind: 'budget_exceeded', message: 'used up', retryAfterMs: 5000 },
      calls: [],
    });
    expect(other.asked).toEqual([]);
  });

  it.each([
    ['an answer', { text: 'x' }, 'stop'],
    ['a failure', { error: new ModelError('server', 'broken') }, 'provider_degraded'],
    ['a reserve that cannot be stored', { text: 'x' }, 'error'],
  ] as const)('and settles its reserve once after %s', async (name, answer, finishReason) => {
    const settled: number[] = [];
    const { run, asked } = setUp(answer);
    const stored = name.startsWith('a reserve') ? Promise.reject(new Error('disk full')) : Promise.resolve();
    const budget: TurnBudget = {
      reserve: () => ({ maxOutputTokens: 33, stored, covers: () => true, settle: (calls) => settled.push(calls.length) }),
      spend: () => settled.push(-1),
    };
    expect(await run(turnInput({ budget }))).toMatchObject({ finishReason });
    expect(settled).toEqual([finishReason === 'error' ? 0 : 1]);
    expect(asked.map(({ request }) => request.maxTokens)).toEqual(finishReason === 'error' ? [] : [33]);
  });

  it('charges a call that ended after its turn', async () => {
    const { clock } = setUp();
    const late: number[] = [];
    let end: ((attempt: Attempt) => void) | undefined;
    const models: Pick<Models, 'generate'> = {
      generate: ({ onAttempt }) => {
        end = onAttempt;
        return new Promise(() => {});
      },
    };
    const run = createRunTurn({ models, clock, fence: createFence({ key: Buffer.alloc(32) }), log: silentLog });
    const budget: TurnBudget = {
      reserve: () => ({ maxOutputTokens: 33, covers: () => true, settle: (calls) => late.push(calls.length) }),
      spend: ({ usage }) => late.push(usage.input),
    };
    const turn = run(turnInput({ agent: { turnTimeoutMs: 1000 }, budget }));
    await settle();
    clock.advance(1000);
    clock.advance(5000);
    expect(await turn).toMatchObject({ finishReason: 'timeout' });
    const usage = { input: 77, output: 0, cacheRead: 0, cacheWrite: 0, estimated: false };
    end?.({ model: testModel, usage, latencyMs: 1, startedAtMs: 1, outcome: 'ok' });
    expect(late).toEqual([0, 77]);
  });

  it('when the model goes round in circles, after a warning', async () => {
    const { run, asked } = setUp({ calls: [['look', { at: 'same' }]] });
    const result = await run(turnInput({ agent: full, tools: [tool()] }));
    expect(result).toMatchObject({ finishReason: 'context_loop', failure: { kind: 'context_loop' } });
    expect(result.steps).toBeLessThanOrEqual(8);
    expect(asked.at(-1)?.request.messages.at(-1)?.content).toContain('You made this call before');
  });

  it('continues when the same call returns new results', async () => {
    let count = 0;
    const { run } = setUp(...Array.from({ length: 20 }, () => ({ calls: [['look', {}]] as const })), { text: 'done' });
    expect(await run(turnInput({ agent: full, tools: [tool({ run: async () => ({ content: `${(count += 1)} %` }) })] }))).toMatchObject({
      finishReason: 'stop',
      steps: 21,
    });
  });

  it('asks once more after an empty answer, and then reports that there is none', async () => {
    const second = setUp({ text: '' }, { text: 'Here.' });
    const answered = await second.run(turnInput());
    expect(answered).toMatchObject({ finishReason: 'stop', text: 'Here.', messages: [{ role: 'assistant', content: 'Here.' }] });
    expect(answered.calls).toHaveLength(2);
    expect(second.asked.map((call) => call.request.system.length)).toEqual([1, 2]);
    const blank = setUp({ text: ' \n' }, { text: 'Here.' });
    await blank.run(turnInput());
    expect(blank.asked.map((call) => call.request.messages.length)).toEqual([1, 1]);
    const never = setUp({ text: '' });
    expect(await never.run(turnInput())).toMatchObject({
      finishReason: 'output_starved',
      text: '',
      messages: [],
      steps: 2,
      failure: { kind: 'output_starved' },
    });
    expect(await setUp({ text: '' }).run(turnInput({ agent: { maxSteps: 1 } }))).toMatchObject({ finishReason: 'output_starved', steps: 1 });
  });

  it('at its wall clock, while the model is silent, keeping what it had said', async () => {
    const { run, clock } = setUp({ text: 'Half a', hang: 'until aborted' });
    const { sink, text } = collectingSink();
    const running = run(turnInput({ agent: { turnTimeoutMs: 5000 } }), sink);
    await settle();
    clock.advance(4999);
    await settle();
    clock.advance(1);
    expect(await running).toMatchObject({
      finishReason: 'timeout',
      text: 'Half a',
      messages: [{ role: 'assistant', content: 'Half a' }],
      failure: { kind: 'timeout' },
    });
    expect(text()).toBe('Half a');
    expect(clock.pending()).toBe(0);
  });

  it('at its wall clock, while a tool works', async () => {
    const { run, clock } = setUp({
      calls: [
        ['look', {}],
        ['look', {}],
      ],
    });
    const running = run(
      turnInput({
        agent: { ...full, turnTimeoutMs: 5000 },
        tools: [tool({ effect: 'idempotent', timeoutMs: 60_000, run: () => new Promise(() => {}) })],
      }),
    );
    await settle();
    clock.advance(5000);
    const result = await running;
    expect(result).toMatchObject({ finishReason: 'timeout', steps: 1 });
    expect(result.messages.map((message) => message.content)).toEqual([
      '',
      expect.stringContaining('may still have had its effect'),
      'Not run: the turn was stopped',
    ]);
  });

  it('when its caller disconnects, also before it started', async () => {
    const controller = new AbortController();
    const { run, clock } = setUp({ text: 'Half', hang: 'until aborted' });
    const running = run(turnInput({ signal: controller.signal }));
    await settle();
    controller.abort();
    expect(await running).toMatchObject({ finishReason: 'aborted', text: 'Half', failure: { kind: 'aborted' } });
    expect(await run(turnInput({ signal: controller.signal }))).toMatchObject({ finishReason: 'aborted', steps: 0, calls: [] });
    expect(clock.pending()).toBe(0);
  });

  it('even when the model client ignores the abort', async () => {
    const { run, clock } = setUp({ hang: 'forever' });
    const running = run(turnInput({ agent: { turnTimeoutMs: 1000 } }));
    await settle();
    clock.advance(1000);
    await settle();
    clock.advance(5000);
    expect(await running).toMatchObject({ finishReason: 'timeout', text: '' });
  });

  it.each([
    ['auth', 'error'],
    ['billing', 'error'],
    ['bad_request', 'error'],
    ['bad_response', 'error'],
    ['rate_limit', 'provider_degraded'],
    ['overloaded', 'provider_degraded'],
    ['server', 'provider_degraded'],
    ['network', 'provider_degraded'],
    ['timeout', 'timeout'],
    ['aborted', 'aborted'],
  ] as const)('with the reason of a failed model call: %s is %s', async (kind, finishReason) => {
    const { run } = setUp({ error: new ModelError(kind, 'sk-secret from the provider', { retryAfterMs: 1234 }) });
    const result = await run(turnInput());
    expect(result).toMatchObject({ finishReason, text: '', messages: [], steps: 1, failure: { kind, retryAfterMs: 1234 } });
    expect(result.calls).toMatchObject([{ outcome: 'error' }]);
    if (kind === 'bad_request') expect(result.failure?.message).toContain('from the provider');
    else expect(result.failure?.message).not.toContain('secret');
  });

  it('keeps the text from before the stream broke', async () => {
    const partial = {
      text: 'So far',
      toolCalls: [],
      finish: 'stop',
      usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, estimated: true },
    } as const;
    const { run } = setUp({ calls: [['look', {}]], text: 'First.' }, { error: new ModelError('network', 'reset', { partial }) });
    expect(await run(turnInput({ agent: full, tools: [tool()] }))).toMatchObject({
      finishReason: 'provider_degraded',
      text: 'First.\n\nSo far',
      failure: { kind: 'network' },
    });
  });

  it('as an error when a content filter withheld everything, otherwise as an answer', async () => {
    expect(await setUp({ finish: 'content_filter' }).run(turnInput())).toMatchObject({ finishReason: 'error', failure: { kind: 'content_filter' } });
    expect(await setUp({ finish: 'content_filter', text: 'Some' }).run(turnInput())).toMatchObject({ finishReason: 'stop', text: 'Some' });
  });

  it('as an internal error, without details, when something breaks inside', async () => {
    const { run } = setUp({ error: new TypeError('cannot read /secret/path') as unknown as ModelError });
    expect(await run(turnInput())).toMatchObject({ finishReason: 'error', failure: { kind: 'error', message: 'Internal error' } });
    expect(await run(turnInput({ models: [{ ...testModel, contextWindow: Number.NaN }] }))).toMatchObject({
      finishReason: expect.stringMatching(/^(error|context_exhausted)$/),
    });
  });
});

describe('the context of a turn', () => {
  const small: ModelInfo = { ...testModel, contextWindow: 2000, maxTokens: 500 };
  const long = 'word '.repeat(400);

  it('stays inside the window, whatever the conversation and the tools bring', async () => {
    let looks = 0;
    const { run, asked } = setUp(...Array.from({ length: 12 }, () => ({ calls: [['look', {}]] as const })), { text: 'done' });
    const history = Array.from({ length: 20 }, (_, index): ModelMessage =>
      index % 2 === 0 ? { role: 'user', content: `${index} ${long}` } : { role: 'assistant', content: long },
    );
    const result = await run(
      turnInput({
        agent: full,
        models: [small],
        messages: [...history, { role: 'user', content: 'And now?' }],
        tools: [tool({ run: async () => ({ content: `${(looks += 1)} ${long}${long}` }) })],
      }),
    );
    expect(result.finishReason).toBe('stop');
    expect(asked).toHaveLength(13);
    for (const call of asked) {
      const characters = JSON.stringify(call.request.messages).length;
      // Five characters of this text are one token.
      expect(characters / 5 + (call.request.maxTokens ?? small.maxTokens)).toBeLessThan(2000);
      expect(call.request.messages.some((message) => message.content === 'And now?')).toBe(true);
    }
    // Messages are stored as they happened, not as they were sent.
    expect(result.messages.filter((message) => message.role === 'tool' && message.content.length > 3000)).toHaveLength(12);
  });

  it('skips fallback models that it does not fit into', async () => {
    const { run, asked } = setUp({ text: 'x' });
    const tiny = { ...testModel, modelId: 'tiny', contextWindow: 1000, maxTokens: 500 };
    const other = { ...testModel, modelId: 'other' };
    await run(turnInput({ models: [testModel, tiny, other], messages: [{ role: 'user', content: long.repeat(3) }] }));
    await run(turnInput({ models: [testModel, tiny, other] }));
    expect(asked.map((call) => call.models.map((model) => model.modelId))).toEqual([
      ['one', 'other'],
      ['one', 'tiny', 'other'],
    ]);
  });

  it('is cut further when the provider counts more than estimated', async () => {
    const tooLong = { error: new ModelError('context_length', 'too long') };
    const { run, asked } = setUp(tooLong, tooLong, { text: 'now' });
    const found: ModelMessage[] = [
      { role: 'user', content: 'What is in it?' },
      { role: 'assistant', content: '', toolCalls: [{ id: 'c', name: 'read', arguments: '{}' }] },
      { role: 'tool', content: 'word '.repeat(1400), toolCallId: 'c', toolName: 'read' },
    ];
    const result = await run(turnInput({ models: [small], messages: found }));
    expect(result).toMatchObject({ finishReason: 'stop', text: 'now', steps: 3 });
    const lengths = asked.map((call) => JSON.stringify(call.request.messages).length);
    expect(lengths[1]).toBeLessThan((lengths[0] ?? 0) * 0.9);
    expect(lengths[2]).toBeLessThan((lengths[1] ?? 0) * 0.9);
    expect(await setUp(tooLong).run(turnInput({ models: [small] }))).toMatchObject({
      finishReason: 'context_exhausted',
      failure: { kind: 'context_length' },
    });
  });

  it('of a caller that keeps it is sent whole or not at all, whatever the provider says of it', async () => {
    const tooLong = { error: new ModelError('context_length', 'too long') };
    const messages: ModelMessage[] = [
      { role: 'user', content: 'word '.repeat(700) },
      { role: 'assistant', content: 'ok' },
      { role: 'user', content: 'word '.repeat(700) },
    ];
    const { run, asked } = setUp(tooLong, { text: 'x' });
    expect(await run(turnInput({ models: [small], messages, whole: messages }))).toMatchObject({ finishReason: 'context_exhausted', steps: 1 });
    expect(asked.map((call) => call.request.messages)).toEqual([messages]);
    const longer = [...messages, ...messages];
    const refused = await run(turnInput({ models: [small], messages: longer, whole: longer }));
    expect(refused).toMatchObject({ finishReason: 'context_exhausted', steps: 0 });
    expect(refused.failure?.message).toMatch(/maximum context length is \d+ tokens, the request has \d+ tokens/);
    expect(asked).toHaveLength(1);
  });

  it('of a caller that keeps it is sent without added text if only that is too long', async () => {
    const { run, asked } = setUp({ text: 'x' });
    const bare: ModelMessage[] = [{ role: 'user', content: 'word '.repeat(700) }];
    const messages: ModelMessage[] = [{ role: 'user', content: `${'found '.repeat(1500)}${bare[0]?.content}` }];
    expect(await run(turnInput({ models: [small], messages, whole: bare }))).toMatchObject({ finishReason: 'stop' });
    expect(asked[0]?.request.messages).toEqual(bare);
  });

  it('that cannot be made to fit ends the turn before a call', async () => {
    const { run, asked } = setUp({ text: 'x' });
    expect(await run(turnInput({ models: [small], system: [long.repeat(5)] }))).toMatchObject({
      finishReason: 'context_exhausted',
      steps: 0,
      failure: { kind: 'context_exhausted' },
    });
    expect(asked).toHaveLength(0);
  });
});

describe('the circuit breaker of an agent', () => {
  const failing: ScriptedAnswer = { error: new ModelError('server', 'down') };

  it('opens after consecutive failed turns, ends turns without a call, and lets one try later', async () => {
    const { run, clock, asked } = setUp(failing, failing, failing, { text: 'back' });
    const agent = { circuitBreaker: { failures: 2, resetMs: 10_000 } };
    await run(turnInput({ agent }));
    await run(turnInput({ agent }));
    clock.advance(4000);
    expect(await run(turnInput({ agent }))).toMatchObject({
      finishReason: 'circuit_open',
      steps: 0,
      calls: [],
      failure: { kind: 'circuit_open', retryAfterMs: 6000 },
    });
    expect(await run(turnInput({ agent, agentId: 'other' }))).toMatchObject({ finishReason: 'provider_degraded' });
    expect(asked).toHaveLength(3);
    clock.advance(6000);
    const both = await Promise.all([run(turnInput({ agent })), run(turnInput({ agent }))]);
    expect(both.map((result) => result.finishReason)).toEqual(['stop', 'circuit_open']);
    expect(await run(turnInput({ agent }))).toMatchObject({ finishReason: 'stop' });
  });

  it('is not opened by callers’ actions', async () => {
    const { run } = setUp({ error: new ModelError('bad_request', 'no') });
    for (let index = 0; index < 10; index += 1) expect((await run(turnInput())).finishReason).toBe('error');
    const gone = AbortSignal.abort();
    for (let index = 0; index < 10; index += 1) expect((await run(turnInput({ signal: gone }))).finishReason).toBe('aborted');
  });
});
