import { once } from '@gatehouse/contract';
import * as z from 'zod';

/** Checks that may take long on some texts. */
export interface CheckRequest {
  readonly answer: string;
  readonly patterns: readonly string[];
  readonly jsonSchema?: Readonly<Record<string, unknown>> | undefined;
}

export const CheckAnswer = once(() =>
  z.strictObject({
    matches: z.array(z.boolean()),
    /** Why the answer does not fulfil the schema; absent when it does, or without one. */
    problem: z.string().optional(),
    /** Why the schema cannot be used. */
    unusable: z.string().optional(),
  }),
);
export type CheckAnswer = z.output<ReturnType<typeof CheckAnswer>>;
