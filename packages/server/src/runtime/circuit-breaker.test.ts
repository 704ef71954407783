import { createStepClock } from '@gatehouse/testkit/step-clock';
import { describe, expect, it } from 'vitest';
import { ModelError, type ModelErrorKind } from '../llm/model.ts';
import { createCircuitBreakers } from './circuit-breaker.ts';
import { testModel } from './testing.ts';

const config = { failures: 3, resetMs: 1000 };
const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, estimated: false };
type Outcome = 'ok' | ModelErrorKind;

function setUp() {
  const clock = createStepClock();
  const opened: string[] = [];
  const breakers = createCircuitBreakers(clock, ({ agentId, model }) => opened.push(`${agentId} ${model}`));
  const call = (over: { agentId?: string; caller?: string; modelIds?: readonly string[] } = {}) => {
    const { agentId = 'a', caller = 'ada', modelIds = ['one'] } = over;
    return { agentId, caller, models: modelIds.map((modelId) => ({ ...testModel, modelId })), config };
  };
  const begin = (over: Parameters<typeof call>[0] = {}) => {
    const admission = breakers.admit(call(over));
    if (!('end' in admission)) return expect.fail(`not admitted for ${admission.retryAfterMs} ms`);
    const settle = (outcome: Outcome, details: { text?: string } = {}) => {
      const [model = testModel] = admission.models;
      const partial = details.text === undefined ? undefined : { text: details.text, toolCalls: [], finish: 'stop' as const, usage };
      const attempt = { model, usage, latencyMs: 1, startedAtMs: 1 };
      if (outcome === 'ok') admission.observe({ ...attempt, outcome });
      else admission.observe({ ...attempt, outcome: 'error', error: new ModelError(outcome, 'why', partial === undefined ? {} : { partial }) });
      admission.end(false);
    };
    return { ...admission, settle };
  };
  return {
    clock,
    opened,
    begin,
    refused: (over: Parameters<typeof call>[0] = {}) => breakers.admit(call(over)),
    run: (outcome: Outcome, over: Parameters<typeof call>[0] = {}) => begin(over).settle(outcome),
  };
}

describe('circuit breaker', () => {
  it('opens at the configured number of consecutive failures, for that agent and model only, and reports it once', () => {
    const { run, refused, begin, opened } = setUp();
    run('server');
    run('server');
    run('ok');
    run('timeout');
    run('bad_request');
    run('network');
    const late = begin();
    run('bad_response');
    late.settle('server');
    expect(refused()).toEqual({ retryAfterMs: 1000, cause: 'why' });
    expect(opened).toEqual(['a test/one']);
    run('ok', { agentId: 'b' });
    run('ok', { modelIds: ['two'] });
    expect(begin({ modelIds: ['one', 'two'] }).models.map(({ modelId }) => modelId)).toEqual(['two']);
    expect(refused()).toMatchObject({ retryAfterMs: 1000 });
  });

  it.each(['auth', 'billing', 'rate_limit', 'bad_request', 'context_length', 'aborted'] as const)('is not opened by %s', (kind) => {
    const { run, opened } = setUp();
    for (let index = 0; index < 10; index += 1) run(kind);
    expect(opened).toEqual([]);
  });

  it('is not opened by answers that were too long for their time', () => {
    const { begin, opened } = setUp();
    for (let index = 0; index < 10; index += 1) begin().settle('timeout', { text: 'Once upon' });
    expect(opened).toEqual([]);
  });

  it('is opened by a model that hangs until the turn times out', () => {
    const { begin, refused } = setUp();
    for (let index = 0; index < 3; index += 1) begin().end(true);
    expect(refused()).toMatchObject({ retryAfterMs: 1000 });
  });

  it('lets a caller whose own calls did not fail try, and closes when the model answers', () => {
    const { run, refused, begin } = setUp();
    for (let index = 0; index < 3; index += 1) run('server');
    expect(refused()).toMatchObject({ retryAfterMs: 1000 });
    begin({ caller: 'bob' }).settle('server');
    expect(refused({ caller: 'bob' })).toMatchObject({ retryAfterMs: 1000 });
    begin({ caller: 'cleo' }).settle('ok');
    run('ok');
    run('ok', { caller: 'bob' });
  });

  it('lets one try after the pause: success closes it, failure reopens it, anything else leaves the next one to try', () => {
    const { run, refused, clock, begin } = setUp();
    for (let index = 0; index < 3; index += 1) run('server');
    clock.advance(1000);
    const probe = begin();
    expect(refused()).toMatchObject({ retryAfterMs: 1000 });
    probe.settle('overloaded');
    expect(refused()).toMatchObject({ retryAfterMs: 1000 });
    clock.advance(1000);
    begin().settle('aborted');
    begin().end(false);
    begin().settle('ok');
    run('server');
    begin();
  });

  it('is not held open by calls that started before it opened', () => {
    const { refused, clock, begin } = setUp();
    const early = Array.from({ length: 6 }, () => begin());
    for (const admission of early.slice(0, 3)) admission.settle('server');
    clock.advance(600);
    for (const admission of early.slice(3)) admission.settle('server');
    expect(refused()).toMatchObject({ retryAfterMs: 400 });
  });
});
