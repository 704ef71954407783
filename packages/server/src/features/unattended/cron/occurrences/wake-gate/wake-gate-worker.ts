import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { EvalFlags, type JSValueHandle, QuickJS } from 'quickjs-wasi';
import type { WakeGateTask } from './wake-gate.ts';

/** Runs one script of a job, which can print and access nothing else; the thread is then terminated. */

const memoryLimit = 24 * 1024 * 1024;
const maxStackSize = 256 * 1024;
/** State of a pending promise in the sandbox. */
const pending = 0;
const badFile = 8;

/** Captures the initial globals, so that scripts that change prototypes cannot affect it. */
const prelude = `((emit, text) => {
  'use strict';
  const { parse, stringify } = JSON;
  const { freeze, values } = Object;
  const String = globalThis.String;
  const show = (value) => {
    if (typeof value === 'object' && value !== null) {
      try { return stringify(value); } catch {}
    }
    return String(value);
  };
  const print = (...parts) => {
    let line = '';
    for (let at = 0; at < parts.length; at += 1) line += (at === 0 ? '' : ' ') + show(parts[at]);
    emit(line);
  };
  const deep = (value) => {
    if (typeof value === 'object' && value !== null) { for (const inner of values(value)) deep(inner); freeze(value); }
    return value;
  };
  const define = (name, value) => Object.defineProperty(globalThis, name, { value, enumerable: true });
  define('input', deep(parse(text)));
  define('print', print);
  define('console', freeze({ log: print, info: print, debug: print, warn: print, error: print }));
})`;

// Set by wake-gate.ts in the same process.
const task = workerData as WakeGateTask;
const say = (report: object): void => parentPort?.postMessage(report);

async function run({ script, language, input, maxLength, maxLines }: WakeGateTask): Promise<'well' | 'overflow'> {
  const source = language === 'ts' ? withoutTypes(script) : script;
  let left = maxLength;
  let lines = maxLines;
  const vm = await QuickJS.create({
    wasm: readFileSync(wasmUrl()),
    memoryLimit,
    maxStackSize,
    // Interrupts a script that has printed too much.
    interruptHandler: () => left < 0,
    timezoneOffset: (seconds: number) => minutesWestOf(input.timeZone, seconds),
    wasi: (memory: { readonly buffer: ArrayBuffer }) => ({
      clock_time_get(_clock: number, _precision: bigint, at: number) {
        new DataView(memory.buffer).setBigUint64(at, BigInt(input.nowMs) * 1_000_000n, true);
        return 0;
      },
      random_get(at: number, length: number) {
        new Uint8Array(memory.buffer, at, length).fill(0);
        return 0;
      },
      // No file is open: discard the engine's own output.
      fd_write: () => badFile,
    }),
  });
  const emit = vm.newFunction('emit', (line?: JSValueHandle) => {
    if (left < 0 || line === undefined) return vm.undefined;
    lines -= 1;
    // Output that is too long is not copied out of the sandbox.
    left = lines < 0 ? -1 : left - line.length - 1;
    if (left >= 0) say({ line: line.toString() });
    return vm.undefined;
  });
  try {
    vm.callFunction(vm.evalCode(prelude, 'prelude'), vm.undefined, emit, vm.newString(JSON.stringify(input)));
    const ending = vm.evalCode(source, 'script', EvalFlags.ASYNC);
    vm.executePendingJobs();
    if (left < 0) return 'overflow';
    if (ending.promiseState === pending) throw new Error('waits for a promise that never settles');
    const settled = await vm.resolvePromise(ending);
    if ('error' in settled) throw new Error(settled.error.toString());
    return 'well';
  } catch (error) {
    if (left < 0) return 'overflow';
    throw error;
  }
}

/** Strips types. Deep nesting overflows the parser, which reports that as a long internal Node error, so it is replaced. */
function withoutTypes(script: string): string {
  try {
    return stripTypeScriptTypes(script);
  } catch (error) {
    const [line = ''] = (error instanceof Error ? error.message : '').split('\n');
    throw new Error(error instanceof SyntaxError ? line : 'the TypeScript is nested too deeply to parse', { cause: error });
  }
}

/** URL of the WebAssembly file; the bundle places it next to this file. */
function wasmUrl(): URL {
  return import.meta.url.endsWith('.ts') ? new URL(import.meta.resolve('quickjs-wasi/quickjs.wasm')) : new URL('./quickjs.wasm', import.meta.url);
}

function minutesWestOf(zone: string, seconds: number): number {
  if (!(Math.abs(seconds) < 8_640_000_000_000)) return 0;
  return -Temporal.Instant.fromEpochMilliseconds(Math.floor(seconds) * 1000).toZonedDateTimeISO(zone).offsetNanoseconds / 60_000_000_000;
}

try {
  say({ ended: await run(task) });
} catch (error) {
  say({ failed: (error instanceof Error ? error.message : String(error)).slice(0, 1_000).toWellFormed() });
}
