import { autonomyProfiles, once } from '@gatehouse/contract';
import * as z from 'zod';

const perMinute = () => z.int().min(1).max(100_000);

/** Section `autonomy`: what agents may start beyond their own turns, and its guards. */
export const AutonomyConfig = once(() =>
  z.strictObject({
    profile: z
      .enum(autonomyProfiles)
      .default('standard')
      .describe(
        '`assistant`: nothing beyond its own turn; `standard`: everything but browsing; `unattended`: the same, but calls that need an approval are refused and reported in the inbox; `max`: everything.',
      ),
    durability: z
      .strictObject({
        enabled: z
          .boolean()
          .default(true)
          .describe(
            'When off, only the ledgers of `message.*` become best effort: a retried run may send a message twice. Runs, graphs and their stops stay durable.',
          ),
      })
      .prefault({})
      .meta({ apply: 'restart' })
      .describe('What unattended runs record of their actions.'),
    keepAliveMs: z
      .int()
      .min(1000)
      .max(600_000)
      .default(30_000)
      .meta({ apply: 'restart' })
      .describe('Milliseconds between two heartbeats of work that agents started.'),
    guards: z
      .strictObject({
        budget: z
          .strictObject({
            usd: z.number().min(0.01).max(1_000_000).default(200).describe('US dollars.'),
            tokens: z.int().min(1000).max(Number.MAX_SAFE_INTEGER).default(200_000_000).describe('Input plus output tokens.'),
            hours: z
              .number()
              .min(0.01)
              .max(8760)
              .default(48)
              .describe('Hours in which at least one of its turns runs; waits for a provider or an approval do not count.'),
          })
          .prefault({})
          .describe('Limits of everything that one request starts, in total.'),
        rate: z
          .strictObject({
            perRootPerSecond: z.int().min(1).max(10_000).default(20).describe('Calls of the scripts of one request.'),
            perSocketPerSecond: z.int().min(1).max(10_000).default(10).describe('Calls of one script.'),
            connectsPerMinute: perMinute().default(60).describe('Connections of one script.'),
          })
          .prefault({})
          .describe('How often scripts of agents may call tools.'),
        spawn: z
          .strictObject({ perMinute: perMinute().default(30).describe('Sub-agents and graphs started.') })
          .prefault({})
          .describe('What one request may start.'),
        message: z
          .strictObject({ perHour: z.int().min(1).max(1_000_000).default(20).describe('Messages sent.') })
          .prefault({})
          .describe('Messages of an agent to other conversations and to people.'),
        outward: z
          .strictObject({ perHour: z.int().min(1).max(1_000_000).default(4000).describe('Calls of tools that act outside this machine.') })
          .prefault({})
          .describe('Outward calls of an agent.'),
        cronSelfMax: z.int().min(0).max(1000).default(8).describe('Scheduled jobs that an agent created itself.'),
        denialBreaker: z.int().min(1).max(1000).default(5).describe('Consecutive denials that end a turn.'),
        leaseMinutes: z.int().min(1).max(60).default(60).describe('Minutes that a lease is valid; a live run renews its own.'),
      })
      .prefault({})
      .describe('Limits that apply to every profile.'),
  }),
);
export type AutonomyConfig = z.output<ReturnType<typeof AutonomyConfig>>;
