import { autonomyProfiles } from '@gatehouse/contract';
import * as z from 'zod';

const perMinute = z.int().min(1).max(100_000);

/** Section `autonomy`: what agents may set going beyond their own turns, and the guards around it. */
export const AutonomyConfig = z.strictObject({
  profile: z
    .enum(autonomyProfiles)
    .default('standard')
    .describe(
      '`assistant`: nothing beyond its own turn; `standard`: everything but browsing; `unattended`: likewise, and what would ask a person is refused and told in the inbox; `max`: everything.',
    ),
  durability: z
    .strictObject({
      enabled: z
        .boolean()
        .default(true)
        .describe(
          'Off, only the ledgers of `message.*` become best effort: a repeated send of a run may be sent twice. Runs, graphs and their stops stay durable.',
        ),
    })
    .prefault({})
    .describe('What runs that nobody watches keep of what they did.'),
  keepAliveMs: z.int().min(1000).max(600_000).default(30_000).describe('Milliseconds between two signs of life of what agents set going.'),
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
        .describe('Caps of everything that one request sets going, all together.'),
      rate: z
        .strictObject({
          perRootPerSecond: z.int().min(1).max(10_000).default(20).describe('Calls of the scripts of one request.'),
          perSocketPerSecond: z.int().min(1).max(10_000).default(10).describe('Calls of one script.'),
          connectsPerMinute: perMinute.default(60).describe('Connections of one script.'),
        })
        .prefault({})
        .describe('How often scripts of agents may call tools.'),
      spawn: z
        .strictObject({ perMinute: perMinute.default(30).describe('Sub-agents and graphs begun.') })
        .prefault({})
        .describe('What one request may begin.'),
      message: z
        .strictObject({ perHour: z.int().min(1).max(1_000_000).default(20).describe('Messages sent.') })
        .prefault({})
        .describe('Messages of an agent to other conversations and to people.'),
      outward: z
        .strictObject({ perHour: z.int().min(1).max(1_000_000).default(4000).describe('Calls of tools that reach out of the machine.') })
        .prefault({})
        .describe('Calls of an agent outward.'),
      cronSelfMax: z.int().min(0).max(1000).default(8).describe('Jobs that run by the clock and that an agent made itself.'),
      denialBreaker: z.int().min(1).max(1000).default(5).describe('Denials in a row that end a turn.'),
      leaseMinutes: z.int().min(1).max(60).default(60).describe('Minutes that a lease holds; a run that is alive renews its own.'),
    })
    .prefault({})
    .describe('Bounds that hold whatever the profile.'),
});
export type AutonomyConfig = z.output<typeof AutonomyConfig>;
