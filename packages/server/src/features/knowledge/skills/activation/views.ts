import type { FenceText } from '../../../../runtime/fence.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import type { LoadedRoots } from '../bundles/loaded-roots.ts';
import type { FoundSkill } from '../bundles/root.ts';
import { refusalsOf, type Machine } from './eligibility.ts';
import type { Standing } from './standing.ts';
import { buildView, type SkillView } from './view.ts';

interface SkillViewsDeps {
  readonly roots: Pick<LoadedRoots, 'shared' | 'of'>;
  readonly standing: Standing;
  readonly machine: Pick<Machine, 'missing'>;
  readonly fence: FenceText;
}

/** What each agent sees of the skills; built again only when configuration, folders or standing change. */
export class SkillViews {
  readonly #deps: SkillViewsDeps;
  readonly #views = new Map<string, SkillView>();

  constructor(deps: SkillViewsDeps) {
    this.#deps = deps;
  }

  drop(agentId: string): void {
    this.#views.delete(agentId);
  }

  of(agent: Agent): SkillView {
    const { roots, standing, fence } = this.#deps;
    const { shared } = roots;
    const root = roots.of(agent);
    const key = { config: agent.config, local: root.version, shared: shared.version, standing: standing.version() };
    const known = this.#views.get(agent.id);
    if (known !== undefined && isSame(known.key, key)) return known;
    const reasonsFor = (skill: FoundSkill) => this.#reasonsFor(skill, agent);
    const statOf = ({ owner, name }: FoundSkill) => standing.of({ agentId: agent.id, owner, name });
    const view = buildView(key, { found: [...shared.skills.values(), ...root.skills.values()], reasonsFor, statOf, fence });
    this.#views.set(agent.id, view);
    return view;
  }

  /** Returns why a skill is not active for the agent. */
  #reasonsFor({ name, loaded }: FoundSkill, agent: Agent): readonly string[] {
    if (typeof loaded === 'string') return [loaded];
    return [...refusalsOf(name, agent.config.skills), ...this.#deps.machine.missing(loaded.manifest)];
  }
}

const isSame = (a: SkillView['key'], b: SkillView['key']) =>
  a.config === b.config && a.local === b.local && a.shared === b.shared && a.standing === b.standing;
