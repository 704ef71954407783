import * as z from 'zod';
import { once } from '../once.ts';
import { method } from '../method.ts';

const RestartNeeded = once(() =>
  z.array(z.string()).describe('Keys that were changed in the file and need a restart; `config` has the values in force.'),
);
const Section = once(() => z.string().min(1).max(64).optional().describe('A top-level key of config.yaml; all otherwise.'));

export const config = {
  'config.read': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns the effective configuration, or one section of it; secret values are redacted.',
    description: 'With `section` the result has `section` and its `config`; without it `config` has every section and `sections` names them.',
    params: () => z.strictObject({ section: Section() }),
    result: () =>
      z.strictObject({ config: z.unknown(), sections: z.array(z.string()), section: z.string().optional(), restartNeeded: RestartNeeded() }),
    errors: ['not_found'],
    examples: [
      {
        params: { section: 'routing' },
        result: { section: 'routing', config: { defaultAgentId: 'default' }, sections: ['routing'], restartNeeded: ['gateway.port'] },
      },
    ],
    since: '0.1.0',
  }),
  'config.schema': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns the JSON Schema of the configuration, or of one section.',
    description:
      '`x-gatehouse-apply` of a key holds for all keys below it that have none: `live`, a change takes effect at once; `restart`, after a restart.',
    params: () => z.strictObject({ section: Section() }),
    result: () => z.strictObject({ schema: z.looseObject({}), sections: z.array(z.string()), section: z.string().optional() }),
    errors: ['not_found'],
    examples: [{ params: { section: 'routing' }, result: { section: 'routing', schema: { type: 'object' }, sections: ['routing'] } }],
    since: '0.1.0',
  }),
};
