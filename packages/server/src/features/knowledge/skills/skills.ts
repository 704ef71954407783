import type { EventPayload } from '@gatehouse/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Egress } from '../../../kernel/egress.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { Log } from '../../../kernel/log.ts';
import type { FenceLabel } from '../../../runtime/fence.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { SkillsApi } from './api.ts';
import type { SkillsConfig } from './config.ts';
import { createMachine, refusalsOf } from './activation/eligibility.ts';
import { createSkillMethods, type SkillMethods } from './methods.ts';
import { type FoundSkill, SkillRoot } from './bundles/root.ts';
import { createStanding } from './activation/standing.ts';
import { loadSkills } from './store.ts';
import { createSkillTool } from './tool.ts';
import { createTurnSkills } from './activation/turn-skills.ts';
import { buildView, type SkillView } from './activation/view.ts';
import { createSkillWatch, skillsFolder } from './bundles/watch.ts';

export interface SkillsDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly agents: AgentsApi;
  readonly config: SkillsConfig;
  /** Folder of the shared skills. */
  readonly sharedDir: string;
  /** Environment of the daemon: programs and variables that skills may require. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly egress: Pick<Egress, 'request'>;
  readonly fence: (text: string, label: FenceLabel) => string;
  readonly hideSecrets: (text: string) => string;
}

export interface Skills extends AsyncDisposable {
  readonly api: SkillsApi;
  readonly methods: SkillMethods;
}

const noTools: readonly Tool[] = [];

/** Instructions in folders, for agents: found, vetted, watched, and placed before the questions that they fit. */
export async function createSkills(deps: SkillsDeps): Promise<Skills> {
  const { db, bus, clock, log, agents, config } = deps;
  const limits = config.installVetting;
  const stored = await db.read(loadSkills, {});
  const provenance = new Map(stored.provenance.map((row) => [`${row.owner}\0${row.name}`, row]));
  const standing = createStanding(deps, stored.stats);
  const machine = createMachine(deps.env);
  const watching = config.watch ? createSkillWatch({ clock, log, debounceMs: config.watchDebounceMs }) : undefined;
  const roots = new Map<string, SkillRoot>();
  const views = new Map<string, SkillView>();
  let stopped = false;
  const provenanceOf = (owner: string, name: string) => provenance.get(`${owner}\0${name}`);
  const common = { limits, unvetted: config.unvetted, provenanceOf };
  const shared = new SkillRoot({ ...common, owner: '', place: { base: deps.sharedDir, within: [] } });

  const dirOf = (root: SkillRoot) => (root.owner === '' ? root.place.base : skillsFolder(root.place.base));

  /** Scans a folder; call it inside `root.alone`. */
  async function scan(root: SkillRoot): Promise<void> {
    const before = root.skills.size;
    const { changed, gone } = await root.scan();
    if (stopped) return;
    const bins = [...root.skills.values()].flatMap(({ loaded }) => (typeof loaded === 'string' ? [] : loaded.manifest.gatehouse.requires.bins));
    if (bins.length > 0 && (await machine.look(bins))) root.version += 1;
    if (changed.length + gone > 0) announce(root, changed, before);
    watching?.keep(dirOf(root), [...root.skills.keys()], () => void refresh(root));
  }

  function announce(root: SkillRoot, changed: readonly FoundSkill[], before: number): void {
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

  async function refresh(root: SkillRoot): Promise<void> {
    if (stopped) return;
    try {
      await root.alone(() => scan(root));
    } catch (error) {
      log.error({ err: error, agentId: root.owner }, 'Failed to read a folder of skills');
    }
  }

  function rootOf(agent: Agent): SkillRoot {
    let root = roots.get(agent.id);
    if (root === undefined) {
      // Deleting an agent must remove its watchers.
      for (const [id, other] of roots) {
        if (agents.find(id) !== undefined) continue;
        roots.delete(id);
        views.delete(id);
        watching?.drop(dirOf(other));
      }
      root = new SkillRoot({ ...common, owner: agent.id, place: { base: agent.workspaceDir, within: ['skills'] } });
      roots.set(agent.id, root);
      void refresh(root);
    }
    return root;
  }

  function viewOf(agent: Agent): SkillView {
    const root = rootOf(agent);
    const key = { config: agent.config, local: root.version, shared: shared.version, standing: standing.version() };
    let view = views.get(agent.id);
    if (
      view === undefined ||
      view.key.config !== key.config ||
      view.key.local !== key.local ||
      view.key.shared !== key.shared ||
      view.key.standing !== key.standing
    ) {
      const reasonsFor = (skill: FoundSkill) =>
        typeof skill.loaded === 'string'
          ? [skill.loaded]
          : [...refusalsOf(skill.name, agent.config.skills), ...machine.missing(skill.loaded.manifest)];
      const statOf = ({ owner, name }: FoundSkill) => standing.of({ agentId: agent.id, owner, name });
      view = buildView(key, { found: [...shared.skills.values(), ...root.skills.values()], reasonsFor, statOf, fence: deps.fence });
      views.set(agent.id, view);
    }
    return view;
  }

  const turns = createTurnSkills({ clock, bus, fence: deps.fence, hideSecrets: deps.hideSecrets, viewOf, record: standing.record });
  const tool: readonly Tool[] = [
    createSkillTool({
      maxFileBytes: limits.maxFileBytes,
      find(agentId, name) {
        const agent = agents.find(agentId);
        return agent === undefined ? undefined : viewOf(agent).find(name, 'model');
      },
      used: turns.used,
      changed: (skill) => void refresh(skill.owner === '' ? shared : (roots.get(skill.owner) ?? shared)),
    }),
  ];

  const methods = createSkillMethods({
    ...deps,
    limits,
    imports: config.imports,
    shared,
    rootOf,
    describe: (agent) => viewOf(agent).all,
    provenanceOf,
    async written(root, row) {
      provenance.set(`${row.owner}\0${row.name}`, row);
      standing.forget(row.owner, row.name);
      await scan(root);
    },
    async removed(root, name) {
      provenance.delete(`${root.owner}\0${name}`);
      standing.forget(root.owner, name);
      await scan(root);
    },
  });

  await refresh(shared);
  await Promise.all(agents.list().map((agent) => rootOf(agent).alone(async () => {})));

  return {
    methods,
    api: {
      promptPart: (agent) => viewOf(agent).prompt,
      inject: turns.inject,
      tools: () => (shared.skills.size > 0 || roots.values().some((root) => root.skills.size > 0) ? tool : noTools),
      ended: turns.ended,
    },
    async [Symbol.asyncDispose]() {
      stopped = true;
      watching?.[Symbol.dispose]();
      await Promise.all([shared, ...roots.values()].map((root) => root.alone(async () => {})));
      await standing[Symbol.asyncDispose]();
    },
  };
}
