import { fixed } from '../../../../kernel/config/live.ts';
import { AgentConfig, type AgentConfigInput } from '@gatehouse/contract';
import { createStepClock } from '@gatehouse/testkit';
import { describe, expect, test } from 'vitest';
import type { ModelInfo } from '../../../../llm/model.ts';
import type { CallRecord } from '../../../../runtime/turn.ts';
import type { ReserveStore } from '../api.ts';
import { BudgetsConfig } from '../config.ts';
import { Ledger } from './ledger.ts';
import { LedgerBudget } from './turn-budget.ts';

const model: ModelInfo = {
  provider: 'p',
  modelId: 'm',
  displayName: 'M',
  contextWindow: 100_000,
  maxTokens: 1000,
  input: ['text'],
  reasoning: false,
  price: { input: 1, output: 2, cacheRead: 0.5, cacheWrite: 1.25 },
  validated: true,
};
const dear: ModelInfo = { ...model, modelId: 'dear', price: { input: 10, output: 20, cacheRead: 1, cacheWrite: 12.5 } };
const noStore: ReserveStore = { reserve: () => Promise.resolve() };

function setUp(budgets: AgentConfigInput['budgets'], overall: Partial<BudgetsConfig> = {}) {
  const clock = createStepClock();
  const configs = new Map([['a', AgentConfig.parse({ budgets }).budgets]]);
  const warnings: string[] = [];
  const ledger = new Ledger({
    clock,
    overall: fixed(BudgetsConfig.parse(overall)),
    budgetsOf: (agentId) => configs.get(agentId),
    onSpend: () => undefined,
    warn: ({ name, used }) => warnings.push(`${name} ${used}`),
  });
  const turn = (agentId = 'a', store = noStore) => new LedgerBudget(ledger, { agentId, principalId: 'token:ada' }, store);
  return { clock, configs, warnings, ledger, turn };
}

function call(input: number, output: number, nano = 0): CallRecord {
  return {
    provider: 'p',
    modelId: 'm',
    operation: 'interactive',
    usage: { input, output, cacheRead: 0, cacheWrite: 0, estimated: false },
    cost: { input: nano, output: 0, cacheRead: 0, cacheWrite: 0 },
    savedNano: 0,
    latencyMs: 1,
    startedAtMs: 1,
    outcome: 'ok',
  };
}

function reserve(budget: LedgerBudget, inputTokens: number, maxOutputTokens: number, models = [model]) {
  const answer = budget.reserve({ models, inputTokens, maxOutputTokens });
  if (answer === undefined) throw new Error('expected a cap');
  return 'refused' in answer ? { refused: answer.refused, held: undefined } : { refused: undefined, held: answer };
}

