import type { AgentConfig } from '@gatehouse/contract';

export type KnowledgeSource = AgentConfig['knowledge']['sources'][number];

/** Owner of the entries of an agent's sources in the search index; no agent can have this id. */
export const knowledgeOwner = (agentId: string): string => `knowledge:${agentId}`;

/** The folder or address of a source. */
export const placeOf = ({ folder, site }: KnowledgeSource): string => folder ?? site ?? '';
