import { spawn, spawnSync } from 'node:child_process';
import { text } from 'node:stream/consumers';

/**
 * Makes the loopback of a network namespace a real link: the packets of an Ethernet, and buffers that do not grow
 * beyond what a slow link needs. On the plain loopback the kernel alone takes four megabytes for a reader.
 */
const shape = [
  'ip link set lo mtu 1500 up',
  "echo '4096 16384 32768' > /proc/sys/net/ipv4/tcp_wmem",
  "echo '4096 32768 65536' > /proc/sys/net/ipv4/tcp_rmem",
].join(' && ');

function command(run: string, args: readonly string[]): string[] {
  return ['unshare', '--user', '--map-root-user', '--net', 'sh', '-c', `${shape} && ${run}`, 'sh', ...args];
}

/** Why no network namespace can be created here; undefined when one can. */
export function namespaceMissing(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces exist on Linux only';
  const [program = '', ...args] = command('true', []);
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status === 0) return undefined;
  return `a network namespace of one's own cannot be made here (unshare and ip are needed, and the permission): ${(stderr ?? '').trim().slice(0, 200)}`;
}

/** Runs a Node script in a separate network namespace; the last line of its output is its report, as JSON. */
export async function runInNamespace(script: string, options: object, progress?: (line: string) => void): Promise<unknown> {
  const [program = '', ...args] = command('exec "$@"', [process.execPath, script, JSON.stringify(options)]);
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const exited = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
  if (code !== 0) throw new Error(`${script} ended with ${code} in its namespace\n${err.slice(-4_000)}`);
  const lines = out.trimEnd().split('\n');
  for (const line of lines.slice(0, -1)) progress?.(line);
  return JSON.parse(lines.at(-1) ?? '');
}
