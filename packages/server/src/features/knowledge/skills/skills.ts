import type { Live } from '../../../kernel/config/live.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Egress } from '../../../kernel/egress.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { Log } from '../../../kernel/log.ts';
import type { FenceText } from '../../../runtime/fence.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { SkillsApi } from './api.ts';
import type { SkillsConfig } from './config.ts';
import { createMachine } from './activation/eligibility.ts';
import { LoadedRoots } from './bundles/loaded-roots.ts';
import { createSkillMethods, type SkillMethods } from './methods.ts';
import { createStanding } from './activation/standing.ts';
import { loadSkills } from './store.ts';
import { createSkillTool } from './tool.ts';
import { createTurnSkills } from './activation/turn-skills.ts';
import { SkillViews } from './activation/views.ts';
import { createSkillWatch } from './bundles/watch.ts';

export interface SkillsDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly agents: AgentsApi;
  readonly config: Live<SkillsConfig>;
  /** Folder of the shared skills. */
  readonly sharedDir: string;
  /** Environment of the daemon: programs and variables that skills may require. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly egress: Pick<Egress, 'request'>;
  readonly fence: FenceText;
  readonly hideSecrets: (text: string) => string;
}

export interface Skills extends AsyncDisposable {
  readonly api: SkillsApi;
  readonly methods: SkillMethods;
}

const noTools: readonly Tool[] = [];

/** Instructions in folders, for agents: found, vetted, watched, and placed before the questions that they fit. */
export async function createSkills(deps: SkillsDeps): Promise<Skills> {
  const { db, clock, log, agents, config } = deps;
  const limits = () => config.current.installVetting;
  const { watch, watchDebounceMs } = config.current;
  const stored = await db.read(loadSkills, {});
  const provenance = new Map(stored.provenance.map((row) => [`${row.owner}\0${row.name}`, row]));
  const provenanceOf = (owner: string, name: string) => provenance.get(`${owner}\0${name}`);
  const standing = createStanding(deps, stored.stats);
  const machine = createMachine(deps.env);
  const roots = new LoadedRoots({
    ...deps,
    common: { config, provenanceOf },
    watching: watch ? createSkillWatch({ clock, log, debounceMs: watchDebounceMs }) : undefined,
    look: (bins) => machine.look(bins),
    dropped: (agentId) => views.drop(agentId),
  });
  const views = new SkillViews({ roots, standing, machine, fence: deps.fence });
  const viewOf = (agent: Agent) => views.of(agent);

  const turns = createTurnSkills({ ...deps, viewOf, record: standing.record });
  const tool: readonly Tool[] = [
    createSkillTool({
      maxFileBytes: () => limits().maxFileBytes,
      find(agentId, name) {
        const agent = agents.find(agentId);
        return agent === undefined ? undefined : viewOf(agent).find(name, 'model');
      },
      used: turns.used,
      changed: (skill) => void roots.refresh(roots.ofOwner(skill.owner)),
    }),
  ];

  const methods = createSkillMethods({
    ...deps,
    limits,
    imports: () => config.current.imports,
    shared: roots.shared,
    rootOf: (agent) => roots.of(agent),
    describe: (agent) => viewOf(agent).all,
    provenanceOf,
    async written(root, row) {
      provenance.set(`${row.owner}\0${row.name}`, row);
      standing.forget(row.owner, row.name);
      await roots.scan(root);
    },
    async removed(root, name) {
      provenance.delete(`${root.owner}\0${name}`);
      standing.forget(root.owner, name);
      await roots.scan(root);
    },
  });

  const following = config.onChange(() => roots.refreshAll());
  await roots.refresh(roots.shared);
  await Promise.all(agents.list().map((agent) => roots.of(agent).alone(async () => {})));

  return {
    methods,
    api: {
      promptPart: (agent) => viewOf(agent).prompt,
      inject: turns.inject,
      tools: () => (roots.hasSkills ? tool : noTools),
      ended: turns.ended,
    },
    async [Symbol.asyncDispose]() {
      following[Symbol.dispose]();
      await roots[Symbol.asyncDispose]();
      await standing[Symbol.asyncDispose]();
    },
  };
}
