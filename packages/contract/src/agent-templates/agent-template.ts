import type { TemplateName } from '../methods/workspace.ts';
import type { AgentConfigInput } from '../shared/agent-config.ts';

/** A kind of agent: its settings and the files of its workspace that shape it. It names no model. */
export interface AgentTemplate {
  readonly id: string;
  readonly title: string;
  /** One sentence for a list. */
  readonly summary: string;
  /** What it may do, in the terms of a user. */
  readonly tools: readonly string[];
  readonly config: AgentConfigInput;
  readonly files: Readonly<Partial<Record<TemplateName, string>>>;
  /** Whether the first conversation begins with getting to know its user (BOOTSTRAP.md). */
  readonly introduces: boolean;
}

/** Tools that read and change files of the workspace. */
export const fileTools = 'group:files';
/** Named one by one, so that no tool that a later version adds to `group:web` comes with it. */
export const readWeb = ['web_fetch', 'web_search'] as const;
export const recallOwn = ['group:memory', 'session_search'] as const;
