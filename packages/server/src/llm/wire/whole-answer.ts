import type * as z from 'zod';
import { ModelError } from '../model.ts';
import { complaintOf, streamErrorOf } from './wire-error.ts';

/** Reads the body of an unstreamed answer; an error with status 200 still counts as one. `what` names the expected format. */
export function readWholeAnswer<Shape extends z.ZodType>(shape: Shape, body: Buffer, what: string): z.output<Shape> {
  let value: unknown;
  try {
    value = JSON.parse(body.toString());
  } catch {
    throw new ModelError('bad_response', `expected JSON, got ${body.length === 0 ? 'nothing' : 'something else'}`);
  }
  const answer = shape.safeParse(value);
  if (answer.success) return answer.data;
  const complaint = complaintOf(value);
  if (complaint.message !== '') throw streamErrorOf(complaint, '');
  throw new ModelError('bad_response', `the answer is not a ${what} (${answer.error.issues[0]?.path.join('.') ?? ''})`);
}
