import { manifestName } from '../bundles/bundle.ts';
import type { SkillView } from './view.ts';

/** Returns a skill of an agent as `skills.list` shows it. */
export function toWire({ skill, reasons, stat }: SkillView['all'][number]) {
  const { name, owner, description, verdict, findings, fileCount, digest, provenance, loaded } = skill;
  const manifest = typeof loaded === 'string' ? undefined : loaded.manifest;
  return {
    name,
    description,
    scope: owner === '' ? ('shared' as const) : ('local' as const),
    location: owner === '' ? `${name}/${manifestName}` : `skills/${name}/${manifestName}`,
    source: provenance?.source ?? (owner === '' ? ('local' as const) : ('workspace' as const)),
    state: manifest === undefined ? ('rejected' as const) : reasons.length > 0 ? ('ineligible' as const) : ('active' as const),
    reasons: [...reasons],
    ...(manifest?.disableModelInvocation === true && { disableModelInvocation: true }),
    userInvocable: manifest?.userInvocable ?? false,
    verdict,
    findings: [...findings],
    fileCount,
    sha256: digest,
    standing: stat?.standing ?? ('neutral' as const),
    uses: stat?.uses ?? 0,
    failures: stat?.failures ?? 0,
    ...(provenance !== undefined && {
      provenance: {
        tier: provenance.tier,
        forced: provenance.forced === 1,
        ...(provenance.url !== null && { url: provenance.url }),
        by: provenance.principalId,
        at: provenance.atMs,
      },
    }),
  };
}
