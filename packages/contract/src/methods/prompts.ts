import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { EpochMs } from '../shared/turn.ts';

/** Typed after `/`, so it has no spaces. */
const PromptName = once(() =>
  z
    .string()
    .min(1)
    .max(40)
    .regex(/^[\p{L}\p{N}][\p{L}\p{M}\p{N}_-]*$/u, 'expected letters, digits, "-" and "_"')
    .meta({ id: 'PromptName' }),
);
const PromptText = once(() => z.string().min(1).max(20_000));
const SavedPrompt = once(() => z.strictObject({ name: PromptName(), text: z.string(), updatedAt: EpochMs }).meta({ id: 'SavedPrompt' }));

const example = { name: 'weekly-report', text: 'Sum up the week in five points.', updatedAt: 1790000000000 };

export const prompts = {
  'prompts.list': method({
    scope: 'rpc',
    risk: 'read',
    summary: "Lists the caller's saved prompts by name.",
    description:
      'Prompts belong to a person, whichever of its tokens saved them; administrators do not see those of others. For people, not for agents.',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ prompts: z.array(SavedPrompt()) }),
    errors: ['denied'],
    examples: [{ params: {}, result: { prompts: [example] } }],
    since: '0.1.0',
  }),
  'prompts.save': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Saves a prompt under a name, or replaces the one that has it.',
    description: 'A person has at most 200 prompts (`precondition_failed`).',
    params: () => z.strictObject({ name: PromptName(), text: PromptText() }),
    result: () => SavedPrompt(),
    errors: ['denied', 'precondition_failed'],
    examples: [{ params: { name: example.name, text: example.text }, result: example }],
    since: '0.1.0',
  }),
  'prompts.delete': method({
    scope: 'rpc',
    risk: 'destructive',
    summary: 'Deletes a saved prompt.',
    params: () => z.strictObject({ name: PromptName() }),
    result: () => z.strictObject({ name: PromptName(), deleted: z.literal(true) }),
    errors: ['not_found', 'denied'],
    examples: [{ params: { name: example.name }, result: { name: example.name, deleted: true } }],
    since: '0.1.0',
  }),
};
