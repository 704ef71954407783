import { isMainThread } from 'node:worker_threads';

// A broken build for the harness to catch: it takes START_MS longer to start, BUSY_MS of CPU ten times a second, and holds HOLD_MB.
// Loaded with --import before a server.
const busy = (ms: number): void => {
  const before = process.threadCpuUsage();
  for (let used = 0; used < ms * 1_000;) {
    const { user, system } = process.threadCpuUsage(before);
    used = user + system;
  }
};
if (isMainThread) {
  busy(Number(process.env['START_MS']));
  const held = Buffer.alloc(Number(process.env['HOLD_MB']) * 1024 * 1024, 1);
  setInterval(() => busy(held.length > 0 ? Number(process.env['BUSY_MS']) : 0), 100).unref();
}
