// A namespace: an older Node lacks some of the names and must still get as far as the message below.
import * as nodeModule from 'node:module';
import { join } from 'node:path';
import { systemClock } from './kernel/clock.ts';
import { type CompiledFile, runCompiled } from './kernel/lifecycle/compiled-file.ts';
import { exitCodes } from './process/exit-codes.ts';
import { requiredNode } from './process/required-node.ts';
import { endStartMemory } from './process/start-memory.ts';

type Daemon = typeof import('./process/daemon.ts');

if (Number.parseInt(process.versions.node, 10) < requiredNode) {
  process.stderr.write(`gatehouse: Node ${requiredNode} or newer is needed, and this is ${process.version} (${process.execPath})\n`);
  process.exitCode = exitCodes.node.code;
} else {
  const program = import.meta.filename.endsWith('.js') ? loadProgram() : undefined;
  const { runDaemon } = program?.exports ?? (await import('./process/daemon.ts'));
  await runDaemon(process);
  endStartMemory({
    clock: systemClock,
    onEnd() {
      program?.keep();
      // Node writes the cache only at a clean exit, and a daemon may never have one.
      nodeModule.flushCompileCache();
    },
  });
}

/** Loads the daemon of the build. Without caches of compiled code every start compiles all of it again; sources under development are not cached. */
function loadProgram(): CompiledFile<Daemon> {
  const { directory } = nodeModule.enableCompileCache(join(import.meta.dirname, '.compile-cache'));
  // Threads take the setting only from the environment, not from this thread.
  if (directory !== undefined) process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, '.compile-cache');
  const program = runCompiled<Daemon>(join(import.meta.dirname, './main-program.js'));
  // Parts of the build that are loaded later look for it there.
  Object.assign(globalThis, { [Symbol.for('gatehouse.program')]: program.exports });
  return program;
}
