import { Worker } from 'node:worker_threads';
import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../../../kernel/app-error.ts';
import { createLanes, type Lease } from '../../../../../kernel/lane.ts';
import { judgeOutput, type WakeGateVerdict } from './wake-gate-verdict.ts';

/** Input of a script, available as the frozen global `input`. */
export interface WakeGateInput {
  readonly agentId: string;
  readonly jobName: string;
  readonly scheduledForMs: number;
  /** The only time visible to the script: its clock is frozen. */
  readonly nowMs: number;
  /** Time zone of the script's `Date`. */
  readonly timeZone: string;
  readonly lastRun?: { readonly status: string; readonly startedAtMs: number; readonly durationMs?: number; readonly errorKind?: string } | undefined;
}

export interface WakeGateRequest {
  readonly script: string;
  readonly language: 'js' | 'ts';
  readonly timeoutMs: number;
  readonly input: WakeGateInput;
  readonly signal: AbortSignal;
}

/**
 * Runs a script that decides whether a job has something to do, in a WebAssembly sandbox in its own thread. Any failure of the script or of its
 * limits opens the gate. Throws only `cancelled`, when the signal aborts.
 */
export type RunWakeGate = (request: WakeGateRequest) => Promise<WakeGateVerdict>;

/** Input of the thread. */
export interface WakeGateTask {
  readonly script: string;
  readonly language: 'js' | 'ts';
  readonly input: WakeGateInput;
  readonly maxLength: number;
  readonly maxLines: number;
}

const maxLength = 65_536;
const maxLines = 2_000;
const Report = once(() =>
  z.union([
    z.strictObject({ line: z.string().max(maxLength) }),
    z.strictObject({ ended: z.enum(['well', 'overflow']) }),
    z.strictObject({ failed: z.string().max(1_000) }),
  ]),
);

/** Maximum threads; each holds the memory of one sandbox. An agent uses one at a time, and agents take turns. */
const maxThreads = 2;
/** Upper bound whatever a job allows: a script that can only compute needs no more, and others wait for its thread. */
const longestRunMs = 30_000;
/** Longest wait for a thread, because a waiting job holds a slot that others need. */
const longestWaitMs = 60_000;
const resourceLimits = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };

/** Creates the runner of gates. `after` calls back once after a delay and returns a function that cancels it. */
export function createWakeGate({ after }: { readonly after: (ms: number, run: () => void) => () => void }): RunWakeGate {
  const threads = createLanes();

  /** Waits for a thread; returns undefined when none became free in time. */
  async function threadFor({ agentId }: WakeGateInput, signal: AbortSignal): Promise<Lease | undefined> {
    const waited = new AbortController();
    const cancelWait = after(longestWaitMs, () => waited.abort());
    try {
      const either = AbortSignal.any([signal, waited.signal]);
      return await threads.acquire({ key: agentId, group: 'gates', groupLimit: maxThreads, principalId: agentId, signal: either });
    } catch (error) {
      if (signal.aborted || !(error instanceof AppError)) throw error;
      return undefined;
    } finally {
      cancelWait();
    }
  }

  return async ({ script, language, timeoutMs: allowedMs, input, signal }) => {
    using thread = await threadFor(input, signal);
    if (thread === undefined) return judgeOutput('', 'no thread became free in time');
    const timeoutMs = Math.min(allowedMs, longestRunMs);
    let output = '';
    const outcome = Promise.withResolvers<string | undefined>();
    const task: WakeGateTask = { script, language, input, maxLength, maxLines };
    // No environment, because it holds the installation's keys. Node warns that stripping types is experimental.
    const execArgv = ['--disable-warning=ExperimentalWarning'];
    const worker = new Worker(workerUrl(), { workerData: task, resourceLimits, env: {}, execArgv, name: 'wake-gate' });
    const onAbort = () => outcome.reject(new AppError('cancelled', 'The script of the job was stopped'));
    signal.addEventListener('abort', onAbort, { once: true });
    const cancelTimeout = after(timeoutMs, () => outcome.resolve(`ran longer than ${timeoutMs} ms`));
    worker.on('message', (message: unknown) => {
      const report = Report().parse(message);
      if ('line' in report) output += `${report.line}\n`;
      else if ('failed' in report) outcome.resolve(report.failed);
      else outcome.resolve(report.ended === 'well' ? undefined : `printed more than ${maxLength} characters or ${maxLines} lines`);
    });
    worker.once('error', (error) => outcome.resolve(`ended its thread: ${error instanceof Error ? error.message : String(error)}`));
    worker.once('exit', () => outcome.resolve('ended its thread'));
    if (signal.aborted) onAbort();
    try {
      const failure = await outcome.promise;
      return judgeOutput(output, failure);
    } finally {
      cancelTimeout();
      signal.removeEventListener('abort', onAbort);
      await worker.terminate();
    }
  };
}

/** URL of the worker; the bundle places it next to the server. */
function workerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './wake-gate-worker.ts' : './wake-gate-worker.js', import.meta.url);
}
