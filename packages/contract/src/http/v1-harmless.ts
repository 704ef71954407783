import * as z from 'zod';
import { once } from '../once.ts';

// Hints that are harmless to ignore: clients set them by default, and no answer is wrong without them.

export const ServiceTier = once(() => z.enum(['auto', 'default', 'flex', 'priority', 'scale']).describe('Without effect: there is one tier.'));
export const Verbosity = once(() => z.enum(['low', 'medium', 'high']).describe('Without effect: not passed on to providers.'));

/** Clients send `max` for the highest level. */
export const ReasoningEffort = once(() =>
  z
    .enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])
    .describe('`max` is sent as `high`, the highest level that every provider with levels knows.'),
);

export function effortOf(effort: z.output<ReturnType<typeof ReasoningEffort>>): Exclude<z.output<ReturnType<typeof ReasoningEffort>>, 'max'> {
  return effort === 'max' ? 'high' : effort;
}
