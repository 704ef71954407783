import type { AgentTemplate } from './agent-template.ts';
import { assistant } from './assistant.ts';
import { coder } from './coder.ts';
import { homeOperator } from './home-operator.ts';
import { researcher } from './researcher.ts';

export type { AgentTemplate };

/** Kinds of agents to start from, the most general one first. */
export const agentTemplates: readonly AgentTemplate[] = [assistant, researcher, coder, homeOperator];
