import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { SkillView } from './activation/view.ts';
import { toWire } from './activation/wire.ts';
import type { ArchiveDeps } from './installing/archive.ts';
import { singleFile } from './bundles/bundle.ts';
import { createDelete } from './installing/delete.ts';
import { createImport } from './installing/import.ts';
import type { SkillRoot } from './bundles/root.ts';
import { createUpdate } from './installing/update.ts';
import { installedAnswer, installNew, writableRoot, type WritableDeps } from './installing/writable.ts';
import type { ProvenanceRow } from './store.ts';

export type SkillMethods = HandlersOf<`skills.${'list' | 'upload' | 'import' | 'create' | 'update' | 'delete'}`>;

export interface SkillMethodsDeps extends WritableDeps, ArchiveDeps {
  readonly agents: AgentsApi;
  /** Every skill in the agent's folders, and why one is not active. */
  readonly describe: (agent: Agent) => SkillView['all'];
  /** Provenance recorded under a name, whatever is there now. */
  readonly provenanceOf: (owner: string, name: string) => ProvenanceRow | undefined;
  readonly removed: (root: SkillRoot, name: string) => Promise<void>;
}

export function createSkillMethods(deps: SkillMethodsDeps): SkillMethods {
  const { agents } = deps;
  return {
    'skills.list': async ({ agentId = agents.defaultId }, call) => {
      const own = call.agentCaller === undefined || call.agentCaller.agentId === agentId;
      const agent = own && call.identity.agents?.includes(agentId) !== false ? agents.find(agentId) : undefined;
      const skills = agent === undefined ? [] : deps.describe(agent).map(toWire);
      return { skills, total: skills.length };
    },

    'skills.upload': async ({ name, files, force, ...where }, call) => {
      const { agent, root, tier } = writableRoot(deps, where, call);
      const bundle = { files: files.map(({ path, content }) => ({ path, bytes: Buffer.from(content.toWellFormed()), executable: false })), odd: [] };
      const about = { root, name, agentId: agent.id, tier, bundle, forced: () => force, replace: false };
      const installed = await installNew(deps, call, { ...about, source: 'uploaded', action: 'skill.upload' });
      return { ...installedAnswer(installed), fileCount: files.length };
    },

    'skills.create': async ({ name, content, force, ...where }, call) => {
      const { agent, root, tier } = writableRoot(deps, where, call);
      const about = { root, name, agentId: agent.id, tier, bundle: singleFile(content), forced: () => force, replace: false };
      return installedAnswer(await installNew(deps, call, { ...about, source: 'created', action: 'skill.create' }));
    },

    'skills.import': createImport(deps),
    'skills.update': createUpdate(deps),
    'skills.delete': createDelete(deps),
  };
}
