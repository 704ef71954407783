import { AppError } from '../../../../kernel/app-error.ts';
import type { SkillMethods } from '../methods.ts';
import type { ProvenanceRow } from '../store.ts';
import type { Tier } from '../vetting/vet.ts';
import { type BundleFile, digestOf, manifestName, singleFile } from '../bundles/bundle.ts';
import { installSkill } from './install.ts';
import { readBundle, stampOf } from '../bundles/read-bundle.ts';
import type { SkillRoot } from '../bundles/root.ts';
import { installedAnswer, writableRoot, type WritableDeps } from './writable.ts';

interface UpdateDeps extends WritableDeps {
  /** Provenance recorded under a name, whatever is there now. */
  readonly provenanceOf: (owner: string, name: string) => ProvenanceRow | undefined;
}

/** `skills.update`: replaces the manifest of a skill and keeps its other files. */
export function createUpdate(deps: UpdateDeps): SkillMethods['skills.update'] {
  return async ({ name, content, force, ...where }, call) => {
    const limits = deps.limits();
    const { agent, root, tier } = writableRoot(deps, where, call);
    return root.alone(async () => {
      const folder = root.folderOf(name);
      const tree = await stampOf(folder, limits);
      if (tree === undefined) throw new AppError('not_found', `Skill not found: ${name}`, { param: 'name' });
      const before = await readBundle(folder, tree.entries, tree.more, limits);
      const bundle = { files: [...before.files.filter(({ path }) => path !== manifestName), ...singleFile(content).files], odd: before.odd };
      const row = deps.provenanceOf(root.owner, name);
      const isForeign = row?.tier === 'community';
      const about = {
        root,
        name,
        agentId: agent.id,
        bundle,
        source: isForeign ? ('imported' as const) : ('created' as const),
        tier: tierOfRest(before.files, root, row) ?? tier,
        ...(isForeign && row.url !== null && { url: row.url }),
        forced: () => force,
        replace: true,
        action: 'skill.update',
      };
      return installedAnswer(await installSkill(deps, call, about));
    });
  };
}

/** Tier of a skill of which one file is replaced: that of the author of the rest, as long as it is unchanged. Undefined: the caller's. */
function tierOfRest(files: readonly BundleFile[], root: SkillRoot, row: ProvenanceRow | undefined): Tier | undefined {
  if (row?.tier === 'community') return row.tier;
  if (root.owner === '' || files.every(({ path }) => path === manifestName)) return undefined;
  return row?.tier === 'operator' && row.digest === digestOf(files) ? undefined : 'agent-authored';
}
