import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { EpochMs } from '../shared/turn.ts';

/** State of a provider as seen from calls to it. */
export const ProviderState = once(() =>
  z
    .strictObject({
      provider: z.string(),
      state: z
        .enum(['ok', 'refused', 'cooling', 'unreachable'])
        .describe('`refused`: it refused the credentials; `cooling`: it asked to wait; `unreachable`: it does not answer as it should.'),
      sinceMs: EpochMs,
      untilMs: EpochMs.optional().describe('Until then it is not called, except on request of an owner.'),
      cause: z.string().optional().describe("The provider's own sentence, secrets redacted."),
    })
    .meta({ id: 'ProviderState' }),
);
export type ProviderState = z.output<ReturnType<typeof ProviderState>>;

const state = {
  provider: 'local',
  state: 'refused' as const,
  sinceMs: 1_790_000_000_000,
  untilMs: 1_790_000_060_000,
  cause: 'Provider "local" answered 401: Incorrect API key provided',
};

/** State of the model providers (beyond json-rpc.md). */
export const providers = {
  'providers.list': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists the model providers with their state as seen from calls.',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ providers: z.array(ProviderState()) }),
    examples: [{ params: {}, result: { providers: [state] } }],
    since: '0.1.0',
  }),
  'providers.retry': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Clears the state of a provider, so that the next call goes through and waiting work is retried at once.',
    params: () => z.strictObject({ provider: z.string().min(1) }),
    result: () => ProviderState(),
    examples: [{ params: { provider: 'local' }, result: { provider: 'local', state: 'ok', sinceMs: 1_790_000_010_000 } }],
    since: '0.1.0',
  }),
};
