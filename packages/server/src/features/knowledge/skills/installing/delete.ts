import { AppError } from '../../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import { removeFolder } from '../../../../kernel/safe-folder.ts';
import type { SkillMethods } from '../methods.ts';
import { forgetSkill } from '../store.ts';
import type { SkillRoot } from '../bundles/root.ts';
import { skillExists, writableRoot, type WritableDeps } from './writable.ts';

interface DeleteDeps extends WritableDeps {
  readonly removed: (root: SkillRoot, name: string) => Promise<void>;
}

/** `skills.delete`: removes the folder of a skill. */
export function createDelete(deps: DeleteDeps): SkillMethods['skills.delete'] {
  const { bus, clock, db, limits } = deps;
  return async ({ name, ...where }, call) => {
    const { agent, root } = writableRoot(deps, where, call);
    await root.alone(async () => {
      if (!(await removeFolder(root.place, name))) {
        if (where.scope === 'local' && (await skillExists(deps.shared, name, limits())))
          throw new AppError('precondition_failed', `${name} is a shared skill: delete it with scope shared`, { param: 'scope' });
        if (where.scope === 'shared' && (await skillExists(deps.rootOf(agent), name, limits())))
          throw new AppError('precondition_failed', `${name} is not in the shared skills directory: delete it with scope local`, {
            param: 'scope',
          });
        throw new AppError('not_found', `Skill not found: ${name}`, { param: 'name' });
      }
      const audit = auditRow(call, clock.now(), {
        actionType: 'skill.delete',
        classification: 'destructive',
        target: name,
        metadata: { scope: where.scope, agentId: agent.id },
      });
      await db.write(forgetSkill, { key: { owner: root.owner, name }, audit });
      await deps.removed(root, name);
      announceAudit(bus, audit);
    });
    return { ok: true as const };
  };
}
