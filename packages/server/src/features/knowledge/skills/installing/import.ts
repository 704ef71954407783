import { AppError } from '../../../../kernel/app-error.ts';
import type { SkillMethods } from '../methods.ts';
import { type ArchiveDeps, fetchFolder } from './archive.ts';
import { installedAnswer, installNew, writableRoot, type WritableDeps } from './writable.ts';

/** How long a refused import may be confirmed, and how many are remembered. */
const confirmableMs = 600_000;
const maxConfirmable = 200;

/** `skills.import`: downloads a skill. A refused one can be confirmed only while it is what was shown before. */
export function createImport(deps: WritableDeps & ArchiveDeps): SkillMethods['skills.import'] {
  const { clock } = deps;
  /** What was shown to whom: a repository may change between the refusal and the repetition. */
  const shown = new Map<string, number>();

  return async ({ url, force, ...where }, call) => {
    const { agent, root } = writableRoot(deps, where, call);
    const bundle = await fetchFolder(deps, url, call.signal);
    const keyOf = (digest: string) => `${call.identity.principalId} ${root.owner} ${url} ${digest}`;
    const now = clock.now();
    for (const [key, atMs] of shown) if (atMs + confirmableMs < now || shown.size > maxConfirmable) shown.delete(key);
    let digest = '';
    try {
      const installed = await installNew(deps, call, {
        root,
        agentId: agent.id,
        tier: 'community',
        bundle,
        source: 'imported',
        url,
        forced(read) {
          digest = read;
          return force && shown.has(keyOf(read));
        },
        replace: false,
        action: 'skill.import',
      });
      return { ...installedAnswer(installed), fileCount: bundle.files.length };
    } catch (error) {
      if (error instanceof AppError && error.details.param === 'force' && digest !== '') shown.set(keyOf(digest), now);
      throw error;
    }
  };
}
