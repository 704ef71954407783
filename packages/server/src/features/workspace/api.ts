import type { Jail } from '../../kernel/jail.ts';
import type { Agent } from '../agents/api.ts';

/** What the files of a workspace add to the system prompt. */
export interface PromptFiles {
  /** For every origin; empty when there is nothing. */
  readonly text: string;
  /** With what is for the person that the agent works for alone: USER.md, and BOOTSTRAP.md while the workspace is new. */
  readonly ownText: string;
}

export interface WorkspaceApi {
  /** As they were at the last look; the same object until something changed. Undefined when there are none, or the agent does not use them. */
  promptFiles(agent: Agent): PromptFiles | undefined;
  /** Looks at the disk, at most once per second and agent; undefined: nothing to wait for. It never fails. */
  refresh(agent: Agent): Promise<void> | undefined;
  /** What HEARTBEAT.md asks for, as it is on disk now; undefined when it is missing, still the template, or says nothing. It never fails. */
  checklist(agent: Agent): Promise<string | undefined>;
}

/** Whether a workspace has room for more. */
export interface WorkspaceRoom {
  /** Fails with `precondition_failed` when the workspace is full, saying what takes the room, with `unavailable` when the disk is. */
  assertRoom(workspaceDir: string, wanted?: { readonly bytes?: number; readonly files?: number }): Promise<void>;
  /** The jail, whose programs are ended when the workspace or the disk gets full meanwhile. */
  watched(jail: Jail, workspaceDir: string): Jail;
}