describe('a cap', () => {
  test('does not exist unless configured: nothing is held, everything is counted', () => {
    const { turn, ledger } = setUp({});
    const budget = turn();
    expect(budget.reserve({ models: [model], inputTokens: 1, maxOutputTokens: 1 })).toBeUndefined();
    budget.spend(call(100, 10));
    expect(ledger.status('a')).toMatchObject([{ cap: { key: 'perTurnTokens' }, used: 0 }]);
  });

  test('set while agents run applies to the next call, including earlier usage', () => {
    const { turn, configs } = setUp({});
    const budget = turn();
    budget.spend(call(900, 50));
    configs.set('a', AgentConfig.parse({ budgets: { perHourTokens: 1000 } }).budgets);
    expect(reserve(budget, 60, 100).refused).toMatchObject({ cap: 'agents.a.budgets.perHourTokens', limit: 1000, used: 950 });
    expect(reserve(budget, 10, 100).held).toMatchObject({ maxOutputTokens: 40, cappedBy: { limit: 1000 } });
  });

  test('lowers the answer to what is left, and refuses below 16 tokens', () => {
    const { turn } = setUp({ perHourTokens: 1000 });
    expect(reserve(turn(), 900, 400).held).toMatchObject({ maxOutputTokens: 100, cappedBy: { cap: 'agents.a.budgets.perHourTokens' } });
    const other = setUp({ perHourTokens: 1000 });
    expect(reserve(other.turn(), 985, 400).refused).toMatchObject({ used: 0 });
    expect(reserve(other.turn(), 984, 400).held?.maxOutputTokens).toBe(16);
    // A request for fewer gets them.
    const third = setUp({ perHourTokens: 1000 });
    expect(reserve(third.turn(), 995, 5).held?.maxOutputTokens).toBe(5);
  });

  test('in money reserves the most expensive model that may answer', () => {
    // 1000 in at 12.5 $ and 500 out at 20 $ per million: 22 500 000 nano, and 2 for rounding.
    const exact = { perDayUsd: 0.022_500_002 };
    expect(reserve(setUp(exact).turn(), 1000, 500, [model, dear]).held).toMatchObject({ maxOutputTokens: 500 });
    expect(reserve(setUp({ perDayUsd: 0.022_500_001 }).turn(), 1000, 500, [model, dear]).held?.maxOutputTokens).toBe(499);
    expect(reserve(setUp(exact).turn(), 1000, 500, [model]).held?.cappedBy).toBeUndefined();
  });

  test('in money fails closed on an unknown price, naming model and key', () => {
    const { turn } = setUp({ perDayUsd: 5 });
    const { refused } = reserve(turn(), 1, 16, [model, { ...model, modelId: 'secret', price: null }]);
    expect(refused?.message).toBe(
      "The price of p/secret is not known, and agents.a.budgets.perDayUsd is a cap in US dollars: set the model's cost under providers.p.models",
    );
    const overall = setUp({}, { perHourUsd: 1 });
    expect(reserve(overall.turn(), 1, 16, [{ ...model, price: null }]).refused?.cap).toBe('budgets.perHourUsd');
  });

  test('over all agents counts the usage and reserves of each', () => {
    const { turn, configs } = setUp({}, { perHourTokens: 1000 });
    configs.set('b', AgentConfig.parse({}).budgets);
    turn('a').spend(call(500, 0));
    expect(reserve(turn('b'), 300, 100).held).toMatchObject({ maxOutputTokens: 100 });
    expect(reserve(turn('a'), 80, 100).held?.maxOutputTokens).toBe(20);
    const { refused } = reserve(turn('b'), 80, 100);
    expect(refused).toMatchObject({ cap: 'budgets.perHourTokens', limit: 1000, used: 500, retryAfterMs: 1000 });
    expect(refused?.message).toContain('500 tokens are used and 500 tokens held by running calls');
  });

  test('of a turn applies to that turn alone', () => {
    const { turn } = setUp({ perTurnUsd: 0.001 });
    const one = turn();
    const first = reserve(one, 100, 100).held;
    first?.settle([call(100, 100, 900_000)]);
    expect(reserve(one, 100, 100).refused).toEqual({
      cap: 'agents.a.budgets.perTurnUsd',
      limit: 0.001,
      used: 0.0009,
      message: 'The budget agents.a.budgets.perTurnUsd of 0.001 USD does not allow this call: 0.0009 USD are used; this call needs more than is left',
    });
    expect(reserve(turn(), 100, 100).held?.maxOutputTokens).toBe(100);
  });

  test('has capacity again when usage has left the window, and says when', () => {
    const { turn, clock } = setUp({ perHourTokens: 1000 });
    reserve(turn(), 900, 90).held?.settle([call(900, 90)]);
    const { refused } = reserve(turn(), 100, 50);
    const waitMs = refused?.retryAfterMs ?? 0;
    expect(waitMs).toBeGreaterThanOrEqual(3_600_000);
    expect(waitMs).toBeLessThanOrEqual(3_660_000);
    clock.advance(waitMs - 1);
    expect(reserve(turn(), 100, 50).refused).toBeDefined();
    clock.advance(1);
    expect(reserve(turn(), 100, 50).held).toBeDefined();
  });

  test('that no window could satisfy names no time', () => {
    const { refused } = reserve(setUp({ perHourTokens: 100 }).turn(), 200, 50);
    expect(refused).not.toHaveProperty('retryAfterMs');
  });

  test('keeps counting when the wall clock goes back', () => {
    const clock = createStepClock();
    let shift = 0;
    const ledger = new Ledger({
      clock: { ...clock, now: () => clock.now() + shift },
      overall: fixed(BudgetsConfig.parse({ perHourTokens: 100 })),
      budgetsOf: () => undefined,
      onSpend: () => undefined,
      warn: () => undefined,
    });
    const turn = () => new LedgerBudget(ledger, { agentId: 'a', principalId: 'token:ada' }, noStore);
    turn().spend(call(90, 0));
    shift = -86_400_000;
    expect(reserve(turn(), 50, 50).refused).toBeDefined();
    // Corrected again: no time has passed.
    shift = 0;
    expect(reserve(turn(), 50, 50).refused).toBeDefined();
    shift = -86_400_000;
    clock.advance(3_700_000);
    expect(reserve(turn(), 50, 50).held).toBeDefined();
  });
});

test('a free model may be called whatever was spent, a priced one may not', async () => {
  const { turn, ledger } = setUp({ perDayUsd: 0.001 });
  const free = { ...model, price: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };
  turn().spend(call(1, 1, 1_000_001));
  const { held } = reserve(turn(), 300, 100, [free]);
  expect(held?.maxOutputTokens).toBe(100);
  expect(await held?.covers([call(300, 50)])).toBe(true);
  held?.settle([]);
  expect(ledger.status('a').map((one) => one.held)).toEqual([0, 0]);
  expect(reserve(turn(), 300, 100, [free, model]).refused).toMatchObject({ cap: 'agents.a.budgets.perDayUsd' });
});

