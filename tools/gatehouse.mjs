#!/usr/bin/env node
// The command in a clone: prepares the clone if needed, and runs the bundle on a Node that is new enough.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const cli = join(root, 'dist', 'cli.js');
const localNode = join(root, 'node_modules', '.bin', process.platform === 'win32' ? 'node.cmd' : 'node');

if (!existsSync(cli)) {
  const { status } = spawnSync(process.execPath, [join(root, 'tools', 'ensure.mjs')], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 70);
}
if (Number.parseInt(process.versions.node, 10) >= 26 || !existsSync(localNode)) {
  process.argv[1] = cli;
  await import(pathToFileURL(cli).href);
} else {
  const { status, signal } = spawnSync(localNode, [cli, ...process.argv.slice(2)], { stdio: 'inherit', shell: process.platform === 'win32' });
  if (signal !== null) process.kill(process.pid, signal);
  process.exit(status ?? 70);
}
