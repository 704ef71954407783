import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AgentConfig, type AgentConfigInput, type EventKind } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { type Clock, systemClock } from '../../../../kernel/clock.ts';
import { fixed } from '../../../../kernel/config/live.ts';
import { createEventBus } from '../../../../kernel/event-bus.ts';
import { openJail } from '../../../../kernel/jail.ts';
import type { TracedWork } from '../../../../kernel/work-trace.ts';
import { turnInput } from '../../../../runtime/testing.ts';
import type { ToolContext, ToolResult } from '../../../../runtime/tool.ts';
import { allClean } from '../../workspace/file-tools/testing.ts';
import type { ShellDeps } from '../command.ts';
import { ExecConfig } from '../config.ts';
import { createShell } from '../shell.ts';

interface Options {
  readonly clock?: Clock;
  readonly exec?: Partial<ReturnType<ReturnType<typeof ExecConfig>['parse']>>;
  readonly agent?: AgentConfigInput;
  readonly over?: Partial<ShellDeps>;
}

/** Opens the tool `terminal` with a jail and a workspace, for tests. */
export async function openTerminals({ clock = systemClock, exec = {}, agent = {}, over = {} }: Options = {}) {
  const jail = await openJail({ clock: systemClock });
  const base = mkdtempSync(join(realpathSync(tmpdir()), 'gatehouse-terminal-'));
  const bus = createEventBus(() => {});
  const events: EventKind[] = [];
  bus.listen('all', ({ kind }) => events.push(kind));
  const traced: TracedWork[] = [];
  const shell = createShell({
    clock,
    processClock: systemClock,
    hideSecrets: (text) => text.replaceAll('hunter2-hunter2', '[REDACTED]'),
    bus,
    traceWork: (work) => traced.push(work),
    config: fixed(ExecConfig().parse({ memoryMb: 256, processes: 40, ...exec })),
    jail: async () => jail,
    capacity: { assertCapacity: async () => {}, watched: (opened) => opened },
    env: {},
    agentOf: () => AgentConfig.parse(agent),
    isStopped: () => false,
    taints: allClean,
    ...over,
  });
  const workspaceDir = join(base, 'workspaces', 'default');

  async function use(args: object, context: Partial<ToolContext> = {}): Promise<ToolResult> {
    const tool = shell.tools().find(({ name }) => name === 'terminal');
    if (tool === undefined) throw new Error('there is no tool "terminal"');
    const { agentId, turnId, traceId, origin, conversationRef, sessionKey, principalId, call, signal } = turnInput();
    const callTool = async () => ({ content: 'none', isError: true });
    const about = { agentId, turnId, traceId, origin, conversationRef, sessionKey, principalId, call, signal };
    try {
      return await tool.run(tool.args.parse(args), { ...about, workspaceDir, callId: 'call_1', callTool, tainted: () => false, ...context });
    } catch (error) {
      if (error instanceof AppError) return { content: `${error.code}: ${error.message}`, isError: true };
      throw error;
    }
  }

  return {
    shell,
    events,
    traced,
    use,
    /** Opens a session and returns its id. */
    async open(argv: readonly string[], more: object = {}, context: Partial<ToolContext> = {}): Promise<string> {
      const { content } = await use({ action: 'open', argv, ...more }, context);
      const id = /term_[0-9a-f-]{36}/.exec(content)?.[0];
      if (id === undefined) throw new Error(`it was not opened: ${content}`);
      return id;
    },
    async [Symbol.asyncDispose]() {
      await shell[Symbol.asyncDispose]();
      await jail[Symbol.asyncDispose]();
      rmSync(base, { recursive: true, force: true });
    },
  };
}

export type Terminals = Awaited<ReturnType<typeof openTerminals>>;
