import * as z from 'zod';

// Wishes that cost nothing when they are not granted: clients set them without being asked, and no answer is wrong for their absence.

export const ServiceTier = z.enum(['auto', 'default', 'flex', 'priority', 'scale']).describe('Without effect: there is one tier.');
export const Verbosity = z.enum(['low', 'medium', 'high']).describe('Without effect: no provider is told.');

/** `max` is a client's word for the most there is. */
export const ReasoningEffort = z
  .enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])
  .describe('`max` is sent as `high`, the highest level that every provider with levels knows.');

export function effortOf(effort: z.output<typeof ReasoningEffort>): Exclude<z.output<typeof ReasoningEffort>, 'max'> {
  return effort === 'max' ? 'high' : effort;
}
