import * as z from 'zod';
import { method } from '../method.ts';

export const rpc = {
  'rpc.discover': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns the OpenRPC document of this server, the same as `/openrpc.json`.',
    params: () => z.strictObject({}),
    result: () =>
      z.looseObject({
        openrpc: z.string(),
        info: z.looseObject({ title: z.string(), version: z.string() }),
        methods: z.array(z.looseObject({ name: z.string() })),
      }),
    examples: [{ params: {}, result: { openrpc: '1.3.2', info: { title: 'Gatehouse', version: '0.1.0' }, methods: [{ name: 'system.ping' }] } }],
    since: '0.1.0',
  }),
};
