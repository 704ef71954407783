import type { AgentsApi } from '../features/agents/agents/api.ts';
import type { DocumentsApi } from '../features/environment/documents/api.ts';
import { createKnowledge, type KnowledgeDeps } from '../features/knowledge/sources/sources.ts';
import { putKnowledgeFile } from '../transactions/put-knowledge-file.ts';
import type { Assembly } from './assembly.ts';
import type { Foundation } from './foundation.ts';
import type { Tooling } from './tooling.ts';

export interface KnowledgeWiring {
  readonly lifetime: Pick<Foundation['lifetime'], 'controlPlaneOnly'>;
  readonly agents: AgentsApi;
  readonly documents: DocumentsApi;
  readonly web: Pick<Tooling['web'], 'fetchPage'>;
  readonly memory: { readonly search: KnowledgeDeps['memory']; readonly stored: KnowledgeDeps['stored'] };
}

/** Wires the folders and sites that agents answer from. */
export function wireKnowledge({ building, options, core }: Assembly, { lifetime, agents, documents, web, memory }: KnowledgeWiring) {
  return building.use(
    createKnowledge({
      ...core('knowledge'),
      agents,
      documents,
      fetchPage: web.fetchPage,
      homeDir: options.home.dir,
      putFile: putKnowledgeFile,
      memory: memory.search,
      stored: memory.stored,
      isPaused: lifetime.controlPlaneOnly,
    }),
  );
}
