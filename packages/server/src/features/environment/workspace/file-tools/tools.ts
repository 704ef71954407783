import type { Tool } from '../../../../runtime/tool.ts';
import { createFind, createGrep, createList, createRead, type ReadToolDeps } from './read-tools.ts';
import { createApplyPatch, createEdit, createWrite, type WriteToolDeps } from './write-tools.ts';

export interface WorkspaceToolDeps extends ReadToolDeps, WriteToolDeps {}

/** Creates the tools for the agent's workspace folder, which is created with the first file (0700). */
export function createWorkspaceTools(deps: WorkspaceToolDeps): readonly Tool[] {
  const { taints } = deps;
  return [createRead(taints), createWrite(deps), createEdit(deps), createApplyPatch(deps), createList(taints), createFind(deps), createGrep(deps)];
}
