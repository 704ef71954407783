import { type AutonomyProfile, type Capability, capabilityNames } from '@gatehouse/contract';

const everything = new Set<Capability>(capabilityNames);
const standard = new Set(capabilityNames.filter((name) => name !== 'orch:browse'));

/** What each profile lets an agent start. */
export const capsOfProfile: Readonly<Record<AutonomyProfile, ReadonlySet<Capability>>> = {
  assistant: new Set(),
  standard,
  unattended: standard,
  max: everything,
};

/** Returns the profile of an evicted root run; it never allows more than before. */
export const evictedProfile = (profile: AutonomyProfile): AutonomyProfile => (profile === 'assistant' ? profile : 'standard');

export function parseCaps(text: string): readonly Capability[] {
  const named = new Set(text.split(','));
  return capabilityNames.filter((name) => named.has(name));
}
