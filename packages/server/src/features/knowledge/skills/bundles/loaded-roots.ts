import type { EventPayload } from '@gatehouse/contract';
import type { Clock } from '../../../../kernel/clock.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import { type FoundSkill, SkillRoot, type SkillRootDeps } from './root.ts';
import { type SkillWatch, skillsFolder } from './watch.ts';

interface LoadedRootsDeps {
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly agents: Pick<AgentsApi, 'find'>;
  /** Folder of the shared skills. */
  readonly sharedDir: string;
  readonly common: Omit<SkillRootDeps, 'owner' | 'place'>;
  readonly watching: SkillWatch | undefined;
  /** Looks for programs that skills require; returns whether anything changed. */
  readonly look: (bins: readonly string[]) => Promise<boolean>;
  /** Called when the agent of a root is gone. */
  readonly dropped: (agentId: string) => void;
}

/** Keeps the shared folder of skills and those of the agents scanned and watched. */
export class LoadedRoots implements AsyncDisposable {
  readonly shared: SkillRoot;
  readonly #deps: LoadedRootsDeps;
  readonly #roots = new Map<string, SkillRoot>();
  #isStopped = false;

  constructor(deps: LoadedRootsDeps) {
    this.#deps = deps;
    this.shared = new SkillRoot({ ...deps.common, owner: '', place: { base: deps.sharedDir, within: [] } });
  }

  /** Whether any folder has a skill. */
  get hasSkills(): boolean {
    return this.shared.skills.size > 0 || this.#roots.values().some((root) => root.skills.size > 0);
  }

  /** Reads all folders again. */
  async refreshAll(): Promise<void> {
    await Promise.all([this.shared, ...this.#roots.values()].map((root) => this.refresh(root)));
  }

  /** Returns the root of a skill's owner: an agent, or the shared folder. */
  ofOwner(owner: string): SkillRoot {
    return owner === '' ? this.shared : (this.#roots.get(owner) ?? this.shared);
  }

  of(agent: Agent): SkillRoot {
    const known = this.#roots.get(agent.id);
    if (known !== undefined) return known;
    this.#dropDeleted();
    const root = new SkillRoot({ ...this.#deps.common, owner: agent.id, place: { base: agent.workspaceDir, within: ['skills'] } });
    this.#roots.set(agent.id, root);
    void this.refresh(root);
    return root;
  }

  /** Deleting an agent must remove its watchers. */
  #dropDeleted(): void {
    const { agents, watching, dropped } = this.#deps;
    for (const [id, root] of this.#roots) {
      if (agents.find(id) !== undefined) continue;
      this.#roots.delete(id);
      dropped(id);
      watching?.drop(dirOf(root));
    }
  }

  async refresh(root: SkillRoot): Promise<void> {
    if (this.#isStopped) return;
    try {
      await root.alone(() => this.scan(root));
    } catch (error) {
      this.#deps.log.error({ err: error, agentId: root.owner }, 'Failed to read a folder of skills');
    }
  }

  /** Scans a folder; call it inside `root.alone`. */
  async scan(root: SkillRoot): Promise<void> {
    const { watching, look } = this.#deps;
    const before = root.skills.size;
    const { changed, gone } = await root.scan();
    if (this.#isStopped) return;
    const bins = [...root.skills.values()].flatMap(({ loaded }) => (typeof loaded === 'string' ? [] : loaded.manifest.gatehouse.requires.bins));
    if (bins.length > 0 && (await look(bins))) root.version += 1;
    if (changed.length + gone > 0) this.#announce(root, changed, before);
    watching?.keep(dirOf(root), [...root.skills.keys()], () => void this.refresh(root));
  }

  #announce(root: SkillRoot, changed: readonly FoundSkill[], before: number): void {
    const { bus, clock, log } = this.#deps;
    const timestamp = clock.now();
    const about = root.owner === '' ? {} : { agentId: root.owner };
    if (before > 0) {
      const loaded = [...root.skills.values()].filter((skill) => typeof skill.loaded !== 'string').length;
      bus.emit('skill:registry_reset', { clearedMetadata: before, clearedPromptCache: Math.min(before, loaded), timestamp });
    }
    for (const { name, loaded, findings, provenance: row } of changed) {
      if (typeof loaded === 'string') {
        const violations = [...new Set(findings.map(({ rule }) => rule))].slice(0, 50);
        log.warn({ skill: name, ...about, reason: loaded, violations }, 'Not loading a skill');
        bus.emit('skill:rejected', { skillName: name, ...about, reason: loaded, violations, timestamp });
      } else {
        const source: EventPayload<'skill:loaded'>['source'] = row?.source ?? (root.owner === '' ? 'local' : 'workspace');
        bus.emit('skill:loaded', { skillName: name, ...about, source, timestamp });
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    this.#deps.watching?.[Symbol.dispose]();
    await Promise.all([this.shared, ...this.#roots.values()].map((root) => root.alone(async () => {})));
  }
}

const dirOf = (root: SkillRoot) => (root.owner === '' ? root.place.base : skillsFolder(root.place.base));
