import { type AgentConfig, once } from '@gatehouse/contract';
import * as z from 'zod';
import type { JailLimits } from '../../../kernel/jail.ts';

/** Commands of agents: limits for each call of `exec`, over all its processes unless stated otherwise. */
export const ExecConfig = once(() =>
  z.strictObject({
    enabled: z.boolean().default(true).describe('Offers `exec`, `process` and `terminal` to agents whose tools allow them.'),
    memoryMb: z.int().min(16).max(1_048_576).default(1024).describe('Memory of a command, files below /tmp included, in MiB.'),
    processes: z.int().min(1).max(32_768).default(128).describe('Processes and threads of a command at once.'),
    cpuSeconds: z.int().min(1).max(86_400).default(300).describe('Processor time of each process, in seconds.'),
    fileMb: z.int().min(1).max(1_048_576).default(256).describe('Size of each file that a command writes, and of its /tmp, in MiB.'),
    maxBackgroundPerAgent: z.int().min(0).max(64).default(8).describe('Commands in the background at once, per agent.'),
    maxTerminalsPerAgent: z.int().min(0).max(16).default(4).describe('Terminal sessions at once, per agent; 0 withdraws the tool `terminal`.'),
    terminalIdleMs: z
      .int()
      .min(1_000)
      .max(86_400_000)
      .default(1_800_000)
      .describe('Milliseconds after which a terminal session that neither its agent nor a person has used is ended.'),
  }),
);
export type ExecConfig = z.output<ReturnType<typeof ExecConfig>>;

const mebibyte = 1024 * 1024;
const openFiles = 1024;

/** Limits set for the agent, capped by those of the installation. */
export function limitsFor(config: ExecConfig, own: AgentConfig['exec']): JailLimits {
  const least = (key: 'memoryMb' | 'processes' | 'cpuSeconds' | 'fileMb') => Math.min(config[key], own[key] ?? config[key]);
  return {
    memoryBytes: least('memoryMb') * mebibyte,
    processes: least('processes'),
    cpuSeconds: least('cpuSeconds'),
    fileBytes: least('fileMb') * mebibyte,
    openFiles,
  };
}
