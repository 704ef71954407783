import * as z from 'zod';
import { once } from '../once.ts';

/** One model, or an agent as `agent/<id>` (http-gateway.md §2.6). */
export const ModelObject = once(() =>
  z.strictObject({ id: z.string(), object: z.literal('model'), created: z.literal(0), owned_by: z.string() }).meta({ id: 'ModelObject' }),
);
export type ModelObject = z.output<ReturnType<typeof ModelObject>>;

export const ModelList = once(() => z.strictObject({ object: z.literal('list'), data: z.array(ModelObject()) }).meta({ id: 'ModelList' }));
