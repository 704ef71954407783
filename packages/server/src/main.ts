// A namespace: an older Node lacks some of the names and must still get as far as the message below.
import * as nodeModule from 'node:module';
import { join } from 'node:path';
import { systemClock } from './kernel/clock.ts';
import { exitCodes } from './process/exit-codes.ts';
import { requiredNode } from './process/required-node.ts';
import { endStartMemory } from './process/start-memory.ts';

if (Number.parseInt(process.versions.node, 10) < requiredNode) {
  process.stderr.write(`gatehouse: Node ${requiredNode} or newer is needed, and this is ${process.version} (${process.execPath})\n`);
  process.exitCode = exitCodes.node.code;
} else {
  // Without it every start compiles the whole bundle again; sources under development are not cached.
  if (import.meta.filename.endsWith('.js')) {
    const { directory } = nodeModule.enableCompileCache(join(import.meta.dirname, '.compile-cache'));
    // Threads take the setting only from the environment, not from this thread.
    if (directory !== undefined) process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, '.compile-cache');
  }
  const { runDaemon } = await import('./process/daemon.ts');
  await runDaemon(process);
  // Node writes the cache only at a clean exit, and a daemon may never have one.
  endStartMemory({ clock: systemClock, onEnd: () => nodeModule.flushCompileCache() });
}