describe('a reserve', () => {
  test('holds while attempts fail and grows by their usage, while there is capacity', () => {
    const { turn, ledger } = setUp({ perHourTokens: 1000 });
    const { held } = reserve(turn(), 300, 100);
    expect(held?.covers([call(300, 50)])).toBe(true);
    expect(ledger.status('a')[1]).toMatchObject({ used: 0, held: 750 });
    expect(held?.covers([call(300, 50), call(300, 50)])).toBe(false);
    held?.settle([call(300, 50), call(300, 50)]);
    expect(ledger.status('a')[1]).toMatchObject({ used: 700, held: 0 });
  });

  test('under a cap in money is stored, first and when it grows', async () => {
    const { turn } = setUp({ perHourUsd: 1 });
    const stored: [number, string][] = [];
    const budget = turn('a', {
      async reserve(...said) {
        stored.push(said);
      },
    });
    const { held } = reserve(budget, 100, 100);
    await held?.stored;
    expect(await held?.covers([call(100, 0, 50_000)])).toBe(true);
    held?.settle([call(100, 0, 50_000)]);
    await reserve(budget, 100, 100).held?.stored;
    // 100 in at 1.25 $ and 100 out at 2 $ per million; then with the failed attempt; then with the usage of the turn.
    expect(stored).toEqual([
      [325_002, 'p/m'],
      [375_002, 'p/m'],
      [375_002, 'p/m'],
    ]);
  });
});

describe('a warning', () => {
  test('is repeated in the same window when the cap was raised meanwhile, not when it was lowered', () => {
    const { turn, warnings, configs } = setUp({ perHourTokens: 1000 });
    const cap = (perHourTokens: number) => configs.set('a', AgentConfig.parse({ budgets: { perHourTokens } }).budgets);
    turn().spend(call(900, 0));
    cap(10_000);
    turn().spend(call(100, 0));
    expect(warnings).toEqual(['agents.a.budgets.perHourTokens 900']);
    turn().spend(call(8000, 0));
    cap(9500);
    turn().spend(call(100, 0));
    expect(warnings).toEqual(['agents.a.budgets.perHourTokens 900', 'agents.a.budgets.perHourTokens 9000']);
  });

  test('is sent at 80 %, once per cap and window', () => {
    const { turn, warnings, clock } = setUp({ perHourTokens: 1000, perTurnUsd: 0.001 }, { perDayTokens: 2000 });
    const spend = (tokens: number, nano = 0) => turn().spend(call(tokens, 0, nano));
    spend(799);
    expect(warnings).toEqual([]);
    spend(1);
    expect(warnings).toEqual(['agents.a.budgets.perHourTokens 800']);
    spend(100);
    clock.advance(3_700_000);
    spend(850);
    expect(warnings).toEqual(['agents.a.budgets.perHourTokens 800', 'agents.a.budgets.perHourTokens 850', 'budgets.perDayTokens 1750']);
    const one = turn();
    one.spend(call(0, 0, 700_000));
    one.spend(call(0, 0, 100_000));
    one.spend(call(0, 0, 100_000));
    expect(warnings.slice(3)).toEqual(['agents.a.budgets.perTurnUsd 800000']);
  });
});

test('concurrent calls never exceed a cap together', () => {
  for (let seed = 1; seed <= 40; seed += 1) {
    let state = seed;
    const random = (below: number) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const limit = 5_000 + random(5_000);
    const overall = 8_000 + random(4_000);
    const { turn, configs, clock } = setUp({ perHourTokens: limit }, { perHourTokens: overall });
    configs.set('b', AgentConfig.parse({}).budgets);
    // The oracle: all usage with its time, and all reserves.
    const used: { readonly agent: string; readonly atMs: number; readonly tokens: number }[] = [];
    const open: { readonly agent: string; readonly most: number; readonly settle: (calls: readonly CallRecord[]) => void }[] = [];
    const sum = (agent: string | undefined, windowMs: number) =>
      used
        .filter((one) => (agent === undefined || one.agent === agent) && one.atMs > clock.now() - windowMs)
        .reduce((total, one) => total + one.tokens, 0) +
      open.filter((one) => agent === undefined || one.agent === agent).reduce((total, one) => total + one.most, 0);
    let refusals = 0;
    for (let n = 0; n < 300; n += 1) {
      clock.advance(random(4) * 60_000);
      if (open.length > 0 && random(2) === 0) {
        const [one] = open.splice(random(open.length), 1);
        const tokens = random((one?.most ?? 0) + 1);
        one?.settle(tokens === 0 ? [] : [call(tokens, 0)]);
        if (one !== undefined && tokens > 0) used.push({ agent: one.agent, atMs: clock.now(), tokens });
      } else {
        const agent = random(3) === 0 ? 'b' : 'a';
        const input = random(800);
        const output = 16 + random(500);
        const { held } = reserve(turn(agent), input, output);
        if (held === undefined) {
          refusals += 1;
          // Refused only where the window, at most a step longer, is indeed full.
          const room = Math.min(overall - sum(undefined, 3_660_000), agent === 'a' ? limit - sum('a', 3_660_000) : Infinity);
          expect(room).toBeLessThan(input + 16);
        } else open.push({ agent, most: input + held.maxOutputTokens, settle: (calls) => held.settle(calls) });
      }
      expect(sum('a', 3_600_000)).toBeLessThanOrEqual(limit);
      expect(sum(undefined, 3_600_000)).toBeLessThanOrEqual(overall);
    }
    expect(refusals).toBeGreaterThan(0);
  }
});
