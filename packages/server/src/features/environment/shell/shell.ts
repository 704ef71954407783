import type { Tool } from '../../../runtime/tool.ts';
import { BackgroundCommands, type RunningCommand, type Scope } from './background-commands.ts';
import type { Screens } from './api.ts';
import type { ShellDeps } from './command.ts';
import { createExecTool } from './exec-tool.ts';
import { createProcessTool } from './process-tool.ts';
import { Terminals } from './terminal/terminals.ts';
import { createWatched } from './terminal/watching.ts';
import { createTerminalTool } from './terminal/tool.ts';

export interface Shell extends AsyncDisposable {
  /** Empty when commands are switched off. */
  tools(): readonly Tool[];
  /** Commands and terminal sessions in the background. */
  readonly background: {
    /** Stops what belongs to anything named, with everything it started. Returns how many ran. */
    end(scope: Scope): number;
    endOne(id: string): Promise<void>;
    /** Lists what runs, oldest first. */
    running(): readonly RunningCommand[];
    /** Stops what belongs to an agent and forgets it, because nobody else could use it. */
    forgetAgent(agentId: string): void;
  };
  readonly screens: Screens;
}

/** Commands of agents, which run in a jail or not at all (decision 15). Disposing stops those in the background. */
export function createShell(deps: ShellDeps): Shell {
  const commands = new BackgroundCommands(deps);
  const terminals = new Terminals(deps);
  const tools: readonly Tool[] = [createExecTool(deps, commands), createProcessTool(commands)];
  const all: readonly Tool[] = [...tools, createTerminalTool(deps, terminals)];
  const none: readonly Tool[] = [];
  return {
    tools: () => (!deps.config.current.enabled ? none : deps.config.current.maxTerminalsPerAgent === 0 ? tools : all),
    background: {
      end: (scope) => commands.end(scope) + terminals.end(scope),
      endOne: async (id) => void (await Promise.all([commands.endOne(id), terminals.endOne(id)])),
      running: () => [...commands.running(), ...terminals.listRunning()].toSorted((a, b) => a.startedAtMs - b.startedAtMs),
      forgetAgent(agentId) {
        commands.forgetAgent(agentId);
        terminals.forgetAgent(agentId);
      },
    },
    screens: {
      find(id) {
        const session = terminals.running(id);
        return session && createWatched(session, deps.hideSecrets);
      },
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([commands[Symbol.asyncDispose](), terminals[Symbol.asyncDispose]()]);
    },
  };
}
