import type { Jail } from '../../../kernel/jail.ts';
import type { Agent } from '../../agents/agents/api.ts';

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

/** Whose files are meant. */
export interface Workplace {
  readonly agentId: string;
  readonly workspaceDir: string;
}

/** What a command may have read and written. */
export interface CommandTaint {
  /** Whether what it says and writes is made of nothing from outside. */
  isClean(): boolean;
  /** From here on it is not: what it is handed comes from outside. */
  taint(): Promise<void>;
  /** After its last process has ended, also when it could not be started; a second time it does nothing. */
  end(): Promise<void>;
}

/** Where the text in files came from; see `createFileTaints`. */
export interface FileTaints {
  isTainted(place: Workplace, path: string): Promise<boolean>;
  /** Whether a file in a folder, or deeper, is. */
  isTaintedBelow(place: Workplace, folder: string): Promise<boolean>;
  /** Of a file that is written with this content: before when it is tainted, afterwards when it is not, so that a crash between the two leaves no lie. */
  mark(place: Workplace, path: string, tainted: boolean, content: string | Uint8Array): Promise<void>;
  /** Of a file that was deleted. */
  forget(place: Workplace, path: string): Promise<void>;
  /** The files of the workspace are in the history of its repository now. */
  committed(place: Workplace): Promise<void>;
  isRepositoryTainted(place: Workplace): Promise<boolean>;
  /** Before a command starts that sees the workspace. `mayBeTainted`: it has the network, or a turn starts it that had read text from outside. */
  beginCommand(place: Workplace, mayBeTainted: boolean): Promise<CommandTaint>;
}
