import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { EvalCase, evalLimits, EvalVariant } from '../shared/evaluation.ts';
import { pageParams, pageResult } from '../shared/paging.ts';
import { AgentId } from '../shared/session.ts';
import { EpochMs, TokensUsed } from '../shared/turn.ts';

const EvalId = once(() => z.string().regex(/^ev_[0-9a-f-]{36}$/, 'expected the id of an evaluation, ev_ followed by a UUID'));
const count = z.int().min(0);
const usd = z.number().min(0);

/** How one check of an answer ended. */
const CheckResult = once(() =>
  z
    .strictObject({
      check: z.string().describe('`contains`, `regex`, `judge` …'),
      expected: z.string().describe('What was expected, truncated to 200 characters.'),
      passed: z.boolean().nullable().describe('Null when it could not be decided.'),
      detail: z.string().optional().describe('What was found instead, or why it could not be decided.'),
    })
    .meta({ id: 'EvalCheckResult' }),
);

/** The answer of one variant to one case. */
export const EvalResult = once(() =>
  z
    .strictObject({
      variant: count.describe('Position in `variants`.'),
      outcome: z.enum(['passed', 'failed', 'error']).describe('`error`: there was no answer, or a check could not be decided.'),
      answer: z.string().describe('Truncated to 8,000 characters.'),
      checks: z.array(CheckResult()),
      error: z.strictObject({ kind: z.string(), text: z.string() }).optional(),
      turnId: z.string().nullable(),
      traceId: z.string().nullable(),
      model: z.string().nullable(),
      tools: z.array(z.string()).describe('Tools that the agent called, in order.'),
      tokensUsed: TokensUsed,
      costUsd: usd.nullable().describe('Of the answer, without the judge; null when a price is not known.'),
      judgeCostUsd: usd.nullable().optional(),
      latencyMs: count,
    })
    .meta({ id: 'EvalResult' }),
);
export type EvalResult = z.output<ReturnType<typeof EvalResult>>;

/** An evaluation with its counts. */
export const EvalRun = once(() =>
  z
    .strictObject({
      evalId: EvalId(),
      name: z.string().nullable(),
      state: z
        .enum(['running', 'completed', 'stopped', 'budget_exceeded', 'interrupted', 'failed'])
        .describe('`stopped`: by `eval.stop`, or its token was revoked; `interrupted`: the daemon ended; `failed`: results could not be stored.'),
      reason: z.string().optional().describe('Why it ended early.'),
      by: z.string().describe('The principal that started it.'),
      createdAt: EpochMs,
      endedAt: EpochMs.nullable(),
      cases: count,
      budgetUsd: usd.nullable(),
      costUsd: usd.describe('Of all answers and judges so far whose price is known.'),
      variants: z.array(
        z.strictObject({
          agentId: AgentId,
          model: z.string().nullable().describe("The model that was named; null for the agent's own."),
          passed: count,
          failed: count,
          errors: count,
          pending: count.describe('Cases without a result.'),
          costUsd: usd,
          unpriced: count.describe('Answers whose price is not known; their cost is missing.'),
          avgLatencyMs: count.nullable(),
        }),
      ),
    })
    .meta({ id: 'EvalRun' }),
);
export type EvalRun = z.output<ReturnType<typeof EvalRun>>;

const evalId = 'ev_0199e0a0-7c00-7000-8000-000000000001';
const caseExample = { name: 'refund', input: 'Can I return shoes after 20 days?', checks: { contains: '30 days', maxCostUsd: 0.01 } };
const runExample = {
  evalId,
  name: 'support',
  state: 'completed' as const,
  by: 'token:ops',
  createdAt: 1_790_000_000_000,
  endedAt: 1_790_000_004_000,
  cases: 1,
  budgetUsd: null,
  costUsd: 0.0002,
  variants: [{ agentId: 'default', model: null, passed: 1, failed: 0, errors: 0, pending: 0, costUsd: 0.0002, unpriced: 0, avgLatencyMs: 840 }],
};
const resultExample = {
  variant: 0,
  outcome: 'passed' as const,
  answer: 'Yes, within 30 days.',
  checks: [{ check: 'contains', expected: '30 days', passed: true }],
  turnId: 'tn_0199e0a0-7c00-7000-8000-000000000002',
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  model: 'local/test-model',
  tools: [],
  tokensUsed: { input: 120, output: 9, total: 129 },
  costUsd: 0.0002,
  latencyMs: 840,
};

