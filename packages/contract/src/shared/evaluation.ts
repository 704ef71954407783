import * as z from 'zod';
import { once } from '../once.ts';
import { AgentId } from './session.ts';

const Pattern = z
  .string()
  .min(1)
  .max(1000)
  .refine((source) => {
    try {
      return new RegExp(source) instanceof RegExp;
    } catch {
      return false;
    }
  }, 'expected a regular expression of JavaScript');

const listOf = <Item extends z.ZodType>(item: Item) => z.union([item, z.array(item).min(1).max(20)], 'expected a text or a list of 1 to 20 texts');
const text = z.string().min(1).max(4000);
const toolName = z.string().min(1).max(128);

/** What an answer must fulfil. */
export const EvalChecks = once(() =>
  z
    .strictObject({
      contains: listOf(text).optional().describe('Texts that the answer contains, in any case.'),
      notContains: listOf(text).optional().describe('Texts that it does not contain, in any case.'),
      regex: listOf(Pattern).optional().describe('Expressions that match the answer.'),
      jsonSchema: z.record(z.string(), z.unknown()).optional().describe('JSON Schema of the answer, which is JSON, alone or in one code block.'),
      toolCalled: listOf(toolName).optional().describe('Tools that the agent calls; a call that is refused counts.'),
      toolNotCalled: listOf(toolName).optional(),
      maxCostUsd: z.number().min(0).optional(),
      maxLatencyMs: z.int().min(1).optional(),
      judge: z
        .strictObject({
          rubric: z.string().min(1).max(4000).describe('What a good answer does; a model decides whether the answer does.'),
          model: z.string().min(1).max(256).optional().describe("As provider/modelId or modelId; the agent's own otherwise."),
        })
        .optional(),
    })
    .refine((checks) => Object.keys(checks).length > 0, 'expected at least one check')
    .meta({ id: 'EvalChecks' }),
);
export type EvalChecks = z.output<ReturnType<typeof EvalChecks>>;

/** One question with what its answer must fulfil. */
export const EvalCase = once(() =>
  z
    .strictObject({
      name: z.string().min(1).max(200),
      input: z.string().min(1).max(100_000).describe('The message to the agent.'),
      system: z.string().min(1).max(32_000).optional().describe("Added to the agent's system prompt."),
      history: z
        .array(z.strictObject({ role: z.enum(['user', 'assistant']), content: z.string().min(1).max(100_000) }))
        .max(100)
        .optional()
        .describe('The conversation before the message, oldest first.'),
      reference: z.string().min(1).max(20_000).optional().describe('A good answer, shown to the judge.'),
      checks: EvalChecks(),
    })
    .meta({ id: 'EvalCase' }),
);
export type EvalCase = z.output<ReturnType<typeof EvalCase>>;

/** What answers: an agent with its own model, or with another one. */
export const EvalVariant = once(() =>
  z
    .strictObject({
      agentId: AgentId.optional().describe('The default agent otherwise.'),
      model: z.string().min(1).max(256).optional().describe('As provider/modelId or modelId; it answers alone, without fallbacks.'),
    })
    .meta({ id: 'EvalVariant' }),
);
export type EvalVariant = z.output<ReturnType<typeof EvalVariant>>;

/** Bounds of an evaluation. */
export const evalLimits = { cases: 200, variants: 4, concurrency: 8 } as const;

/** A file of test cases; `agent` and the others are defaults of the command line. */
export const EvalFile = once(() =>
  z
    .strictObject({
      name: z.string().min(1).max(200).optional(),
      agent: AgentId.optional(),
      model: z.string().min(1).max(256).optional(),
      concurrency: z.int().min(1).max(evalLimits.concurrency).optional(),
      budgetUsd: z.number().gt(0).optional(),
      cases: z.array(EvalCase()).min(1).max(evalLimits.cases),
    })
    .meta({ id: 'EvalFile' }),
);
export type EvalFile = z.output<ReturnType<typeof EvalFile>>;
