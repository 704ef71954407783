import * as z from 'zod';
import { method } from '../method.ts';
import { EpochMs } from '../shared/turn.ts';

export const system = {
  'system.ping': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns at once, with the time of the server.',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ pong: z.literal(true), ts: EpochMs }),
    examples: [{ params: {}, result: { pong: true, ts: 1790000000000 } }],
    since: '0.1.0',
  }),
};
