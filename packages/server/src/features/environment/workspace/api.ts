import type { Jail } from '../../../kernel/jail.ts';
import type { Agent } from '../../agents/agents/api.ts';

/** Sections that the files of a workspace add to the system prompt. */
export interface PromptFiles {
  /** Text for every origin; empty when there is nothing. */
  readonly text: string;
  /** The same with the text for the agent's owner alone: USER.md, and BOOTSTRAP.md while the workspace is new. */
  readonly ownText: string;
}

export interface WorkspaceApi {
  /** Returns the files as last read; the same object until something changed. Undefined when there are none, or the agent does not use them. */
  promptFiles(agent: Agent): PromptFiles | undefined;
  /** Reads the disk, at most once per second and agent; undefined when there is nothing to wait for. Never fails. */
  refresh(agent: Agent): Promise<void> | undefined;
  /** Returns the tasks of HEARTBEAT.md as it is on disk; undefined when it is missing, still the template, or empty. Never fails. */
  checklist(agent: Agent): Promise<string | undefined>;
}

/** Enforces the capacity of a workspace. */
export interface WorkspaceCapacity {
  /** Fails with `precondition_failed` when the workspace is full, naming what uses the space, with `unavailable` when the disk is full. */
  assertCapacity(workspaceDir: string, wanted?: { readonly bytes?: number; readonly files?: number }): Promise<void>;
  /** Wraps the jail so that its programs are stopped when the workspace or the disk fills up meanwhile. */
  watched(jail: Jail, workspaceDir: string): Jail;
}

/** Identifies a workspace. */
export interface Workplace {
  readonly agentId: string;
  readonly workspaceDir: string;
}

/** Taint of what a command may have read and written. */
export interface CommandTaint {
  /** Whether its output and files contain nothing from outside. */
  isClean(): boolean;
  /** Marks it as tainted, because it receives input from outside. */
  taint(): Promise<void>;
  /** Call after its last process has ended, also when it could not be started; repeated calls do nothing. Never rejects. */
  end(): Promise<void>;
}

/** Tracks where the text in files came from; see `createFileTaints`. */
export interface FileTaints {
  isTainted(place: Workplace, path: string): Promise<boolean>;
  /** Whether any file in a folder, at any depth, is tainted. */
  isTaintedBelow(place: Workplace, folder: string): Promise<boolean>;
  /** Records a write with this content: call it before the write if tainted and after it otherwise, so that a crash leaves no false record. */
  mark(place: Workplace, path: string, tainted: boolean, content: string | Uint8Array): Promise<void>;
  /** Records that a file was deleted. */
  forget(place: Workplace, path: string): Promise<void>;
  /** Records that the files of the workspace are now in the history of its repository. */
  committed(place: Workplace): Promise<void>;
  isRepositoryTainted(place: Workplace): Promise<boolean>;
  /** Call before a command that sees the workspace starts. `mayBeTainted`: it has the network, or a turn that read text from outside starts it. */
  beginCommand(place: Workplace, mayBeTainted: boolean): Promise<CommandTaint>;
}
