import type { Tool } from '../../../runtime/tool.ts';
import { BackgroundCommands } from './background-commands.ts';
import type { ShellDeps } from './command.ts';
import { createExecTool } from './exec-tool.ts';
import { createProcessTool } from './process-tool.ts';

export interface Shell extends AsyncDisposable {
  /** Empty when commands are switched off. */
  tools(): readonly Tool[];
  readonly background: Pick<BackgroundCommands, 'end' | 'endOne' | 'running' | 'forgetAgent'>;
}

/** Commands of agents, which run in a jail or not at all (decision 15). Disposing stops those in the background. */
export function createShell(deps: ShellDeps): Shell {
  const background = new BackgroundCommands(deps);
  const tools: readonly Tool[] = [createExecTool(deps, background), createProcessTool(background)];
  const none: readonly Tool[] = [];
  return {
    tools: () => (deps.config.current.enabled ? tools : none),
    background,
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  };
}
