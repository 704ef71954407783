import * as z from 'zod';

/** What an agent may start beyond its own turn; a sub-agent has at most the capabilities of its requester. */
export const capabilityNames = [
  'orch:spawn',
  'orch:graph',
  'orch:cron',
  'orch:message',
  'orch:skill',
  'orch:read',
  'orch:web',
  'orch:analyze',
  'orch:write',
  'orch:browse',
] as const;
export const Capability = z.enum(capabilityNames).meta({ id: 'Capability' });
export type Capability = z.output<typeof Capability>;

export const autonomyProfiles = ['assistant', 'standard', 'unattended', 'max'] as const;
export type AutonomyProfile = (typeof autonomyProfiles)[number];
