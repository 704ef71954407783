import { AppError } from '../../../../kernel/app-error.ts';
import { announceAudit, auditRow, recordAudit } from '../../../../kernel/audit.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { AuditRow } from '../../../../kernel/db/audit.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import { publishFolder } from '../../../../kernel/safe-folder.ts';
import type { Bundle } from '../bundles/bundle.ts';
import type { SkillRoot } from '../bundles/root.ts';
import { keepSkill, type ProvenanceRow } from '../store.ts';
import { decide, refusalOf, type Tier, type Vetted, type VetLimits, vetBundle } from '../vetting/vet.ts';

export interface InstallDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly limits: () => VetLimits;
  /** Loads what was written: called while the root is held, after the commit. */
  readonly written: (root: SkillRoot, row: ProvenanceRow) => Promise<void>;
}

export interface Installing {
  readonly root: SkillRoot;
  /** The name of the manifest when absent. */
  readonly name?: string;
  readonly agentId: string;
  readonly bundle: Bundle;
  readonly source: ProvenanceRow['source'];
  readonly tier: Tier;
  readonly url?: string;
  /** Called with the digest; returns whether a required confirmation was given. */
  readonly forced: (digest: string) => boolean;
  readonly replace: boolean;
  /** Audit action: `skill.create`, `skill.update` … */
  readonly action: string;
}

export interface Installed extends Vetted {
  readonly name: string;
  readonly path: string;
}

/** Whether a confirmation could make it installable: not without a readable manifest, or with files that cannot be written. */
function canBeLoaded({ skill, findings }: Vetted): boolean {
  return skill !== undefined && !findings.some(({ severity, category }) => severity === 'CRITICAL' && category === 'structure');
}

/**
 * The gate: judges the files in memory and writes those very bytes, or nothing. Call it inside `root.alone`. The folder
 * gets its name first and its digest is committed then: a crash between leaves bytes without provenance, which are
 * loaded only when they are found safe.
 */
export async function installSkill(deps: InstallDeps, call: CallContext, about: Installing): Promise<Installed> {
  const { db, bus, clock } = deps;
  const { root, bundle, tier, source, url } = about;
  const vetted = await vetBundle(bundle, deps.limits());
  const { verdict, digest, findings } = vetted;
  const named = vetted.skill?.manifest.name;
  const name = about.name ?? named;
  if (named !== undefined && named !== name)
    throw new AppError('invalid_params', `content: expected the manifest to name the skill ${name}, got ${named}`, { param: 'name' });
  const forced = about.forced(digest);
  const decision = canBeLoaded(vetted) ? decide(tier, verdict, forced) : 'block';
  const metadata = {
    source,
    tier,
    verdict,
    decision,
    forced,
    scope: root.owner === '' ? 'shared' : 'local',
    agentId: about.agentId,
    fileCount: bundle.files.length,
    sha256: digest,
    rules: [...new Set(findings.map(({ rule }) => rule))].slice(0, 50),
    droppedKeys: [...(vetted.skill?.dropped ?? [])].slice(0, 50),
    ...(url !== undefined && { url: url.slice(0, 500) }),
  };
  if (decision !== 'allow' || name === undefined) {
    await recordAudit(deps, call, {
      actionType: 'skill.vet.reject',
      classification: 'security',
      outcome: 'denied',
      metadata,
      ...(name !== undefined && { target: name }),
    });
    bus.emit('skill:rejected', {
      skillName: name ?? '',
      agentId: about.agentId,
      reason: decision === 'confirm' ? 'vetting asks for a confirmation' : 'vetting refuses it',
      violations: metadata.rules,
      timestamp: clock.now(),
    });
    throw refusalOf(decision === 'confirm' ? 'confirm' : 'block', vetted);
  }
  const published = await publishFolder(root.place, name, bundle.files, { replace: about.replace });
  const atMs = clock.now();
  const row: ProvenanceRow = {
    owner: root.owner,
    name,
    digest,
    source,
    tier,
    verdict,
    forced: forced ? 1 : 0,
    url: url ?? null,
    principalId: call.identity.principalId,
    atMs,
  };
  const audits: AuditRow[] = [
    auditRow(call, atMs, { actionType: 'skill.vet', classification: 'security', target: name, metadata }),
    auditRow(call, atMs, {
      actionType: about.action,
      classification: 'mutate',
      target: name,
      metadata: { scope: metadata.scope, agentId: about.agentId, sha256: digest },
    }),
  ];
  try {
    await db.write(keepSkill, { row, audits });
  } catch (error) {
    await published.undo();
    throw error;
  }
  await published.settle();
  await deps.written(root, row);
  for (const audit of audits) announceAudit(bus, audit);
  return { ...vetted, name, path: [root.place.base, ...root.place.within, name].join('/') };
}
