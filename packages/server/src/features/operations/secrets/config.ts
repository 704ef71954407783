import { once } from '@gatehouse/contract';
import * as z from 'zod';

/** The store of secrets that `${NAME}` stands for when the environment has no such variable. */
export const SecretsConfig = once(() =>
  z.strictObject({
    readOnly: z
      .boolean()
      .default(false)
      .meta({ apply: 'live' })
      .describe('Refuses `env.set` and `env.remove`, and the rotation of tokens whose secret is in the store.'),
  }),
);
export type SecretsConfig = z.output<ReturnType<typeof SecretsConfig>>;