/** Evaluations: sets of questions whose answers are checked (an extension of json-rpc.md). */
export const evaluation = {
  'eval.run': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Starts an evaluation: asks the questions of test cases of one or more agents or models, and checks the answers.',
    description:
      'Returns at once; `eval.get` has the results as they arrive. Each answer is a separate turn, stored in no conversation, without effects: tools that may change or reach something are refused, with the reason as their result, and nothing is learned from it. Such turns are synthetic: their cost counts against budgets, but reports leave them out unless asked for. At most 4 evaluations run at once. With `budgetUsd` no further question is asked once the known cost reaches it, and models without a known price are rejected. The newest 100 evaluations are kept.',
    params: () =>
      z.strictObject({
        name: z.string().min(1).max(200).optional(),
        cases: z.array(EvalCase()).min(1).max(evalLimits.cases),
        variants: z
          .array(EvalVariant())
          .min(1)
          .max(evalLimits.variants)
          .default(() => [{}]),
        concurrency: z.int().min(1).max(evalLimits.concurrency).default(2).describe('Questions asked at the same time.'),
        budgetUsd: usd.gt(0).optional(),
      }),
    result: () => z.strictObject({ evalId: EvalId() }),
    errors: ['not_found', 'precondition_failed', 'invalid_params', 'conflict'],
    examples: [{ params: { name: 'support', cases: [caseExample] }, result: { evalId } }],
    since: '0.1.0',
  }),
  'eval.get': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns an evaluation with a page of its cases and the results so far.',
    params: () => z.strictObject({ evalId: EvalId(), ...pageParams({ defaultLimit: 50, maxLimit: evalLimits.cases }) }),
    result: () =>
      z.strictObject({
        run: EvalRun(),
        cases: z.array(z.strictObject({ number: count.describe('From 1.'), case: EvalCase(), results: z.array(EvalResult()) })),
        ...pageResult,
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { evalId },
        result: {
          run: runExample,
          cases: [{ number: 1, case: caseExample, results: [resultExample] }],
          total: 1,
          offset: 0,
          limit: 50,
          hasMore: false,
        },
      },
    ],
    since: '0.1.0',
  }),
  'eval.list': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists evaluations, newest first.',
    params: () => z.strictObject({ ...pageParams({ defaultLimit: 50, maxLimit: 200 }) }),
    result: () => z.strictObject({ runs: z.array(EvalRun()), ...pageResult }),
    examples: [{ params: {}, result: { runs: [runExample], total: 1, offset: 0, limit: 50, hasMore: false } }],
    since: '0.1.0',
  }),
  'eval.stop': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Stops an evaluation; its running turns are aborted, and the results so far stay.',
    params: () => z.strictObject({ evalId: EvalId() }),
    result: () => z.strictObject({ evalId: EvalId(), stopped: z.boolean().describe('False when it was not running.') }),
    errors: ['not_found'],
    examples: [{ params: { evalId }, result: { evalId, stopped: true } }],
    since: '0.1.0',
  }),
  'eval.cases': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Makes test cases of earlier turns: of one that is named, or of those whose answers people marked.',
    description:
      'A case has the question, up to 20 texts before it, the answer as `reference`, and checks to start from: the tools that were called, and a judge. For an answer that was marked bad, the judge looks for the fault that the note names. Review the cases before you rely on them. Only turns of stored conversations.',
    params: () =>
      z
        .strictObject({
          ref: z.string().min(1).max(64).optional().describe('A turn (tn_…), or the id of its trace.'),
          rating: z.enum(['good', 'bad']).optional().describe('Without `ref`: only answers with this mark; good and bad ones when absent.'),
          agentId: AgentId.optional().describe('Without `ref`: only answers of this agent.'),
          limit: z.int().min(1).max(evalLimits.cases).default(50).describe('Without `ref`: the newest marks.'),
        })
        .refine((params) => params.ref === undefined || (params.rating ?? params.agentId) === undefined, {
          path: ['ref'],
          message: 'expected alone, without rating and agentId',
        }),
    result: () => z.strictObject({ cases: z.array(EvalCase()), yaml: z.string().describe('The same as a file for `gatehouse eval`.') }),
    errors: ['not_found', 'denied'],
    examples: [
      {
        params: { ref: 'tn_0199e0a0-7c00-7000-8000-000000000002' },
        result: {
          cases: [caseExample],
          yaml: 'cases:\n  - name: refund\n    input: Can I return shoes after 20 days?\n    checks:\n      contains: 30 days\n      maxCostUsd: 0.01\n',
        },
      },
    ],
    since: '0.1.0',
  }),
};
